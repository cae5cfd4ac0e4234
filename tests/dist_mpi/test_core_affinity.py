"""Leaving a core to the rank that works on it."""

from __future__ import annotations

import itertools
import os

import pytest

from headrace_mpi.shared_memory import core_affinity
from headrace_mpi.shared_memory.core_affinity import (
    LONGEST_S,
    LOOK_S,
    SOON_S,
    WANTED_S,
    CoreAffinity,
)

pytestmark = pytest.mark.skipif(
    core_affinity.current_core() < 0, reason="this system does not tell where threads run"
)


def test_a_thread_leaves_a_core_and_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.sched_getaffinity(0)
    assert core_affinity.current_core() in allowed
    asked: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, mask: asked.append(set(mask)))
    core_affinity.leave_core(3)
    assert asked == [{5}, {3, 5}]


def test_a_thread_with_one_core_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, mask: pytest.fail("it was moved"))
    core_affinity.leave_core(3)


def test_what_the_system_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, mask: set[int]) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    core_affinity.leave_core(3)


def test_who_is_moved_back_tries_again_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    here, left = 3, []
    monkeypatch.setattr(core_affinity, "current_core", lambda: here)
    monkeypatch.setattr(core_affinity, "leave_core", lambda core: left.append((now, core)))
    affinity, now = CoreAffinity(), 0.0
    affinity.keep_off(4, now, 0)
    assert not left
    while now < 20 * LONGEST_S:
        now += LOOK_S / 4
        affinity.keep_off(3, now, 0)
    gaps = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(left)]
    assert all(gap >= LOOK_S for gap in gaps)
    assert [round(gap, 2) for gap in gaps] == sorted(round(gap, 2) for gap in gaps)
    assert gaps[-1] == pytest.approx(LONGEST_S, rel=0.02)
    # Who has been affinity for long begins anew.
    here, count = 4, len(left)
    end = now + 4 * LONGEST_S
    while now < end:
        now += LOOK_S
        affinity.keep_off(3, now, 0)
    assert len(left) == count
    here = 3
    end = now + 2 * SOON_S
    while now < end:
        now += LOOK_S / 4
        affinity.keep_off(3, now, 0)
    assert len(left) - count > 2


def test_nobody_moves_to_cores_that_other_programs_want(monkeypatch: pytest.MonkeyPatch) -> None:
    here, left = 5, []
    monkeypatch.setattr(core_affinity, "current_core", lambda: here)
    monkeypatch.setattr(core_affinity, "leave_core", left.append)
    affinity, now, late = CoreAffinity(), 0.0, 0
    # Late now and then, as when others of the job wake up.
    for _ in range(20):
        now, late = now + 0.1, late + 1
        affinity.keep_off(3, now, late)
    here = 3
    for _ in range(5):
        now, late = now + LONGEST_S, late + 1
        affinity.keep_off(3, now, late)
    assert len(left) == 5
    for _ in range(3):
        now, late = now + LOOK_S, late + 1
        affinity.keep_off(5, now, late)
    end = now + WANTED_S
    while now < end - 2 * LOOK_S:
        now += LOOK_S
        affinity.keep_off(3, now, late)
    assert len(left) == 5
    affinity.keep_off(3, end + LOOK_S, late)
    assert len(left) == 6
