"""The rendezvous between ranks: values meet by step and edge, whatever comes first."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

from headrace.device_name import DeviceName
from headrace.errors import CancelledError
from headrace.runtime.transfers.rendezvous import DEAD, Edge
from headrace_mpi.steps.rendezvous import Exchange, Routes, client_of, first_step
from headrace_mpi.transport import wire
from headrace_mpi.transport.bundles import BUNDLED_BYTES, MAX_BUNDLE_BYTES, unbundle
from headrace_mpi.transport.wire import FLAG_DEAD, Frame, Header, Kind

PS = "/job:ps/task:0/device:cpu:0"
WORKER = "/job:worker/task:0/device:cpu:0"
EDGES = [(1, "x:0", WORKER, PS, 0), (2, "y:0", PS, WORKER, 0)]
CLIENT = 1


def rank_of(device: DeviceName) -> int:
    return {"ps": 0, "worker": 1}[device.job or ""]


class FakeTransport:
    """Takes the place of a transport: frames go into a list."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.sent: list[tuple[int, Frame]] = []
        self.handlers: dict[Kind, Any] = {}
        self.room: Any = None

    def on(self, kind: Kind, handler: Any) -> None:
        self.handlers[kind] = handler

    def send(self, rank: int, frame: Frame) -> bool:
        self.sent.append((rank, frame))
        return True

    def arrive(
        self, step: int, edge: int, payload: Any = None, flags: int = 0, count: int = 0
    ) -> None:
        frame = Frame(Kind.TENSOR, step, edge, count, flags, payload)
        self.handlers[Kind.TENSOR](CLIENT, frame)


@pytest.fixture
def wires() -> FakeTransport:
    return FakeTransport(rank=0)


@pytest.fixture
def exchange(wires: FakeTransport) -> Exchange:
    return Exchange(wires)  # type: ignore[arg-type]


ROUTES = Routes.of(EDGES, 0, rank_of)
STEP = first_step(CLIENT) + 1


class Run(NamedTuple):
    """A run of a graph: a step, or a function in it."""

    id: int = STEP
    invocation: str = ""


RUN = Run()
INCOMING, OUTGOING = Edge("x:0", WORKER, PS), Edge("y:0", PS, WORKER)
WITHIN = Edge("z:0", PS, "/job:ps/task:0/device:cpu:1")


def test_routes_know_both_directions() -> None:
    assert ROUTES.incoming == {("x:0", WORKER, PS): 1}
    assert ROUTES.outgoing == {("y:0", PS, WORKER): (1, 2, 0)}
    other = Routes.of(EDGES, 1, rank_of)
    assert (other.incoming, other.outgoing) == (
        {("y:0", PS, WORKER): 2},
        {("x:0", WORKER, PS): (0, 1, 0)},
    )


def test_steps_of_clients_are_apart() -> None:
    assert client_of(STEP) == CLIENT
    assert client_of(first_step(7)) == 7
    assert first_step(2**20 - 1) < 2**64


def test_a_value_for_another_rank_travels_under_numbers(
    exchange: Exchange, wires: FakeTransport
) -> None:
    step = exchange.open(STEP, ROUTES)
    step.send(RUN, OUTGOING, 3)
    step.send(RUN, OUTGOING, DEAD)
    assert wires.sent == [
        (1, Frame(Kind.TENSOR, STEP, 2, 0, 0, 3)),
        (1, Frame(Kind.TENSOR, STEP, 2, 1, FLAG_DEAD, None)),
    ]


def test_a_value_within_the_rank_stays_there(exchange: Exchange, wires: FakeTransport) -> None:
    step = exchange.open(STEP, ROUTES)
    got: list[Any] = []
    step.send(RUN, WITHIN, 5)
    step.recv(RUN, WITHIN, got.append)
    step.recv(RUN, WITHIN, got.append)
    step.send(RUN, WITHIN, 6)
    assert got == [5, 6]
    assert not wires.sent


