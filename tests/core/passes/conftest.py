"""Running and printing step graphs, for tests of rewrites."""

from __future__ import annotations

import pytest

from headrace_testing.rules import as_text, run_plainly


class Steps:
    """Step graphs as text, and their results."""

    run = staticmethod(run_plainly)
    text = staticmethod(as_text)


@pytest.fixture
def steps() -> type[Steps]:
    """Return the functions that run and print step graphs."""
    return Steps
