"""A short soak: what a process holds after some sessions, it holds after more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import ranks, relaunched
from .__main__ import Holding, grown, sessions

if TYPE_CHECKING:
    from tests.conftest import MpiRun

pytestmark = pytest.mark.needs("autodiff", "backend-cpu", "io", "train")


@pytest.mark.slow
def test_sessions_leave_nothing_behind() -> None:
    assert grown(sessions(40)) == []


def test_growth_is_told() -> None:
    warm = Holding(100.0, 3, 10)
    assert grown([warm] * 10) == []
    told = grown([*[warm] * 9, Holding(120.0, 4, 11)])
    assert [fault.partition(" ")[0] for fault in told] == ["memory", "threads", "descriptors"]


@pytest.mark.slow
@pytest.mark.needs("mpi")
@pytest.mark.timeout(120)
def test_steps_of_three_ranks_leave_nothing_behind(mpirun: MpiRun, tmp_path: Path) -> None:
    done = mpirun(3, "-m", "tests.soak.ranks", str(tmp_path), "--steps", "1500", timeout_s=100.0)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.count("nothing grew") == 3


def test_growth_of_ranks_is_told() -> None:
    warm = ranks.Seen(100.0, 3, 10, 4)
    assert ranks.grown([warm] * 10) == []
    told = ranks.grown([*[warm] * 9, ranks.Seen(120.0, 5, 13, 7)])
    assert [fault.partition(" ")[0] for fault in told] == list(ranks.Seen._fields)


@pytest.mark.slow
@pytest.mark.needs("mpi")
@pytest.mark.timeout(300)
def test_a_job_goes_on_without_a_worker_and_starts_anew_without_two(tmp_path: Path) -> None:
    # Too short for memory to be as it stays; the long form looks at that. Long enough for a loss to
    # be found before the others have made all steps.
    seen, faults = relaunched.soak(tmp_path, 10_000)
    assert faults == []
    assert [sorted(start) for start in seen] == [["ps-0", "worker-0", "worker-1", "worker-2"]] * 2


def test_growth_within_a_start_and_from_one_to_the_next_is_told() -> None:
    warm, more = ranks.Seen(100.0, 3, 10, 4), ranks.Seen(120.0, 3, 10, 4)
    assert relaunched.growth([{"ps-0": [warm] * 5}, {"ps-0": [warm] * 5}]) == []
    told = relaunched.growth([{"ps-0": [warm] * 5}, {"ps-0": [warm] * 4 + [more]}])
    assert told == [
        "start 2, ps-0: memory_mb grew from 100 to 120",
        "ps-0, from start to start: memory_mb grew from 100 to 120",
    ]
    assert len(relaunched.growth([{"ps-0": [warm] * 5}, {"ps-0": [more] * 5}])) == 1