def test_the_values_of_an_edge_are_received_in_the_order_of_their_counts(
    exchange: Exchange, wires: FakeTransport
) -> None:
    step = exchange.open(STEP, ROUTES)
    got: list[Any] = []
    # A large value travels apart, and may come after a small one that was sent later.
    wires.arrive(STEP, 1, "second", count=1)
    for invocation in ("loop#0/", "loop#1/", "loop#2/"):
        step.recv(Run(STEP, invocation), INCOMING, got.append)
    assert got == ["second"]
    wires.arrive(STEP, 1, "third", count=2)
    wires.arrive(STEP, 1, "first", count=0)
    assert got == ["second", "third", "first"]


def test_within_a_rank_invocations_tell_iterations_apart(exchange: Exchange) -> None:
    step = exchange.open(STEP, ROUTES)
    got: list[Any] = []
    first, later = Run(STEP, "loop#0/"), Run(STEP, "loop#1/")
    step.send(later, WITHIN, 2)
    step.send(first, WITHIN, 1)
    step.recv(first, WITHIN, got.append)
    step.recv(later, WITHIN, got.append)
    assert got == [1, 2]


def test_values_come_before_the_step_or_after_the_recv(
    exchange: Exchange, wires: FakeTransport
) -> None:
    got: list[Any] = []
    wires.arrive(STEP, 1, "early")
    exchange.open(STEP, ROUTES).recv(Run(STEP), INCOMING, got.append)
    step = exchange.open(STEP + 1, ROUTES)
    step.recv(Run(STEP + 1), INCOMING, got.append)
    wires.arrive(STEP + 1, 1, flags=FLAG_DEAD)
    assert got == ["early", DEAD]


def test_steps_do_not_mix(exchange: Exchange, wires: FakeTransport) -> None:
    got: dict[int, list[Any]] = {}
    for step in (STEP, STEP + 1):
        values = got[step] = []
        exchange.open(step, ROUTES).recv(Run(step), INCOMING, values.append)
    wires.arrive(STEP + 1, 1, "second")
    wires.arrive(STEP, 1, "first")
    assert got == {STEP: ["first"], STEP + 1: ["second"]}


def test_closing_a_step_fails_what_waits(exchange: Exchange, wires: FakeTransport) -> None:
    step = exchange.open(STEP, ROUTES)
    got: list[Any] = []
    reason = CancelledError("over")
    step.recv(Run(STEP), INCOMING, got.append)
    step.close(STEP, reason)
    step.recv(Run(STEP), INCOMING, got.append)
    wires.arrive(STEP, 1, "late")
    assert got == [reason, reason]


BUNDLED = [(i, f"v{i}:0", PS, WORKER, 1) for i in range(1, 5)]


def bundled(number: int) -> Edge:
    return Edge(f"v{number}:0", PS, WORKER)


class Wanted:
    """Transfers that a plan waits for together."""

    def __init__(self, *edges: Edge) -> None:
        self.edges = edges


def test_values_that_are_waited_for_together_come_once_all_are_there(
    wires: FakeTransport, exchange: Exchange
) -> None:
    there = FakeTransport(rank=1)
    received = Exchange(there).open(STEP, Routes.of(BUNDLED, 1, rank_of))  # type: ignore[arg-type]
    wanted, come = Wanted(*(bundled(n) for n in range(1, 5))), []
    for number in (2, 4, 1):
        there.arrive(STEP, number, number)
    assert received.collect(RUN, wanted, lambda: come.append(1)) is None
    assert not come
    there.arrive(STEP, 3, 3)
    assert come == [1]
    assert received.collect(RUN, wanted, lambda: come.append(2)) == [1, 2, 3, 4]


def test_values_of_this_rank_and_of_others_can_be_waited_for_together(
    wires: FakeTransport, exchange: Exchange
) -> None:
    step = exchange.open(STEP, ROUTES)
    wanted, come = Wanted(INCOMING, WITHIN), []
    assert step.collect(RUN, wanted, lambda: come.append(1)) is None
    step.send(RUN, WITHIN, "near")
    wires.arrive(STEP, 1, "far")
    assert come == [1]
    assert step.collect(RUN, wanted, lambda: come.append(2)) == ["far", "near"]


