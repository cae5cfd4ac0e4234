"""The start of a job has a deadline: a rank that never comes is named, and nobody waits for ever.

MPI's own initialisation waits for all ranks and cannot be interrupted, so a watching thread ends
the process when the time is over. The launcher then ends the others.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from types import TracebackType
from typing import NoReturn, final

from headrace.errors import listing
from headrace_mpi.launcher.launch import Launch
from headrace_mpi.launcher.status_lines import tell
from headrace_mpi.membership.presence import Presence

EXIT_CODE = 70


@final
class StartDeadline:
    """Ends the process, saying which ranks are missing, unless left in time."""

    def __init__(self, launch: Launch, seconds: float) -> None:
        """Make a deadline of ``seconds`` for the start of the job."""
        self._launch = launch
        self._seconds = seconds
        self._started = threading.Event()
        self._presence = Presence(launch)

    def __enter__(self) -> StartDeadline:
        """Start to watch."""
        self._began = time.monotonic()
        threading.Thread(target=self._watch, name="headrace-deadline", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to watch: the job has started, or failed with an error of its own.

        An error of MPI is not: a rank that should have come is gone.
        """
        self._started.set()
        if value is not None and type(value).__module__.startswith("mpi4py"):
            self._give_up(f" ({value})")
        self._presence.close()

    def _watch(self) -> None:
        if self._started.wait(self._seconds):
            return
        self._give_up()

    def _give_up(self, why: str = "") -> NoReturn:
        waited_s = time.monotonic() - self._began
        text = explain(self._launch, self._presence.present(), waited_s, socket.gethostname(), why)
        sys.stdout.flush()
        os.write(2, text.encode())
        tell(f"left {EXIT_CODE}")
        os._exit(EXIT_CODE)


def explain(
    launch: Launch, present: dict[int, int] | None, waited_s: float, host: str, why: str = ""
) -> str:
    """Return what to say when the job has not started after ``waited_s`` seconds.

    Args:
        launch: Who is waiting.
        present: Process ids by rank, as far as they can be seen on ``host``.
        waited_s: Time waited, in seconds.
        host: The name of this host.
        why: Why it waits no longer, in brackets; empty where the time is over.
    """
    who = (
        f"headrace: rank {launch.rank} of {launch.size} (host {host}, pid {os.getpid()}) waited "
        f"{waited_s:.0f} s for the job to start{why}"
    )
    lines = [who]
    if present is not None:
        here = listing(f"{rank} (pid {pid})" for rank, pid in present.items())
        lines.append(f"  waiting on this host: {here}")
        missing = [str(rank) for rank in range(launch.size) if rank not in present]
        elsewhere = launch.local_size < launch.size
        where = f"not waiting on {host}" if elsewhere else "missing"
        lines.append(f"  {where}: {listing(missing) or 'none'}")
    lines.append(
        "  every rank of the job must come to hr.dist.Cluster(...): look for a rank that left or "
        "hangs before it,"
    )
    lines.append("  or give the job longer with start_deadline_s")
    return "\n".join(lines) + "\n"
