"""Where values meet between ranks: a rendezvous for each step, with TENSOR frames behind it.

The transfers of a step are numbered when it is registered, so a value travels under two numbers,
its step's and its edge's; no name does. Values may come before their step has begun here, because
ranks start at their own pace: they are kept. What comes after a step has ended here is dropped;
with each step a client says which of its steps are over, so nothing has to be remembered of those.

An edge inside a loop carries one value in each iteration. Both ends go through the iterations in
the same order, so the values of an edge are counted at both ends, and no iteration has a name.

Small values of one *bundle* travel in one frame: those that one rank sends to another in the same
round of the step, and that the receiver waits for together (``communication_rounds.py`` in core).
The last of them takes those before it along; none of them is made from what another one lets the
receiver do, so holding them back holds up nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from headrace.errors import CancelledError
from headrace.extend.devices import DeviceName
from headrace.extend.faults import fault_point
from headrace.extend.runtime import DEAD, Edge, Place, Receive, Together, Wakeup
from headrace_mpi.transport.buffers import Buffers
from headrace_mpi.transport.bundles import (
    BUNDLED_BYTES,
    MAX_BUNDLE_BYTES,
    BundleTemplate,
    Value,
    bundle,
    is_bundled,
    unbundle,
)
from headrace_mpi.transport.mpi_channel import INLINE_BYTES
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import FLAG_DEAD, Frame, Header, Kind, frame_of

_RANK_SHIFT = 44
# Looking a member of an enumeration up takes as long as comparing five.
_TENSOR = Kind.TENSOR
# Buffers for arriving values that are kept while nobody holds them.
_IDLE_BUFFERS = 64

# The number of a transfer, its edge, and its bundle: 0 for none.
NumberedEdge = tuple[int, str, str, str, int]
# Where a value meets who waits for it: the number of its edge and which of the edge's values it is;
# within this rank the edge and the invocation.
Spot = tuple[int, int] | tuple[Edge, str]


def first_step(rank: int) -> int:
    """Return the number before the first step of a rank's clients; no two ranks share numbers."""
    return rank << _RANK_SHIFT


def client_of(step: int) -> int:
    """Return the rank of the client that started a step."""
    return step >> _RANK_SHIFT


def number_of(step: int) -> int:
    """Return how messages number a step: among those of its client."""
    return step & ((1 << _RANK_SHIFT) - 1)


@dataclass(frozen=True, slots=True)
class Routes:
    """The transfers of a registered step that cross this rank's border.

    Attributes:
        outgoing: For each edge that leaves, the rank that receives, its number and its bundle.
        incoming: For each edge that arrives, its number.
        bundles: How many values each bundle that leaves has.
        fetched: The edges whose values are handed to the program.
    """

    outgoing: dict[Edge, tuple[int, int, int]] = field(default_factory=dict)
    incoming: dict[Edge, int] = field(default_factory=dict)
    bundles: dict[int, int] = field(default_factory=dict)
    fetched: set[int] = field(default_factory=set)
    _spots: dict[Together, tuple[Spot, ...]] = field(default_factory=dict)
    _whole: dict[Together, tuple[int, dict[int, int], BundleTemplate] | None] = field(
        default_factory=dict
    )

    def whole_bundle(self, given: Together) -> tuple[int, dict[int, int], BundleTemplate] | None:
        """Return where values go that a plan hands over together, if they are a whole bundle.

        Returns:
            The rank, the number of each edge with the count of its values after one, and what
            bundles them; None if they are no bundle, or not all of one.
        """
        if given in self._whole:
            return self._whole[given]
        found = None
        routes = {self.outgoing.get(edge, (-1, 0, 0)) for edge in given.edges}
        ways = {(rank, together) for rank, _, together in routes}
        if len(ways) == 1:
            ((rank, together),) = ways
            if together and self.bundles[together] == len(routes):
                counts = {self.outgoing[edge][1]: 1 for edge in given.edges}
                found = rank, counts, BundleTemplate(list(counts))
        self._whole[given] = found
        return found

    def spots(self, wanted: Together) -> tuple[Spot, ...]:
        """Return where values come that a plan waits for together; empty if not all from others.

        Such a plan runs once in the step.
        """
        found = self._spots.get(wanted)
        if found is None:
            edges, incoming = wanted.edges, self.incoming
            far = all(edge in incoming for edge in edges)
            found = self._spots[wanted] = tuple((incoming[e], 0) for e in edges) if far else ()
        return found

    @classmethod
    def of(
        cls, edges: Iterable[NumberedEdge], rank: int, rank_of: Callable[[DeviceName], int]
    ) -> Routes:
        """Return the routes of ``rank``.

        Args:
            edges: Number, tensor, source, destination and bundle of transfers.
            rank: The rank.
            rank_of: Returns the rank that plays the task of a device.
        """
        routes = cls()
        for number, name, source, destination, together in edges:
            edge = Edge(name, source, destination)
            sender = rank_of(DeviceName.parse(source))
            receiver = rank_of(DeviceName.parse(destination))
            if sender == receiver:
                continue
            if sender == rank:
                routes.outgoing[edge] = (receiver, number, together)
                if together:
                    routes.bundles[together] = routes.bundles.get(together, 0) + 1
            elif receiver == rank:
                routes.incoming[edge] = number
        for edge, (receiver, number, together) in routes.outgoing.items():
            if routes.bundles.get(together) == 1:
                # It waits for no others.
                routes.outgoing[edge] = (receiver, number, 0)
        return routes


