"""A cluster of the job's ranks for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster with one ps, and a graph of the test's own.

    A rank whose test returns goes on serving until those of all ranks have returned.
    """
    with hr.Graph().as_default(), hr.dist.Cluster(ps=1) as formed:
        yield formed
