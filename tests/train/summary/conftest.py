"""A graph of its own for each test of summaries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace as hr


@pytest.fixture(autouse=True)
def graph() -> Iterator[hr.Graph]:
    """Return the default graph of the test, new and empty."""
    with hr.Graph().as_default() as made:
        yield made
