"""A module holds one idea, and is short enough to be read in one sitting."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAP_LINES = 600
PATTERNS = ["packages/*/src/**/*.py", "examples/**/*.py", "benchmarks/**/*.py", "tests/**/*.py"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_module_is_longer_than_the_cap(pattern: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in ROOT.glob(pattern)}
    over = {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > CAP_LINES}
    assert not over, f"longer than {CAP_LINES} lines; split by idea: {over}"
