"""Where values meet between ranks: a rendezvous for each step, with TENSOR frames behind it.

The transfers of a step are numbered when it is registered, so a value travels under two numbers,
its step's and its edge's; no name does. Values may come before their step has begun here, because
ranks start at their own pace: they are kept. What comes after a step has ended here is dropped;
with each step a client says which of its steps are over, so nothing has to be remembered of those.

An edge inside a loop carries one value in each iteration. Both ends go through the iterations in
the same order, so the values of an edge are counted at both ends, and no iteration has a name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, final

from headrace.device_name import DeviceName
from headrace.errors import CancelledError
from headrace.runtime.rendezvous import DEAD, Key, Receive
from headrace_mpi.transport import Transport
from headrace_mpi.wire import FLAG_DEAD, Frame, Kind

_RANK_SHIFT = 44

# What names a transfer within its step: tensor, source and destination.
Edge = tuple[str, str, str]
NumberedEdge = tuple[int, str, str, str]
# Where a value meets who waits for it: the number of its edge and which of the edge's values it is,
# or the key of a transfer within this rank.
Place = tuple[int, int] | Key


def first_step(rank: int) -> int:
    """Return the number before the first step of a rank's clients; no two ranks share numbers."""
    return rank << _RANK_SHIFT


def client_of(step: int) -> int:
    """Return the rank of the client that started a step."""
    return step >> _RANK_SHIFT


@dataclass(frozen=True, slots=True)
class Routes:
    """The transfers of a registered step that cross this rank's border.

    Attributes:
        outgoing: For each edge that leaves, the rank that receives, and its number.
        incoming: For each edge that arrives, its number.
    """

    outgoing: dict[Edge, tuple[int, int]] = field(default_factory=dict)
    incoming: dict[Edge, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, edges: Iterable[NumberedEdge], rank: int, rank_of: Callable[[DeviceName], int]
    ) -> Routes:
        """Return the routes of ``rank``.

        Args:
            edges: Number, tensor, source and destination of transfers.
            rank: The rank.
            rank_of: Returns the rank that plays the task of a device.
        """
        routes = cls()
        for number, name, source, destination in edges:
            edge = (name, source, destination)
            sender = rank_of(DeviceName.parse(source))
            receiver = rank_of(DeviceName.parse(destination))
            if sender == receiver:
                continue
            if sender == rank:
                routes.outgoing[edge] = (receiver, number)
            elif receiver == rank:
                routes.incoming[edge] = number
        return routes


def _value(frame: Frame) -> Any:
    return DEAD if frame.dead else frame.payload


@final
class StepRendezvous:
    """The rendezvous of one step on this rank."""

    __slots__ = (
        *("_closed", "_lock", "_received", "_routes", "_sent", "_step", "_transport", "_values"),
        "_waiting",
    )

    def __init__(self, step: int, routes: Routes, transport: Transport) -> None:
        self._step = step
        self._routes = routes
        self._transport = transport
        # By the number of an edge that comes from another rank and the count of its values; by
        # all that names a transfer within this one.
        self._values: dict[Place, Any] = {}
        self._waiting: dict[Place, Receive] = {}
        self._sent: dict[int, int] = {}
        self._received: dict[int, int] = {}
        self._closed: BaseException | None = None
        self._lock = threading.Lock()

    def send(self, key: Key, value: Any) -> None:
        """Hand over a value, to another rank where that is where it goes."""
        edge = (key.edge, key.source, key.destination)
        route = self._routes.outgoing.get(edge)
        if route is None:
            self.deliver(key, value)
            return
        rank, number = route
        dead = value is DEAD
        flags, payload = (FLAG_DEAD, None) if dead else (0, value)
        # Only the thread that runs the step sends for it.
        count = self._sent.get(number, 0)
        self._sent[number] = count + 1
        self._transport.send(rank, Frame(Kind.TENSOR, self._step, number, count, flags, payload))

    def deliver(self, place: Place, value: Any) -> None:
        """Give a value to who waits for it, or keep it; drop it if the step is over."""
        with self._lock:
            if self._closed is not None:
                return
            receive = self._waiting.pop(place, None)
            if receive is None:
                self._values[place] = value
                return
        receive(value)

    def recv(self, key: Key, receive: Receive) -> None:
        """Call ``receive`` with the value, at once where it is there already."""
        edge = (key.edge, key.source, key.destination)
        number = self._routes.incoming.get(edge)
        with self._lock:
            place: Place = key
            if number is not None:
                count = self._received.get(number, 0)
                self._received[number] = count + 1
                place = (number, count)
            if self._closed is not None:
                value: Any = self._closed
            elif place in self._values:
                value = self._values.pop(place)
            else:
                self._waiting[place] = receive
                return
        receive(value)

    def wait(self, completions: SimpleQueue[Any]) -> Any:
        """Return the next completion, receiving for this rank meanwhile."""
        return self._transport.take(completions)

    def close(self, step: int, reason: BaseException | None = None) -> None:
        """Drop the step's values, and fail what waits for them with ``reason``."""
        with self._lock:
            if self._closed is None:
                self._closed = reason or CancelledError(f"step {step} has ended")
            why = self._closed
            self._values.clear()
            orphans = list(self._waiting.values())
            self._waiting.clear()
        for receive in orphans:
            receive(why)


@final
class Exchange:
    """The rendezvous of all steps on this rank, fed by the TENSOR frames that arrive."""

    def __init__(self, transport: Transport) -> None:
        """Receive the TENSOR frames of ``transport``."""
        self._transport = transport
        self._open: dict[int, StepRendezvous] = {}
        self._early: dict[int, list[Frame]] = {}
        self._failed: set[int] = set()
        self._floors: dict[int, int] = {}
        self._lock = threading.Lock()
        transport.on(Kind.TENSOR, self._arrived)

    def open(self, step: int, routes: Routes) -> StepRendezvous:
        """Begin a step: make its rendezvous, with what came early."""
        rendezvous = StepRendezvous(step, routes, self._transport)
        with self._lock:
            self._open[step] = rendezvous
            early = self._early.pop(step, None) if self._early else None
        for frame in early or ():
            rendezvous.deliver((frame.edge, frame.iteration), _value(frame))
        return rendezvous

    def end(self, step: int, *, failed: bool) -> None:
        """Forget a step.

        Args:
            step: The step.
            failed: Whether values of it may still come, which are dropped then.
        """
        with self._lock:
            rendezvous = self._open.pop(step, None)
            if failed and client_of(step) != self._transport.rank:
                self._failed.add(step)
        if rendezvous is not None:
            rendezvous.close(step)

    def raise_floor(self, client: int, floor: int) -> None:
        """Note that all steps of a client below ``floor`` are over, on every rank."""
        with self._lock:
            if floor <= self._floors.get(client, 0):
                return
            self._floors[client] = floor
            if self._failed:
                self._failed = {s for s in self._failed if not self._is_over(s)}
            if self._early:
                self._early = {s: f for s, f in self._early.items() if not self._is_over(s)}

    def _is_over(self, step: int) -> bool:
        return step < self._floors.get(client_of(step), 0)

    def _arrived(self, source: int, frame: Frame) -> None:
        step = frame.step
        with self._lock:
            rendezvous = self._open.get(step)
            if rendezvous is None:
                ours = client_of(step) == self._transport.rank
                if not (ours or step in self._failed or self._is_over(step)):
                    self._early.setdefault(step, []).append(frame)
                return
        rendezvous.deliver((frame.edge, frame.iteration), _value(frame))

    @property
    def kept(self) -> int:
        """Number of steps of which something is kept; for tests."""
        return len(self._open) + len(self._early) + len(self._failed)
