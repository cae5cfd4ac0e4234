"""When a step runs out of time or a rank is lost: all ranks write their flight records."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, final

from headrace.errors import CancelledError, DeadlineExceededError, OutOfRangeError, TaskLostError
from headrace_mpi.settings import FLIGHT
from headrace_mpi.transport.wire import Frame, Kind

if TYPE_CHECKING:
    from pathlib import Path

    from headrace_mpi.transport.thread_pool import Job
    from headrace_mpi.transport.transport import Transport

# How steps end that have nothing wrong with them.
_NORMAL = (OutOfRangeError, CancelledError)
_MAX_REASON = 500


@final
class FlightDump:
    """Writes this rank's flight record, and asks the others to write theirs."""

    def __init__(self, transport: Transport, task: str, job: str) -> None:
        """Answer those who ask for the record.

        Args:
            transport: Whose frames are in the record. Not started yet.
            task: This rank's task.
            job: What tells the job from others.
        """
        self._transport = transport
        self._task = task
        self._job = job
        self._lock = threading.Lock()
        transport.on(Kind.DUMP, self._on_dump)

    def failed(self, error: BaseException) -> None:
        """Take the failure of a step or a rank; the error gets a note that names the files.

        Of steps that fail by an error of their own records are written only where the setting
        ``HEADRACE_FLIGHT`` names a folder.
        """
        grave = isinstance(error, DeadlineExceededError | TaskLostError)
        if isinstance(error, _NORMAL) or not (grave or FLIGHT.read()):
            return
        reason = str(error).partition("\n")[0][:_MAX_REASON]
        path = self._write(reason)
        for rank in range(self._transport.size):
            if rank != self._transport.rank:
                self._transport.send(rank, Frame(Kind.DUMP, payload=reason.encode()))
        if path is not None:
            error.add_note(f"the last frames of this rank: python -m headrace flight {path}")

    def _on_dump(self, rank: int, frame: Frame) -> Job:
        reason = f"asked by rank {rank}: {frame.text}"

        def write() -> None:
            self._write(reason)

        return write

    def _write(self, reason: str) -> Path | None:
        with self._lock:
            return self._transport.flight.write(self._transport.rank, self._task, self._job, reason)