def test_the_end_of_a_step_ends_what_waits_for_several_values(exchange: Exchange) -> None:
    step = exchange.open(STEP, ROUTES)
    reason, come = CancelledError("over"), []
    assert step.collect(RUN, Wanted(INCOMING), lambda: come.append(1)) is None
    step.close(STEP, reason)
    assert come == [1]
    with pytest.raises(CancelledError, match="over"):
        step.collect(RUN, Wanted(INCOMING), lambda: come.append(2))


def test_late_values_of_a_failed_step_are_dropped(exchange: Exchange, wires: FakeTransport) -> None:
    exchange.open(STEP, ROUTES)
    exchange.end(STEP, failed=True)
    wires.arrive(STEP, 1, "late")
    assert exchange.kept == 1
    exchange.raise_floor(CLIENT, STEP + 1)
    assert exchange.kept == 0
    wires.arrive(STEP, 1, "very late")
    assert exchange.kept == 0


def test_early_values_of_a_step_that_never_came_are_dropped(
    exchange: Exchange, wires: FakeTransport
) -> None:
    wires.arrive(STEP, 1, "orphan")
    assert exchange.kept == 1
    exchange.raise_floor(CLIENT, STEP + 1)
    exchange.raise_floor(CLIENT, STEP)
    assert exchange.kept == 0


def test_late_values_of_own_steps_are_dropped(exchange: Exchange, wires: FakeTransport) -> None:
    own = first_step(0) + 1
    exchange.open(own, ROUTES)
    exchange.end(own, failed=True)
    wires.arrive(own, 1, "late")
    assert exchange.kept == 0


def travelled(frame: Frame) -> Frame:
    """Return a frame as it arrives."""
    return wire.parse(wire.encode(frame).message())


def test_small_values_of_a_bundle_travel_with_the_last_one(
    wires: FakeTransport, exchange: Exchange
) -> None:
    rendezvous = exchange.open(STEP, Routes.of(BUNDLED, 0, rank_of))
    for number in (3, 1, 4):
        rendezvous.send(RUN, bundled(number), np.full(2, number, np.float32))
    assert not wires.sent
    rendezvous.send(RUN, bundled(2), np.full(2, 2, np.float32))
    ((rank, frame),) = wires.sent
    assert (rank, frame.kind, frame.step) == (1, Kind.BUNDLE, STEP)
    there = FakeTransport(rank=1)
    other = Exchange(there)  # type: ignore[arg-type]
    received = other.open(STEP, Routes.of(BUNDLED, 1, rank_of))
    there.handlers[Kind.BUNDLE](0, travelled(frame))
    found: dict[int, Any] = {}
    for number in range(1, 5):
        received.recv(RUN, bundled(number), functools.partial(found.__setitem__, number))
    assert {n: v.tolist() for n, v in found.items()} == {n: [n, n] for n in range(1, 5)}


def test_a_whole_bundle_is_handed_over_at_one_go(wires: FakeTransport, exchange: Exchange) -> None:
    values = [np.full(2, number, np.float32) for number in range(1, 5)]
    given = Wanted(*(bundled(number) for number in range(1, 5)))
    together = exchange.open(STEP, Routes.of(BUNDLED, 0, rank_of))
    together.send_together(RUN, given, values)
    alone = exchange.open(STEP + 1, Routes.of(BUNDLED, 0, rank_of))
    for edge, value in zip(given.edges, values, strict=True):
        alone.send(RUN, edge, value)
    (_, first), (_, other) = wires.sent
    assert (first.kind, first.step, other.step) == (Kind.BUNDLE, STEP, STEP + 1)
    assert first.payload.tobytes() == other.payload.tobytes()
    # The next iteration of a loop: values of each edge are counted.
    together.send_together(RUN, given, values)
    assert [wires.sent[0][1].iteration, wires.sent[2][1].iteration] == [0, 1]


