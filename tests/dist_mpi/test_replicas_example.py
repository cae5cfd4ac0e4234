"""The example of four ways to train runs, alone and on ranks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.children import run_python

if TYPE_CHECKING:
    from tests.conftest import MpiRun

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "replicas.py")

pytestmark = pytest.mark.needs("mpi", "backend-cpu", "autodiff", "train")


def test_one_process_trains_in_step() -> None:
    done = run_python(EXAMPLE, "--mode=sync", "--steps=80")
    assert "sync: 80 steps of 1 workers in" in done.stdout
    assert "80 gradients applied, 0 dropped" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "ranks", "steps", "prints"),
    [
        # An update of one worker counts as a step here, of all workers below.
        ("async", 3, 240, "steps of 2 workers"),
        ("sync", 3, 80, "160 gradients applied, 0 dropped"),
        ("backup", 4, 80, "steps of 3 workers"),
        ("allreduce", 2, 80, "80 steps of 2 workers"),
    ],
)
def test_ranks_train_in_each_way(
    mpirun: MpiRun, mode: str, ranks: int, steps: int, prints: str
) -> None:
    done = mpirun(ranks, EXAMPLE, f"--mode={mode}", f"--steps={steps}", timeout_s=60.0)
    assert done.returncode == 0, done.stderr
    assert prints in done.stdout
    if mode == "backup":
        found = re.search(r"(\d+) steps of .*\n(\d+) gradients applied, \d+ dropped", done.stdout)
        assert found is not None
        steps, applied = map(int, found.groups())
        # Two for each of the steps. Whoever has not heard of the end may begin a further one, which
        # takes fewer, as the others have left.
        assert 160 <= applied <= 2 * steps
    assert float(done.stdout.partition("accuracy ")[2][:4]) > 0.8