def _own(value: Any) -> Any:
    """Return a value in memory of its own, where it lies in memory that another rank lends.

    Programs keep what they fetch, and what is lent is to come back.
    """
    lent = isinstance(value, np.ndarray) and value.nbytes > INLINE_BYTES and value.base is not None
    return value.copy() if lent else value


class _Held:
    """Values of a bundle that wait for the others."""

    __slots__ = ("missing", "nbytes", "values")

    def __init__(self, missing: int) -> None:
        self.missing = missing
        self.values: list[Value] = []
        self.nbytes = 0


@final
class StepRendezvous:
    """The rendezvous of one step on this rank.

    Attributes:
        step: The number of the step; who makes it before its step begins sets that then.
    """

    __slots__ = (
        *("_closed", "_come", "_held", "_lock", "_missing", "_received", "_routes", "_sent"),
        *("_transport", "_values", "_waiting", "step"),
    )

    def __init__(self, step: int, routes: Routes, transport: Transport) -> None:
        self.step = step
        self._routes = routes
        self._transport = transport
        # By the number of an edge that comes from another rank and the count of its values; by
        # all that names a transfer within this one.
        self._values: dict[Spot, Any] = {}
        self._waiting: dict[Spot, Receive] = {}
        # What the run collects and has not come, and what to call then.
        self._missing: set[Spot] | None = None
        self._come: Callable[[], None] | None = None
        self._sent: dict[int, int] = {}
        self._held: dict[int, _Held] = {}
        self._received: dict[int, int] = {}
        # Why it was closed; True where the step has simply ended.
        self._closed: BaseException | bool = False
        self._lock = threading.Lock()

    def send(self, place: Place, edge: Edge, value: Any) -> None:
        """Hand over a value, to another rank where that is where it goes."""
        route = self._routes.outgoing.get(edge)
        if route is None:
            self.deliver((edge, place.invocation), value)
            return
        fault_point("transfer")
        rank, number, together = route
        # Only the thread that runs the step sends for it.
        count = self._sent.get(number, 0)
        self._sent[number] = count + 1
        if together:
            self._hold(rank, together, number, count, value)
        else:
            self._transport.send(rank, self._frame(number, count, value))

    def send_together(self, place: Place, given: Together, values: Sequence[Any]) -> None:
        """Hand over values, those of a bundle at one go."""
        edges = given.edges
        whole = None if len(edges) == 1 else self._routes.whole_bundle(given)
        if whole is not None and not self._sent:
            rank, counts, template = whole
            frame = template.bundle(self.step, values)
            if frame is not None:
                fault_point("transfer")
                self._sent.update(counts)
                self._transport.send(rank, frame)
                return
        for edge, value in zip(edges, values, strict=True):
            self.send(place, edge, value)

    def _frame(self, number: int, count: int, value: Any) -> Frame:
        if value is DEAD or value is None:
            return frame_of((_TENSOR, self.step, number, count, FLAG_DEAD, None))
        return frame_of((_TENSOR, self.step, number, count, 0, value))

    def _hold(self, rank: int, together: int, number: int, count: int, value: Any) -> None:
        """Send a value of a bundle with the last one of it, unless it is large."""
        held = self._held.get(together)
        if held is None:
            held = self._held[together] = _Held(self._routes.bundles[together])
        held.missing -= 1
        if value is DEAD:
            held.values.append(Value(number, count, None))
        else:
            array = value if type(value) is np.ndarray else np.asarray(value)
            nbytes = array.nbytes
            if nbytes <= BUNDLED_BYTES and is_bundled(array.dtype):
                held.values.append(Value(number, count, array))
                held.nbytes += nbytes
            else:
                self._transport.send(rank, self._frame(number, count, value))
        if held.missing and held.nbytes < MAX_BUNDLE_BYTES:
            return
        values = held.values
        if held.missing:
            held.values, held.nbytes = [], 0
        else:
            # In a loop, the next iteration has a bundle of its own.
            del self._held[together]
        if len(values) == 1:
            self._transport.send(rank, self._frame(*values[0]))
        elif values:
            self._transport.send(rank, bundle(self.step, values))

    @property
    def fetched(self) -> set[int]:
        """The edges whose values are handed to the program."""
        return self._routes.fetched

    def arrive_together(self, values: Sequence[tuple[tuple[int, int], Any]]) -> None:
        """Give values from another rank to who waits for them, or keep them.

        Args:
            values: For each its number and count, and the value, None where it is dead.
        """
        fetched = self._routes.fetched
        given: dict[Spot, Any] = {spot: DEAD if value is None else value for spot, value in values}
        if fetched:
            for spot, value in values:
                if spot[0] in fetched and value is not None:
                    # What the program keeps must not hold the memory of all others.
                    given[spot] = value.copy()
        come = None
        receives: list[tuple[Receive, Any]] = []
        with self._lock:
            if self._closed:
                return
            waiting = self._waiting
            if waiting:
                awaited = [spot for spot in given if spot in waiting]
                receives = [(waiting.pop(spot), given.pop(spot)) for spot in awaited]
            self._values.update(given)
            missing = self._missing
            if missing is not None:
                missing.difference_update(given)
                if not missing:
                    come, self._missing, self._come = self._come, None, None
        for receive, value in receives:
            receive(value)
        if come is not None:
            come()

    def arrive(self, frame: Frame) -> None:
        """Give a value from another rank to who waits for it, or keep it."""
        _, _, number, count, flags, value = frame
        if flags & FLAG_DEAD:
            value = DEAD
        elif number in self._routes.fetched:
            value = _own(value)
        self.deliver((number, count), value)

    def deliver(self, spot: Spot, value: Any) -> None:
        """Give a value to who waits for it, or keep it; drop it if the step is over."""
        with self._lock:
            if self._closed:
                return
            receive = self._waiting.pop(spot, None) if self._waiting else None
            if receive is None:
                self._values[spot] = value
                missing = self._missing
                if missing is None:
                    return
                missing.discard(spot)
                if missing:
                    return
                come, self._missing, self._come = self._come, None, None
        if receive is not None:
            receive(value)
        elif come is not None:
            come()

    def recv(self, place: Place, edge: Edge, receive: Receive) -> None:
        """Call ``receive`` with the value, at once where it is there already."""
        with self._lock:
            spot = self._spot(place, edge)
            if self._closed:
                value: Any = self._reason(self._closed)
            elif spot in self._values:
                value = self._values.pop(spot)
            else:
                self._waiting[spot] = receive
                return
        receive(value)

    def _spot(self, place: Place, edge: Edge) -> Spot:
        """Return where the next value of an edge comes."""
        number = self._routes.incoming.get(edge)
        if number is None:
            return edge, place.invocation
        count = self._received.get(number, 0)
        self._received[number] = count + 1
        return number, count

    def collect(self, place: Place, wanted: Together, come: Callable[[], None]) -> list[Any] | None:
        """Return the values of several transfers, or None until ``come`` was called."""
        spots: Sequence[Spot] = self._routes.spots(wanted)
        if not spots:
            incoming = self._routes.incoming
            spots = [
                (incoming[edge], 0) if edge in incoming else (edge, place.invocation)
                for edge in wanted.edges
            ]
        values = self._values
        with self._lock:
            if self._closed:
                raise self._reason(self._closed)
            # Most are asked for before anything has come, or when all has.
            missing = {spot for spot in spots if spot not in values} if values else {*spots}
            if missing:
                self._missing, self._come = missing, come
                return None
            if len(spots) == len(values):
                found = [values[spot] for spot in spots] if len(spots) > 1 else [*values.values()]
                values.clear()
                return found
            return [values.pop(spot) for spot in spots]

    def waits(self) -> list[tuple[str, str]]:
        """Return the tensors from other ranks that are waited for, each with its source."""
        with self._lock:
            numbers = {spot[0] for spot in (*self._waiting, *(self._missing or ()))}
        return [
            (name, source)
            for (name, source, _), number in self._routes.incoming.items()
            if number in numbers
        ]

    def wait(self, wakeup: Wakeup, timeout: float | None = None) -> bool:
        """Wait until woken, receiving for this rank meanwhile; without a timeout."""
        return self._transport.wait(wakeup)

    def end(self) -> None:
        """Take nothing more: the step has ended, and nothing of it waits."""
        self._closed = True
        if self._values or self._waiting or self._come is not None:
            self.close(self.step)

    def close(self, step: int, reason: BaseException | None = None) -> None:
        """Drop the step's values, and fail what waits for them with ``reason``."""
        with self._lock:
            closed = self._closed = self._closed or reason or True
            self._values.clear()
            come, self._missing, self._come = self._come, None, None
            if not self._waiting and come is None:
                return
            orphans = list(self._waiting.values())
            self._waiting.clear()
        why = self._reason(closed)
        for receive in orphans:
            receive(why)
        if come is not None:
            come()

    def _reason(self, closed: BaseException | bool) -> BaseException:
        if isinstance(closed, BaseException):
            return closed
        return CancelledError(f"step {self.step} has ended")


