"""A graph of its own for each test of summaries."""

from __future__ import annotations

import pytest

import headrace as hr


@pytest.fixture(autouse=True)
def _own_graph(graph: hr.Graph) -> None:
    """Give every test a graph of its own."""
