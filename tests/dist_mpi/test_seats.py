"""Whose messages are read first, and who is waited for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from linked import NEEDS_FUTEXES, Pair

from headrace_mpi.links.in_turn import (
    FIRST_WAIT_S,
    LONGEST_PAUSE_S,
    TURN_S,
    WAIT_S,
    InTurn,
)

pytestmark = NEEDS_FUTEXES


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def test_who_answers_at_once_is_read_first_and_others_are_told(pair: Pair) -> None:
    reader, peer = pair.ends
    in_turn = InTurn(reader)
    assert in_turn.receive(8) == ()
    assert not peer.to[0].passed_over
    peer.to[0].send(b"one")
    peer.to[0].send(b"two")
    assert in_turn.receive(1) == [(1, bytearray(b"one"))]
    assert reader.waiting, "one message is left"
    assert in_turn.receive(8) == [(1, bytearray(b"two"))]
    assert not reader.waiting
    assert not peer.to[0].passed_over
    reader.give_turn(5)
    assert peer.to[0].passed_over


class Rings:
    """Two rings of which the second always has a message, and a clock that looking moves on."""

    ranks = 3
    waiting = True

    def __init__(self) -> None:
        self.now = 0.0
        self.comes_at = float("inf")

    def monotonic(self) -> float:
        return self.now

    def has(self, index: int) -> bool:
        self.now += 1e-5
        return index == 1 or self.now >= self.comes_at

    def give_turn(self, index: int) -> None:
        """Tell nobody."""

    def receive_from(self, index: int, most: int) -> list[tuple[int, bytearray]]:
        if index == 0:
            self.comes_at = float("inf")
        return [(index, bytearray())]


def test_who_lets_the_server_wait_in_vain_is_not_waited_for_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rings = Rings()
    monkeypatch.setattr("headrace_mpi.links.in_turn.time", rings)
    reader = InTurn(rings)  # type: ignore[arg-type]

    def turn() -> tuple[int, float]:
        """Let the first ring have one message; return who is read after it, and how late."""
        rings.comes_at = 0.0
        while reader.receive(1)[0][0] != 0:
            rings.now += TURN_S
        begin = rings.now
        return reader.receive(1)[0][0], rings.now - begin

    waited, ended = [], []
    for _ in range(40):
        index, seconds = turn()
        assert index == 1
        waited.append(seconds > FIRST_WAIT_S)
        ended.append(rings.now)
    assert waited[0]
    ends = [end for end, was in zip(ended, waited, strict=True) if was]
    gaps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    pauses = [min(0.002 * 2**k, LONGEST_PAUSE_S) for k in range(len(gaps))]
    assert pauses.count(LONGEST_PAUSE_S) >= 3
    # Each time it is waited for in the first turn after a pause twice as long, up to the longest.
    for gap, pause in zip(gaps, pauses, strict=True):
        assert pause <= gap < pause + TURN_S + 2 * FIRST_WAIT_S
    # In the end that is in one of many turns, each of which takes one of another rank's.
    assert sum(waited[20:]) <= 4 < sum(waited)
    # Who answers again is waited for again, the first time longer than later.
    rings.now += LONGEST_PAUSE_S
    rings.comes_at = 0.0
    while reader.receive(1)[0][0] != 0:
        rings.now += TURN_S
    rings.comes_at = rings.now + (WAIT_S + FIRST_WAIT_S) / 2
    assert reader.receive(1)[0][0] == 0
    rings.comes_at = rings.now + (WAIT_S + FIRST_WAIT_S) / 2
    assert reader.receive(1)[0][0] == 1