@final
class Exchange:
    """The rendezvous of all steps on this rank, fed by the TENSOR frames that arrive."""

    def __init__(self, transport: Transport) -> None:
        """Receive the TENSOR frames of ``transport``."""
        self._transport = transport
        self._open: dict[int, StepRendezvous] = {}
        # The values that came early, by step: for each where it comes, and None for a dead one.
        self._early: dict[int, list[tuple[tuple[int, int], Any]]] = {}
        self._failed: set[int] = set()
        self._floors: dict[int, int] = {}
        self._lock = threading.Lock()
        self._buffers = Buffers(_IDLE_BUFFERS)
        transport.room = self._room
        transport.on(Kind.TENSOR, self._on_tensor)
        transport.on(Kind.BUNDLE, self._on_bundle)

    def _room(self, header: Header, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array for a large value that arrives, in memory that was used before.

        What the program gets is its own, and would have to be copied out of that.
        """
        rendezvous = self._open.get(header.step)
        if rendezvous is not None and header.edge in rendezvous.fetched:
            return np.empty(shape, dtype)
        return self._buffers.empty(shape, dtype)

    def open(self, step: int, routes: Routes, floor: int = 0) -> StepRendezvous:
        """Begin a step: make its rendezvous, with what came early.

        Args:
            step: The step.
            routes: Its transfers.
            floor: All steps of its client below this one are over, on every rank.
        """
        rendezvous = self.prepare(routes)
        self.begin(rendezvous, step, floor)
        return rendezvous

    def prepare(self, routes: Routes) -> StepRendezvous:
        """Make the rendezvous of a step that is to begin."""
        return StepRendezvous(0, routes, self._transport)

    def begin(self, rendezvous: StepRendezvous, step: int, floor: int = 0) -> None:
        """Begin a step with a rendezvous that was made for it; as ``open``."""
        rendezvous.step = step
        with self._lock:
            self._open[step] = rendezvous
            early = self._early.pop(step, None) if self._early else None
            if floor:
                self._raise_floor(client_of(step), floor)
        # Nothing comes to a client's step before that has begun, so none of this is fetched.
        if early:
            rendezvous.arrive_together(early)

    def end(self, step: int, *, failed: bool) -> None:
        """Forget a step.

        Args:
            step: The step.
            failed: Whether values of it may still come, which are dropped then.
        """
        if not failed:
            rendezvous = self._open.pop(step, None)
            if rendezvous is not None:
                rendezvous.end()
            return
        with self._lock:
            rendezvous = self._open.pop(step, None)
            ours = client_of(step) == self._transport.rank
            if not (ours or self._is_over(step)):
                self._failed.add(step)
        if rendezvous is not None:
            rendezvous.close(step)

    def raise_floor(self, client: int, floor: int) -> None:
        """Note that all steps of a client below ``floor`` are over, on every rank."""
        with self._lock:
            self._raise_floor(client, floor)

    def _raise_floor(self, client: int, floor: int) -> None:
        if floor <= self._floors.get(client, 0):
            return
        self._floors[client] = floor
        if self._failed:
            self._failed = {s for s in self._failed if not self._is_over(s)}
        if self._early:
            self._early = {s: f for s, f in self._early.items() if not self._is_over(s)}

    def lose_client(self, client: int) -> None:
        """Drop what is kept for steps of a client that is lost: no other one will begin."""
        self.raise_floor(client, first_step(client + 1))

    def _is_over(self, step: int) -> bool:
        return step < self._floors.get(client_of(step), 0)

    def _on_tensor(self, source: int, frame: Frame) -> None:
        # Most come when their step has begun, and that needs no lock to see.
        rendezvous = self._open.get(frame.step)
        if rendezvous is None:
            value = None if frame.dead else frame.payload
            rendezvous = self._begun(frame.step, [((frame.edge, frame.iteration), value)])
        if rendezvous is not None:
            rendezvous.arrive(frame)

    def _on_bundle(self, source: int, frame: Frame) -> None:
        values = unbundle(frame)
        rendezvous = self._open.get(frame.step) or self._begun(frame.step, values)
        if rendezvous is not None:
            rendezvous.arrive_together(values)

    def _begun(
        self, step: int, values: Sequence[tuple[tuple[int, int], Any]]
    ) -> StepRendezvous | None:
        """Return the rendezvous of a step if it has begun; else keep what comes early."""
        with self._lock:
            rendezvous = self._open.get(step)
            if rendezvous is None:
                ours = client_of(step) == self._transport.rank
                if not (ours or step in self._failed or self._is_over(step)):
                    self._early.setdefault(step, []).extend(values)
            return rendezvous

    def waits(self) -> list[tuple[int, str, str]]:
        """Return what steps wait for: the step's number, the tensor and its source."""
        with self._lock:
            steps = list(self._open.items())
        return [(number_of(step), *wait) for step, part in steps for wait in part.waits()]

    @property
    def kept(self) -> int:
        """Number of steps of which something is kept; for tests."""
        return len(self._open) + len(self._early) + len(self._failed)
