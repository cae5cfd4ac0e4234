"""The example of fine-tuning: what starts from a checkpoint, ours or a bundle, learns faster."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from headrace_train.bundles.writer import write_bundle
from tests.children import run_python

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("no_races")]

EXAMPLE = Path(__file__).parents[3] / "examples" / "fine_tune.py"


def run(*arguments: str) -> str:
    return run_python("-W", "error", EXAMPLE, *arguments).stdout


# A whole program in a process of its own.
@pytest.mark.slow
def test_it_learns_faster_from_a_checkpoint() -> None:
    out = run()
    assert "taken: base/hidden/kernel [64, 64]" in out
    first, nothing, tuned = map(float, re.findall(r"accuracy (\d\.\d+)", out))
    assert first > 0.95
    assert tuned > nothing + 0.1


@pytest.mark.slow
def test_it_takes_a_bundle(tmp_path: Path) -> None:
    shapes = {"hidden/kernel": [64, 64], "hidden/bias": [64], "logits/kernel": [64, 10]}
    shapes["logits/bias"] = [10]
    write_bundle(
        tmp_path / "model",
        {f"base/{name}": np.zeros(shape, np.float32) for name, shape in shapes.items()},
    )
    out = run("--from", str(tmp_path / "model"))
    assert "taken: base/logits/kernel [64, 10]" in out
    # Of zeros, nothing but the last bias learns.
    assert float(out.split("from the checkpoint: accuracy ")[1]) < 0.25
