"""The example trains the same network on one process and on ranks, and goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.children import run_python

if TYPE_CHECKING:
    from tests.conftest import MpiRun

EXAMPLE = Path(__file__).parents[2] / "examples" / "data_parallel.py"

pytestmark = pytest.mark.needs("mpi", "backend-cpu", "autodiff", "train")


# Starts two jobs: a checkpoint of one has to be read by another.
@pytest.mark.slow
def test_ranks_train_as_one_process_does_and_go_on(mpirun: MpiRun, tmp_path: Path) -> None:
    alone = run_python(EXAMPLE, "--json", "--steps=60")
    expected: dict[str, Any] = json.loads(alone.stdout)
    assert len(expected["losses"]) == 60
    assert expected["accuracy"] > 0.8
    command = (str(EXAMPLE), "--json", f"--folder={tmp_path}")
    first = mpirun(2, *command, "--steps=60", timeout_s=50.0)
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-4, atol=1e-6)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.01)
    assert (tmp_path / "model.ckpt-60.h5").exists()
    second = mpirun(2, *command, "--steps=70", "--batch=64", timeout_s=50.0)
    assert second.returncode == 0, second.stderr
    losses = json.loads(second.stdout)["losses"]
    assert len(losses) == 10
    assert losses[0] < 2 * found["losses"][-1]
