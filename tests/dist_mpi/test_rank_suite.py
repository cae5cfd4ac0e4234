"""The rank tests, each size as a job of its own, so that the plain test command runs them too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import MpiRun

RANK_TESTS = Path(__file__).parents[1] / "ranks"


@pytest.mark.needs("mpi")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_rank_tests_pass_in_a_job_of(size: int, mpirun: MpiRun) -> None:
    flags = ["-p", "no:cacheprovider", "--timeout-method=thread", "--color=no"]
    done = mpirun(size, "-m", "pytest", str(RANK_TESTS), *flags, timeout_s=220.0)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
