"""The example that exports and serves runs, and prints what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "export_and_serve.py"


@pytest.mark.needs("autodiff", "backend-cpu", "train")
def test_the_example_exports_and_serves(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "three digits: [(" in done.stdout
    assert "accuracy 0.9" in done.stdout
    assert (tmp_path / "digits" / "1").is_dir()
