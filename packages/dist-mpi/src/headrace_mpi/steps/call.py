"""Calls to other ranks, and how they end: in their answers, or in an error."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import final

from headrace.extend.runtime import Cancellation, Wakeup
from headrace_mpi.steps.remote_errors import StepAbortedError
from headrace_mpi.steps.rendezvous import number_of
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import Frame, Kind

_MAX_REASON = 500


@final
class Call:
    """Something that other ranks were asked to do: a step, or a registration.

    Attributes:
        step: The step's number; 0 for a registration.
        cancellation: Ends this rank's part.
        error: The first error that is not the consequence of another.
        traces: Of a traced step, what the ranks tell of their parts.
    """

    __slots__ = (
        *("_lock", "_pending", "_transport", "_waiter", "cancellation", "error", "step"),
        "traces",
    )

    def __init__(self, ranks: Iterable[int], transport: Transport) -> None:
        self.step = 0
        self.cancellation = Cancellation()
        self.error: BaseException | None = None
        self.traces: dict[int, bytes] = {}
        self._pending = {*ranks}
        self._transport = transport
        self._waiter = Wakeup()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"step {number_of(self.step)}" if self.step else "a registration"

    @property
    def pending(self) -> list[int]:
        """The ranks that have not answered."""
        with self._lock:
            return sorted(self._pending)

    def asks(self, rank: int) -> bool:
        """Whether a rank has a part in it that it has not answered for."""
        return rank in self._pending

    def answered(self, rank: int) -> None:
        """Note that a rank has finished its part."""
        with self._lock:
            self._pending.discard(rank)
            done = not self._pending
        if done:
            self._waiter.wake()

    def fail(self, error: BaseException) -> None:
        """Note an error, and end all parts of the step that still run; the first one counts."""
        with self._lock:
            if self.error is not None or isinstance(error, StepAbortedError):
                return
            self.error = error
            pending = list(self._pending)
        reason = f"the step ended: {error}".splitlines()[0][:_MAX_REASON]
        self.cancellation.cancel(StepAbortedError(reason))
        if self.step:
            for rank in pending:
                self._transport.send(rank, Frame(Kind.ABORT, self.step, payload=reason.encode()))

    def wait(self) -> None:
        """Wait until every rank has answered."""
        if self._pending:
            self._transport.wait(self._waiter)
