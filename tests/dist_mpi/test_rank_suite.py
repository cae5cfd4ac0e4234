"""The rank tests as a job of two ranks; ``nox -s ranks`` runs them with other numbers, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import MpiRun

RANK_TESTS = Path(__file__).parents[1] / "ranks"


@pytest.mark.slow
@pytest.mark.needs("mpi")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("executor", "share"), [("plan", "1"), ("plain", "0")])
def test_rank_tests_pass_in_a_job_of_two(
    mpirun: MpiRun, monkeypatch: pytest.MonkeyPatch, executor: str, share: str
) -> None:
    monkeypatch.setenv("HEADRACE_EXECUTOR", executor)
    monkeypatch.setenv("HEADRACE_SHARE_MEMORY", share)
    flags = ["-p", "no:cacheprovider", "--timeout-method=thread", "--color=no"]
    done = mpirun(2, "-m", "pytest", str(RANK_TESTS), *flags, timeout_s=220.0)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
