"""A cluster of threads for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.train.sync_replicas.replica_threads import Sharing


@pytest.fixture
def cluster() -> Iterator[Sharing]:
    """Several replicas, and what they share, in this process."""
    made = Sharing()
    yield made
    made.close()
