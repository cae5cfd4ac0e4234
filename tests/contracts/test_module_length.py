"""A module holds one idea, and is short enough to be read in one sitting."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAPS = [
    ("packages/*/src/**/*.py", 600),
    ("examples/**/*.py", 600),
    ("benchmarks/**/*.py", 600),
    ("tests/**/*.py", 800),
]


@pytest.mark.parametrize(("pattern", "cap_lines"), CAPS, ids=[pattern for pattern, _ in CAPS])
def test_no_module_is_longer_than_its_cap(pattern: str, cap_lines: int) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in ROOT.glob(pattern)}
    over = {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > cap_lines}
    assert not over, f"longer than {cap_lines} lines; split by idea: {over}"
