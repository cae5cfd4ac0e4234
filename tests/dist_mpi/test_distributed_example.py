"""The example trains to the same losses on one process and on ranks, and ends in time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.children import run_python

if TYPE_CHECKING:
    from tests.conftest import MpiRun

EXAMPLE = Path(__file__).parents[2] / "examples" / "distributed.py"
STEPS = 200

pytestmark = [
    pytest.mark.needs("mpi", "backend-cpu", "autodiff", "train"),
    pytest.mark.usefixtures("no_races"),
]


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    done = run_python(EXAMPLE, "--json", f"--steps={STEPS}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_one_process_learns(alone: dict[str, Any]) -> None:
    assert len(alone["losses"]) == STEPS
    assert alone["losses"][0] == pytest.approx(np.log(10), abs=1e-6)
    assert np.mean(alone["losses"][-20:]) < 0.5
    assert alone["accuracy"] > 0.9


@pytest.mark.parametrize("size", [2, 3, 4])
def test_ranks_give_the_same_losses(alone: dict[str, Any], mpirun: MpiRun, size: int) -> None:
    begin = time.monotonic()
    done = mpirun(size, str(EXAMPLE), "--json", f"--steps={STEPS}", timeout_s=50.0)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 20
    got = json.loads(done.stdout)
    np.testing.assert_allclose(got["losses"], alone["losses"], atol=1e-5, rtol=0)
    assert got["accuracy"] == pytest.approx(alone["accuracy"], abs=0.01)
    # One bar, drawn by the chief.
    assert done.stderr.count("200/200") == 1
