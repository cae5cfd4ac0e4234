"""Seeing the other processes of the job on this host before MPI is there to ask.

Each rank listens on a socket whose name is made of the job and its rank, in Linux's abstract name
space: nothing is written to disk, and the name vanishes with its process, however that ends.
Elsewhere nothing is claimed and nobody is seen, and messages say less.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from typing import final

from headrace_mpi.launcher.launch import Launch

_SUPPORTED = sys.platform.startswith("linux")


def _claim(launch: Launch, what: str) -> socket.socket | None:
    """Return a socket that holds the name ``what`` in the job, or None if someone else does."""
    name = f"\0headrace-{os.getuid()}-{launch.job}-{what}"
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(name)
        # Calls are never taken up: each of the host's ranks leaves one or two in the queue.
        holder.listen(4096)
    except OSError:
        holder.close()
        return None
    return holder


@final
class Presence:
    """Says that this rank is there, and sees which others are."""

    def __init__(self, launch: Launch, what: str = "rank") -> None:
        """Announce this rank, as being ``what``, to the job's other processes on this host."""
        self._launch = launch
        self._what = what
        self._seen = _SUPPORTED and bool(launch.job)
        self._holder = _claim(launch, f"{what}-{launch.rank}") if self._seen else None

    def present(self) -> dict[int, int] | None:
        """Return the process id of each rank seen on this host, or None if none can be seen."""
        if not self._seen:
            return None
        found = {self._launch.rank: os.getpid()}
        for rank in range(self._launch.size):
            pid = self._pid(rank)
            if pid is not None:
                found[rank] = pid
        return dict(sorted(found.items()))

    def _pid(self, rank: int) -> int | None:
        name = f"\0headrace-{os.getuid()}-{self._launch.job}-{self._what}-{rank}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.setblocking(False)
            try:
                caller.connect(name)
                size = struct.calcsize("3i")
                peer = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            except OSError:
                return None
        pid: int = struct.unpack("3i", peer)[0]
        return pid

    def close(self) -> None:
        """Take the announcement back."""
        if self._holder is not None:
            with contextlib.suppress(OSError):
                self._holder.close()
            self._holder = None


@final
class FirstFailure:
    """Tells the rank that failed first on this host from those that fail because of it.

    The first claims a name. That alone is not enough: the launcher ends the ranks one by one, and
    with the first its claim vanishes, while others may still be on their way to fail. So all
    announce themselves for as long as they live, and a rank that misses one is not the first.
    """

    def __init__(self, launch: Launch) -> None:
        """Announce this rank; ``meet`` must follow when all ranks have done so."""
        self._launch = launch
        self._alive = Presence(launch, "alive")
        self._met: set[int] = set()
        self._claim: socket.socket | None = None

    def meet(self) -> None:
        """Remember who is there; no rank may end before all have done so."""
        self._met = set(self._alive.present() or ())

    def is_ours(self) -> bool:
        """Return whether no other rank on this host has failed or gone before; to be asked once."""
        if not (_SUPPORTED and self._launch.job):
            return True
        # The name must stay taken for as long as this process lives.
        self._claim = _claim(self._launch, "failure")
        return self._claim is not None and self._met <= set(self._alive.present() or ())
