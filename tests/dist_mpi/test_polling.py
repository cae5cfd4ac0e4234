"""How long a rank polls before it sleeps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace_mpi.transport.polling import ANSWER_S, STAY_S, PollingBackoff


def test_ranks_poll_for_a_moment() -> None:
    assert PollingBackoff(0).spins(0.0005, moving=False)
    assert not PollingBackoff(0).spins(0.0015, moving=False)
    assert PollingBackoff(10_000).spins(0.0, moving=True)
    assert not PollingBackoff(1).spins(0.01, moving=False)
    for ranks in (0, 2):
        naps = [PollingBackoff(ranks).nap_s(idle) for idle in (0.0, 0.004, 0.5, 5.0)]
        assert naps == sorted(naps)
        assert naps[0] < naps[1] < naps[3]
    # Who is rung for when its turn comes need not look before; where only MPI tells, it must.
    assert PollingBackoff(2).nap_s(0.0, passed_over=True) > max(naps)
    assert PollingBackoff(2, near=False).nap_s(0.0, passed_over=True) < max(naps)


@pytest.fixture
def free_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cores come back at once when they are given away."""
    monkeypatch.setattr(
        "headrace_mpi.transport.polling.time", SimpleNamespace(monotonic=lambda: 0.0)
    )
    monkeypatch.setattr("headrace_mpi.transport.polling._yield_core", lambda: None)


@pytest.mark.usefixtures("free_cores")
def test_ranks_poll_as_long_as_answers_took() -> None:
    backoff = PollingBackoff(2, alone=True)
    assert not backoff.spins(0.0004, moving=False)
    backoff.came(0.0003)
    assert backoff.spins(0.0004, moving=False)
    # Short waits lie between the long ones.
    for _ in range(4):
        backoff.came(0.00002)
        assert backoff.spins(0.00028, moving=False)
    # Who comes too late to be polled for counts for nothing, and what was long once is forgotten.
    for _ in range(30):
        backoff.came(0.1)
    assert backoff.spins(0.00015, moving=False)
    assert not backoff.spins(0.00025, moving=False)
    longest = PollingBackoff(2, alone=True)
    longest.came(ANSWER_S)
    assert not longest.spins(2 * ANSWER_S, moving=False)


def test_nothing_is_learned_where_cores_come_back_late(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0

    def pass_by(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("headrace_mpi.transport.polling.time", clock)
    monkeypatch.setattr("headrace_mpi.transport.polling._yield_core", lambda: pass_by(0.001))
    backoff = PollingBackoff(2, alone=True)
    backoff.came(0.0005)
    backoff.spins(0.0, moving=False)
    assert backoff.late == 1
    for _ in range(10):
        backoff.came(0.0009)
    now += 0.1
    assert not backoff.spins(0.0005, moving=False)
    now += 2.0
    backoff.came(0.0009)
    assert backoff.spins(0.0005, moving=False)


@pytest.mark.usefixtures("free_cores")
@pytest.mark.parametrize("backoff", [PollingBackoff(2), PollingBackoff(0, alone=True)])
def test_only_ranks_with_cores_of_their_own_learn(backoff: PollingBackoff) -> None:
    before = [backoff.spins(idle, moving=False) for idle in (0.0001, 0.0004, 0.002)]
    for _ in range(10):
        backoff.came(0.0008)
    assert [backoff.spins(idle, moving=False) for idle in (0.0001, 0.0004, 0.002)] == before


def test_a_core_that_comes_back_late_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock of its own: others who want this machine's cores make pauses longer.
    now = 0.0

    def pass_by(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("headrace_mpi.transport.polling.time", clock)
    monkeypatch.setattr("headrace_mpi.transport.polling._yield_core", lambda: pass_by(0.001))
    backoff = PollingBackoff(1)
    backoff.spins(0.0, moving=False)
    assert not backoff.spins(STAY_S, moving=False)
    # Each time it is taken again, it is left to them for longer.
    pauses = []
    for _ in range(4):
        start = now
        while not backoff.spins(STAY_S, moving=False):
            pass_by(0.0002)
        pauses.append(now - start)
    assert pauses[-1] > 2 * pauses[0]


def test_quick_answers_are_polled_for_on_a_core_that_would_come_back_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, given_away = 0.0, 0

    def take_turn() -> None:
        nonlocal now, given_away
        now += 0.004
        given_away += 1

    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("headrace_mpi.transport.polling.time", clock)
    monkeypatch.setattr("headrace_mpi.transport.polling._yield_core", take_turn)
    backoff = PollingBackoff(3)
    assert backoff.spins(0.0, moving=False)
    assert given_away == 1
    for idle_s in (0.0, STAY_S / 2, 0.9 * STAY_S):
        assert backoff.spins(idle_s, moving=False)
    assert not backoff.spins(STAY_S, moving=False)
    assert given_away == 1
