"""The rendezvous: where Send meets Recv, of one run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from headrace.errors import CancelledError
from headrace.graph.operation import Operation
from headrace.runtime.concurrency.wakeup import Wakeup


class Edge(NamedTuple):
    """What names a transfer within its step: the tensor, and the devices at both ends."""

    name: str
    source: str
    destination: str

    @classmethod
    def of(cls, op: Operation) -> Edge:
        """Return the edge of a Send or a Recv."""
        attrs = op.attrs
        return cls(attrs["edge"], attrs["source"], attrs["destination"])


class Place(Protocol):
    """What tells the transfers of one run of a graph from those of another."""

    @property
    def id(self) -> int:
        """The step."""

    @property
    def invocation(self) -> str:
        """Which run of a function it is within the step, such as the iteration of a loop.

        They come one after the other, so a transport that keeps the order of values need not send
        it.
        """


class _Dead:
    """The value of a tensor that nothing computes because a branch was not taken."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DEAD"

    def __reduce__(self) -> str:
        return "DEAD"


class _Sent:
    """What stands for a value that was sent while the region that made it still ran."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SENT"


DEAD = _Dead()
SENT = _Sent()

# Called with the value, DEAD, or an exception.
Receive = Callable[[Any], None]
# Step, invocation and edge.
_Key = tuple[int, str, Edge]


class Together(Protocol):
    """Transfers of a run that belong together; the same object for each run of a plan."""

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The transfers."""


class Rendezvous(Protocol):
    """Where values wait for who needs them. Values are host arrays or DEAD."""

    def send(self, place: Place, edge: Edge, value: Any) -> None:
        """Hand over a value; never waits for the receiver."""

    def send_together(self, place: Place, given: Together, values: Sequence[Any]) -> None:
        """Hand over the values of several transfers, none of which is dead."""

    def recv(self, place: Place, edge: Edge, receive: Receive) -> None:
        """Call ``receive`` with the value as soon as it is there, from any thread."""

    def collect(self, place: Place, wanted: Together, come: Callable[[], None]) -> list[Any] | None:
        """Return the values of several transfers, if all are there.

        Otherwise return None, and call ``come`` once, from any thread, when it is time to ask
        again. A run collects for one set of transfers at a time.

        Raises:
            BaseException: why none will come any more.
        """

    def wait(self, wakeup: Wakeup, timeout: float | None) -> bool:
        """Wait until woken; a transport may make progress meanwhile.

        Args:
            wakeup: What is waited for; it is ready for another wait then.
            timeout: How many seconds to wait; None for any time. Always None for steps on several
                tasks, whose transport has deadlines of its own.

        Returns:
            Whether it was woken by then.
        """

    def close(self, step: int, reason: BaseException | None = None) -> None:
        """Forget a step: drop its values, and fail what waits for them with ``reason``."""


class LocalRendezvous:
    """A rendezvous within one process."""

    def __init__(self) -> None:
        self._values: dict[_Key, Any] = {}
        self._waiting: dict[_Key, Receive] = {}
        self._lock = threading.Lock()

    def send(self, place: Place, edge: Edge, value: Any) -> None:
        """Hand over a value."""
        key = place.id, place.invocation, edge
        with self._lock:
            receive = self._waiting.pop(key, None)
            if receive is None:
                self._values[key] = value
                return
        receive(value)

    def send_together(self, place: Place, given: Together, values: Sequence[Any]) -> None:
        """Hand over several values."""
        for edge, value in zip(given.edges, values, strict=True):
            self.send(place, edge, value)

    def recv(self, place: Place, edge: Edge, receive: Receive) -> None:
        """Call ``receive`` with the value, at once where it is there already."""
        key = place.id, place.invocation, edge
        with self._lock:
            if key not in self._values:
                self._waiting[key] = receive
                return
            value = self._values.pop(key)
        receive(value)

    def collect(self, place: Place, wanted: Together, come: Callable[[], None]) -> list[Any] | None:
        """Return values, if all are there."""
        keys = [(place.id, place.invocation, edge) for edge in wanted.edges]
        with self._lock:
            missing = {key for key in keys if key not in self._values}
            if not missing:
                return [self._values.pop(key) for key in keys]
            for key in missing:
                self._waiting[key] = self._collector(key, missing, come)
            return None

    def _collector(self, key: _Key, missing: set[_Key], come: Callable[[], None]) -> Receive:
        """Return what keeps a value until others have come, too."""

        def receive(value: Any) -> None:
            with self._lock:
                self._values[key] = value
                missing.discard(key)
                complete = not missing
            if complete:
                come()

        return receive

    def wait(self, wakeup: Wakeup, timeout: float | None) -> bool:
        """Wait until woken."""
        return wakeup.wait(timeout)

    def close(self, step: int, reason: BaseException | None = None) -> None:
        """Forget a step."""
        with self._lock:
            for key in [k for k in self._values if k[0] == step]:
                del self._values[key]
            orphans = [self._waiting.pop(k) for k in list(self._waiting) if k[0] == step]
        for receive in orphans:
            receive(reason if reason is not None else CancelledError(f"step {step} has ended"))