@pytest.mark.parametrize("kind", ["a part", "large", "a string", "no array"])
def test_what_is_no_whole_bundle_is_sent_value_by_value(
    wires: FakeTransport, exchange: Exchange, kind: str
) -> None:
    values: list[Any] = [np.full(2, number, np.float32) for number in range(1, 5)]
    if kind == "large":
        values[1] = np.zeros(BUNDLED_BYTES + 1, np.uint8)
    elif kind == "a string":
        values[1] = np.array([b"a"], object)
    elif kind == "no array":
        values[1] = np.float32(2)
    last = 3 if kind == "a part" else 4
    given = Wanted(*(bundled(number) for number in range(1, last + 1)))
    rendezvous = exchange.open(STEP, Routes.of(BUNDLED, 0, rank_of))
    rendezvous.send_together(RUN, given, values[:last])
    kinds = [frame.kind for _, frame in wires.sent]
    apart = [Kind.TENSOR, Kind.BUNDLE]
    assert kinds == {"a part": [], "no array": [Kind.BUNDLE]}.get(kind, apart)


def test_large_values_and_strings_of_a_bundle_travel_at_once(
    wires: FakeTransport, exchange: Exchange
) -> None:
    rendezvous = exchange.open(STEP, Routes.of(BUNDLED, 0, rank_of))
    large, strings = np.zeros(BUNDLED_BYTES + 1, np.uint8), np.array([b"a"], object)
    rendezvous.send(RUN, bundled(1), np.float32(1))
    rendezvous.send(RUN, bundled(2), large)
    rendezvous.send(RUN, bundled(3), strings)
    assert [frame.payload is large or frame.payload is strings for _, frame in wires.sent] == [
        True,
        True,
    ]
    rendezvous.send(RUN, bundled(4), np.zeros(0, np.int64))
    assert [frame.kind for _, frame in wires.sent] == [Kind.TENSOR, Kind.TENSOR, Kind.BUNDLE]


def test_a_bundle_holds_back_no_more_than_it_may(wires: FakeTransport, exchange: Exchange) -> None:
    rendezvous = exchange.open(
        STEP, Routes.of([(i, f"v{i}:0", PS, WORKER, 1) for i in range(1, 11)], 0, rank_of)
    )
    part = np.zeros(BUNDLED_BYTES, np.uint8)
    for number in range(1, 11):
        rendezvous.send(RUN, bundled(number), part)
    sizes = [frame.payload.size for _, frame in wires.sent]
    assert len(sizes) == 3
    assert max(sizes) < MAX_BUNDLE_BYTES + BUNDLED_BYTES


def test_each_iteration_has_a_bundle_of_its_own(wires: FakeTransport, exchange: Exchange) -> None:
    rendezvous = exchange.open(STEP, Routes.of(BUNDLED, 0, rank_of))
    for iteration in range(3):
        for number in range(1, 5):
            rendezvous.send(RUN, bundled(number), np.int32(iteration))
    counts = [[spot[1] for spot, _ in unbundle(travelled(f))] for _, f in wires.sent]
    assert counts == [[i] * 4 for i in range(3)]


def test_large_values_come_into_memory_used_before_unless_the_program_gets_them(
    wires: FakeTransport, exchange: Exchange
) -> None:
    header = Header(Kind.TENSOR, STEP, 1, 0, 0, 2, (1 << 19,), 1 << 21, 7, 48)
    exchange.open(STEP, ROUTES)
    first = wires.room(header, (1 << 19,), np.float32)
    place = first.ctypes.data
    held = first[:1]
    assert wires.room(header, (1 << 19,), np.float32).ctypes.data != place
    del first, held
    assert wires.room(header, (1 << 19,), np.float32).base is not None
    fetched = Routes.of(EDGES, 0, rank_of)
    fetched.fetched.add(1)
    exchange.end(STEP, failed=False)
    exchange.open(STEP, fetched)
    assert wires.room(header, (1 << 19,), np.float32).base is None
