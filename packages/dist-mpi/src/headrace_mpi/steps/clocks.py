"""Clock synchronization: how far other ranks' clocks are ahead of this one's.

References:
    Cristian, *Probabilistic clock synchronization*, Distributed Computing 3, 1989: the shortest of
    several round trips bounds the error by half of its length.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, final

from headrace.errors import DeadlineExceededError
from headrace.extend.runtime import Wakeup
from headrace_mpi.transport.wire import Frame, Kind

if TYPE_CHECKING:
    from headrace_mpi.transport.transport import Transport

clock = time.perf_counter_ns
ROUND_TRIPS = 20
_TIMEOUT_S = 30.0


@final
class Clocks:
    """Answers what time it is here, and asks other ranks."""

    def __init__(self, transport: Transport) -> None:
        """Answer the questions of others.

        Args:
            transport: Not started yet.
        """
        self._transport = transport
        self._waiter = Wakeup()
        self._answer = (0, 0)
        self._lock = threading.Lock()
        transport.on(Kind.PING, self._on_ping)
        transport.on(Kind.PONG, self._on_pong)

    def ahead_of_ours(self, rank: int) -> int:
        """Return how far a rank's clock is ahead of this one's, in nanoseconds.

        Raises:
            DeadlineExceededError: if the rank does not answer.
        """
        best = ahead = 0
        with self._lock:
            for trip in range(1, ROUND_TRIPS + 1):
                begin = clock()
                self._transport.send(rank, Frame(Kind.PING, edge=trip))
                while self._answer[0] != trip:
                    if not self._transport.wait(self._waiter, _TIMEOUT_S):
                        raise DeadlineExceededError(
                            f"rank {rank} did not tell its time within {_TIMEOUT_S:g} s, so the "
                            f"step cannot be traced"
                        )
                took = clock() - begin
                if trip == 1 or took < best:
                    best, ahead = took, self._answer[1] - begin - took // 2
            self._answer = (0, 0)
        return ahead

    def _on_ping(self, rank: int, frame: Frame) -> None:
        self._transport.send(rank, Frame(Kind.PONG, clock(), frame.edge))

    def _on_pong(self, rank: int, frame: Frame) -> None:
        self._answer = (frame.edge, frame.step)
        self._waiter.wake()
