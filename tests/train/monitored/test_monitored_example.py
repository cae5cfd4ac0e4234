"""The example under supervision trains, stops early, and goes on where it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headrace as hr
from tests.children import run_python

pytestmark = [
    pytest.mark.needs("backend-cpu", "data"),
    pytest.mark.timeout(150),
    pytest.mark.usefixtures("no_races"),
]

EXAMPLE = Path(__file__).parents[3] / "examples" / "mnist_monitored.py"


def run(folder: Path, *options: str) -> tuple[float, int, str]:
    """Run the example; return its accuracy, its last step, and what it showed."""
    # The digits that come with Headrace, also where MNIST is there.
    done = run_python(
        *("-W", "error", EXAMPLE, f"--folder={folder}", *options),
        env={"HEADRACE_DATA": None},
        timeout_s=100.0,
    )
    found = re.search(r"accuracy ([0-9.]+) after (\d+) steps", done.stdout)
    assert found is not None
    return float(found[1]), int(found[2]), done.stderr


@pytest.mark.slow
def test_it_goes_on_and_stops_early(tmp_path: Path) -> None:
    _, last, shown = run(tmp_path, "--steps=120")
    assert last == 120
    assert "training 120/120 (100%)" in shown
    accuracy, last, _ = run(tmp_path, "--patience=2")
    assert accuracy > 0.9
    assert 120 < last < 5000
    # What stopped early stays so.
    assert run(tmp_path, "--patience=2")[1] == last
    events = [e for f in tmp_path.glob("events.*") for e in hr.train.summary_iterator(f)]
    tags = {value.tag for event in events for value in event.summary.value}
    assert tags == {"loss", "accuracy", "validation/loss", "global_step/sec"}
