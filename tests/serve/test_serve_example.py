"""The example that exports and serves runs, and prints what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.children import run_python

EXAMPLE = Path(__file__).parents[2] / "examples" / "export_and_serve.py"


@pytest.mark.needs("autodiff", "backend-cpu", "train")
def test_the_example_exports_and_serves(tmp_path: Path) -> None:
    done = run_python(EXAMPLE, "--folder", tmp_path, timeout_s=55.0)
    assert "three digits: [(" in done.stdout
    assert "accuracy 0.9" in done.stdout
    assert (tmp_path / "digits" / "1").is_dir()
