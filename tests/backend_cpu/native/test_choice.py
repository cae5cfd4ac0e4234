"""One thread or several in a crowd: which is tried, which is taken, and what steps then get."""

from __future__ import annotations

import threading

import pytest

from headrace_cpu.native import threads as threads_module
from headrace_cpu.native.choice import Choice
from headrace_cpu.native.threads import Share, open_mp

pytestmark = pytest.mark.needs("backend-cpu")

needs_pool = pytest.mark.skipif(open_mp() is None, reason="wants GNU OpenMP")


class Runs:
    """Runs of a program that take their time by the number of threads."""

    def __init__(self, alone: float, team: float) -> None:
        self.now = 5.0
        self.took = {False: alone, True: team}
        self.choice = Choice(lambda: self.now)

    def run(self, count: int) -> int:
        """Return how many of so many runs take several threads."""
        several = 0
        for _ in range(count):
            kind = self.choice.several()
            self.now += self.took[kind]
            self.choice.done()
            self.now += 1.0
            several += kind
        return several


@pytest.mark.parametrize(("alone", "team", "several"), [(1e-5, 1e-4, 3 + 3), (1e-3, 6e-4, 197 - 3)])
def test_the_quicker_of_both_is_taken_and_the_other_tried_again(
    alone: float, team: float, several: int
):
    assert Runs(alone, team).run(200) == several


def test_a_change_is_seen():
    runs = Runs(1e-5, 1e-4)
    runs.run(1000)
    runs.took = {False: 1e-2, True: 1e-4}
    runs.run(200)
    assert runs.run(640) == 630
    runs.took = {False: 1e-2, True: 1.0}
    assert runs.run(640) < 30


def test_one_run_that_took_long_does_not_decide():
    runs = Runs(1e-4, 1.2e-4)
    runs.run(500)
    runs.took[False] = 2e-4
    runs.run(1)
    runs.took[False] = 1e-4
    assert runs.run(60) <= 1


def test_what_nobody_asked_for_is_not_noted():
    runs = Runs(1e-5, 1e-4)
    for _ in range(10):
        runs.choice.done()
    assert runs.run(6) == 3


def test_another_threads_end_is_not_taken_for_ones_own():
    runs = Runs(1.0, 1.0)
    runs.choice.several()
    other = threading.Thread(target=runs.choice.done)
    other.start()
    other.join()
    runs.now += 7
    runs.choice.done()
    assert runs.choice._times[0] == 7


class Seen:
    """A crowd that is there, or not."""

    def __init__(self, *, seen: bool) -> None:
        self.seen = seen

    def look(self, threads: int) -> None:
        """See nothing new."""


def shares(
    monkeypatch,
    *,
    seen: bool,
    fixed: bool = False,
    others: int = 0,
    varies: bool = True,
    abreast: bool = False,
) -> set[int]:
    """Return how many threads runs get on a machine of four cores."""
    pool = open_mp()
    assert pool is not None
    monkeypatch.setattr(threads_module, "open_mp", lambda: pool)
    share = Share(4, fixed=fixed)
    share._crowd = Seen(seen=seen)
    share._choice = None if fixed else Choice()
    monkeypatch.setattr(Share, "_running", [None] * others)
    monkeypatch.setattr(Share, "_varies", varies)
    monkeypatch.setattr(threads_module.ABREAST, "seen", abreast)
    found = set()
    for _ in range(12):
        threads = share.enter()
        assert Share.allowed() == threads
        found.add(threads)
        share.leave()
    return found


@needs_pool
def test_both_are_tried_in_a_crowd_only(monkeypatch):
    assert shares(monkeypatch, seen=True) == {1, 4}
    assert shares(monkeypatch, seen=False) == {4}


@needs_pool
def test_where_no_steps_ran_beside_each_other_bits_stay_as_they_are(monkeypatch):
    assert shares(monkeypatch, seen=True, varies=False) == {4}
    assert not Share._varies
    shares(monkeypatch, seen=True, varies=False, others=1)
    assert Share._varies


@needs_pool
def test_steps_without_kernels_of_their_own_are_beside_others_too(monkeypatch):
    """One that reads records has none, and takes a core all the same."""
    assert shares(monkeypatch, seen=True, varies=False, abreast=True) == {1, 4}
    assert Share._varies


@needs_pool
def test_what_computes_equal_bits_keeps_its_threads(monkeypatch):
    assert shares(monkeypatch, seen=True, fixed=True) == {4}


@needs_pool
def test_runs_beside_others_choose_among_their_part(monkeypatch):
    assert shares(monkeypatch, seen=True, others=1) == {1, 2}
    assert shares(monkeypatch, seen=True, others=3) == {1}
