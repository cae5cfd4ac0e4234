"""One process at a time saves into a folder."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import socket
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, final

from headrace.errors import FailedPreconditionError

if TYPE_CHECKING:
    from headrace import Graph

_NAME = ".chief"
MOST_S = 10.0
_LOOK_S = 0.02

# Of each folder that this process holds: the graph, and the descriptor of the lock.
_HELD: dict[Path, tuple[weakref.ref[Graph], int]] = {}
_COUNTS: dict[Path, int] = {}
_GUARD = threading.RLock()


@final
class ChiefLock:
    """The right to save checkpoints of a graph into a folder, until released.

    Several of one process may hold it for the same graph. It ends with the process, however that
    ends, for the system keeps it. File systems without locks keep nobody out.
    """

    def __init__(self, folder: Path, graph: Graph) -> None:
        """Take it.

        Args:
            folder: The folder, made where it is not there.
            graph: What is trained.

        Raises:
            FailedPreconditionError: if another process, or a session of another graph, has it.
            OpError: if the folder cannot be made, or written.
        """
        # lazy: who saves nothing needs none of it
        from headrace_io.streams import error_of_system

        try:
            self._take(folder, graph)
        except OSError as error:
            raise error_of_system(error, f"cannot save into the folder {str(folder)!r}") from error
        self.release = weakref.finalize(self, _released, self._folder)

    def _take(self, folder: Path, graph: Graph) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder.resolve()
        with _GUARD:
            held = _HELD.get(self._folder)
            if held is not None and held[0]() is not graph:
                # A session that was dropped without being closed holds nothing.
                gc.collect()
                held = _HELD.get(self._folder)
            if held is not None and held[0]() is not graph:
                raise _refusal(folder, "another session of this process")
            if held is None:
                _HELD[self._folder] = weakref.ref(graph), _taken(self._folder, folder)
            _COUNTS[self._folder] = _COUNTS.get(self._folder, 0) + 1


def await_free(folder: Path) -> None:
    """Wait until no other process saves into a folder, for at most ``MOST_S`` seconds.

    A process that is lost has the folder until the system has ended it.
    """
    until = time.monotonic() + MOST_S
    while time.monotonic() < until:
        try:
            descriptor = os.open(folder / _NAME, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            # Nobody ever did, or whoever takes it will be told.
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_S)
        except OSError:
            return
        else:
            return
        finally:
            os.close(descriptor)


def _taken(folder: Path, named: Path) -> int:
    """Return the descriptor of the file by whose lock a folder is held."""
    while True:
        file = folder / _NAME
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
                raise _refusal(named, holder or "another process") from None
            except OSError:
                # The file system has no locks.
                return descriptor
            # Whoever released it removed the file, perhaps after it was opened here.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), file.stat()):
                    os.ftruncate(descriptor, 0)
                    os.write(
                        descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode()
                    )
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _released(folder: Path) -> None:
    with _GUARD:
        _COUNTS[folder] -= 1
        if _COUNTS[folder] == 0:
            del _COUNTS[folder]
            _, descriptor = _HELD.pop(folder)
            with contextlib.suppress(OSError):
                (folder / _NAME).unlink()
            os.close(descriptor)


def _refusal(folder: Path, holder: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{holder} saves checkpoints into {folder} already: end it, choose another folder, or pass "
        "is_chief=False where this process should not save"
    )
