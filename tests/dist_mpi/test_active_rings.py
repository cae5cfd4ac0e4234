"""Whose messages are read where more ranks than cores send some, and who has to wait."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from headrace_mpi.shared_memory.active_rings import BUSY, QUIET_S, TURN_S, ActiveRings, seats_on
from headrace_mpi.shared_memory.core_affinity import current_core
from tests.dist_mpi.linked import NEEDS_FUTEXES, Pair

LOOK_S = 1e-5


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


@NEEDS_FUTEXES
def test_messages_are_read_and_who_is_passed_over_is_told(pair: Pair) -> None:
    reader, peer = pair.ends
    seats = ActiveRings(reader, 1)
    assert seats.receive(8) == ()
    assert not peer.to[0].passed_over
    peer.to[0].send(b"one")
    peer.to[0].send(b"two")
    assert seats.receive(1) == [(1, bytearray(b"one"))]
    assert reader.waiting, "one message is left"
    assert seats.receive(8) == [(1, bytearray(b"two"))]
    assert not reader.waiting
    assert not peer.to[0].passed_over
    reader.pass_over(0, True)
    assert peer.to[0].passed_over
    reader.pass_over(0, False)
    assert not peer.to[0].passed_over


@NEEDS_FUTEXES
def test_others_are_told_where_a_rank_is_busy_until_it_rests(pair: Pair) -> None:
    reader, peer = pair.ends
    seats = ActiveRings(reader, 1)
    for _ in range(BUSY - 1):
        peer.to[0].send(b"one")
        assert len(seats.receive(8)) == 1
        assert peer.to[0].busy_core == -1
    peer.to[0].send(b"one")
    seats.receive(8)
    assert peer.to[0].busy_core in {-1, *range(4096)}
    assert (peer.to[0].busy_core >= 0) == (current_core() >= 0)
    seats.rest()
    assert peer.to[0].busy_core == -1


def test_all_cores_but_the_servers_have_seats() -> None:
    assert [seats_on(cores) for cores in (1, 2, 3, 8)] == [2, 2, 4, 14]


class Rings:
    """Rings that have a message when it is asked for, and a clock that reading moves on."""

    def __init__(self, count: int, has: Callable[[int, float], bool]) -> None:
        self.ranks = 1 + count
        self.now = 1.0
        self.passed: set[int] = set()
        self._has = has

    def monotonic(self) -> float:
        return self.now

    @property
    def waiting(self) -> bool:
        return any(self.has(index) for index in range(self.ranks - 1))

    def has(self, index: int) -> bool:
        return self._has(index, self.now)

    def tell_core(self, core: int) -> None:
        """Tell nobody."""

    def pass_over(self, index: int, passed: bool) -> None:
        (self.passed.add if passed else self.passed.discard)(index)

    def receive_from(self, index: int, into: list[tuple[int, bytearray]], most: int) -> None:
        into.append((index, bytearray()))


def read(
    monkeypatch: pytest.MonkeyPatch, rings: Rings, seats: int, seconds: float
) -> list[tuple[float, set[int]]]:
    """Read for so long, and return whose messages came each time, and when."""
    monkeypatch.setattr("headrace_mpi.shared_memory.active_rings.time", rings)
    reader = ActiveRings(rings, seats)  # type: ignore[arg-type]
    found = []
    while rings.now < 1.0 + seconds:
        came = [index for index, _ in reader.receive(8)]
        assert len(came) == len(set(came))
        found.append((rings.now, set(came)))
        rings.now += LOOK_S
    return found


@pytest.mark.parametrize(("count", "seats"), [(1, 1), (3, 4), (4, 4)])
def test_nobody_is_passed_over_where_there_are_seats_for_all(
    monkeypatch: pytest.MonkeyPatch, count: int, seats: int
) -> None:
    rings = Rings(count, lambda index, now: True)
    found = read(monkeypatch, rings, seats, 5 * TURN_S)
    assert all(came == set(range(count)) for _, came in found)
    assert not rings.passed


@pytest.mark.parametrize(("count", "seats"), [(2, 1), (5, 4), (8, 4), (16, 4), (9, 8)])
def test_those_that_always_send_get_equal_shares(
    monkeypatch: pytest.MonkeyPatch, count: int, seats: int
) -> None:
    rings = Rings(count, lambda index, now: True)
    rounds = 20 * count
    found = read(monkeypatch, rings, seats, rounds * TURN_S / seats)
    # Who takes a seat is read in the same round as who gives it up.
    assert max(len(came) for _, came in found) <= 2 * seats
    assert len(rings.passed) == count - seats
    shares = Counter(index for _, came in found for index in came)
    mean = sum(shares.values()) / count
    assert all(0.8 * mean < shares[index] < 1.25 * mean for index in range(count))
    # Nobody waits longer than all others' turns take.
    turns = -(-count // seats)
    for index in range(count):
        times = [1.0, *(at for at, came in found if index in came), found[-1][0]]
        longest = max(b - a for a, b in itertools.pairwise(times))
        assert longest <= (turns + 1) * TURN_S


def test_who_says_nothing_gives_its_seat_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    silent_from, comes_at = 1.0 + QUIET_S, 1.0 + 4 * QUIET_S

    def has(index: int, now: float) -> bool:
        if index == 2:
            return now >= comes_at
        return index == 1 or now < silent_from

    rings = Rings(3, has)
    found = read(monkeypatch, rings, 2, 3.9 * QUIET_S)
    # Nobody loses a seat that nobody else wants.
    assert rings.passed == {2}
    assert all(1 in came for _, came in found)
    rings = Rings(3, has)
    found = read(monkeypatch, rings, 2, 8 * QUIET_S)
    first = min(at for at, came in found if 2 in came)
    assert comes_at <= first <= comes_at + 2 * QUIET_S + 2 * LOOK_S
    assert rings.passed == {0}
    assert all(1 in came for _, came in found)
