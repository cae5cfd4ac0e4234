"""Steps do not wait for the slowest worker, and its gradients are never applied late."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.needs("autodiff", "backend-cpu")]

EXAMPLE = Path(__file__).parents[3] / "examples" / "backup_workers.py"
STEPS = 15


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("backup_workers", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_slow_worker_of_four_and_one_backup(example: Any) -> None:
    found = example.measured(4, 1, STEPS, example.last_is_slow(4))
    slow_secs = example.BASE_SECS * example.TIMES
    # Nearer to the quick workers than to the slow one, also on a machine that is busy.
    assert found.step_secs < slow_secs / 2
    # In the first step the slow worker may be among the first three.
    assert found.applied == 3 * STEPS
    assert found.stale == 0


def test_without_a_backup_steps_take_as_long_as_the_slow_worker(example: Any) -> None:
    found = example.measured(2, 0, 7, example.last_is_slow(2))
    assert found.step_secs > example.BASE_SECS * example.TIMES * 0.9
    assert (found.applied, found.dropped, found.stale) == (14, 0, 0)
