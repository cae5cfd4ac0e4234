"""Suggested numbers of shards against a simulated cluster, and what graphs tell of sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, ClusterError

pytestmark = pytest.mark.needs("mpi", "backend-cpu")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """One process that plays four servers and two workers."""
    with hr.dist.Cluster(jobs={"ps": 4, "worker": 2}) as formed:
        yield formed


def simulated(n: int, size: int, costs: Any, servers: int, workers: int) -> float:
    """Return when the last of several workers ends its step, event by event.

    Each worker reads all shards and sends a gradient for each. Its own calls cost it time one after
    another; a server does one thing at a time: it sends, receives, and updates.
    """
    free = [0.0] * servers
    clock = [0.0] * workers
    part = size / n
    for shard in range(n):
        server = shard % servers
        for worker in range(workers):
            clock[worker] += costs.per_transfer_s
            free[server] = max(free[server], clock[worker]) + part * costs.per_byte_s
    clock = [max(own, *free) for own in clock]
    for shard in range(n):
        server = shard % servers
        for worker in range(workers):
            clock[worker] += costs.per_transfer_s
            work = part * (costs.per_byte_s + costs.update_byte_s)
            free[server] = max(free[server], clock[worker]) + work
    return max(*clock, *free)


COSTS = {
    "fast link": (1e-4, 1e-10, 1e-10),
    "slow link": (1e-4, 1e-8, 1e-9),
    "slow calls": (2e-3, 1e-9, 1e-9),
    "slow updates": (1e-4, 1e-10, 3e-9),
}


@pytest.mark.parametrize("name", COSTS)
def test_the_suggestion_is_within_one_of_the_simulated_best(cluster: Any, name: str) -> None:
    costs = hr.dist.ShardingCosts(*COSTS[name])
    for rows in (10, 1_000, 100_000, 4_000_000):
        with hr.Graph().as_default() as graph:
            hr.get_variable("v", [rows, 8], initializer=hr.zeros_initializer())
            n = hr.dist.suggest_shards(graph, cluster, costs=costs)["v"]
        times = [simulated(k, rows * 32, costs, 4, 2) for k in range(1, 17)]
        best = int(np.argmin(times)) + 1
        # Within one of the best, or as fast as it.
        assert abs(n - best) <= 1 or times[n - 1] <= 1.02 * times[best - 1], (rows, n, best)


def test_more_bytes_and_faster_calls_never_ask_for_fewer_shards(cluster: Any) -> None:
    found = {}
    for rows, call in itertools.product((100, 10_000, 1_000_000), (1e-3, 1e-5)):
        with hr.Graph().as_default() as graph:
            hr.get_variable("v", [rows, 16], initializer=hr.zeros_initializer())
            costs = hr.dist.ShardingCosts(call, 1e-9, 1e-9)
            found[rows, call] = hr.dist.suggest_shards(graph, cluster, costs=costs)["v"]
    assert found[100, 1e-3] == 1
    assert found[1_000_000, 1e-5] == 4
    for call in (1e-3, 1e-5):
        assert found[100, call] <= found[10_000, call] <= found[1_000_000, call]
    for rows in (100, 10_000, 1_000_000):
        assert found[rows, 1e-3] <= found[rows, 1e-5]


def test_servers_that_share_a_host_ask_for_fewer_shards(cluster: Any) -> None:
    with hr.Graph().as_default() as graph:
        hr.get_variable("v", [1_000_000, 16], initializer=hr.zeros_initializer())
        for at_once, expected in ((1.0, 1), (2.0, 2), (4.0, 4)):
            costs = hr.dist.ShardingCosts(1e-5, 1e-9, 1e-9, at_once)
            assert hr.dist.suggest_shards(graph, cluster, costs=costs) == {"v": expected}


def test_lookups_count_for_the_rows_that_they_ask_for(cluster: Any) -> None:
    costs = hr.dist.ShardingCosts(1e-3, 1e-8, 1e-8)
    zeros = hr.zeros_initializer()
    with hr.Graph().as_default() as graph:
        table = hr.get_variable("table", [1_000_000, 16], initializer=zeros)
        open_table = hr.get_variable("open", [1_000_000, 16], initializer=zeros)
        hr.get_variable("dense", [1_000_000, 16], initializer=zeros)
        both = hr.get_variable("both", [1_000_000, 16], initializer=zeros)
        hr.get_variable("scalar", [], initializer=zeros)
        hr.get_variable("few", [2, 4_000_000], initializer=zeros)
        hr.nn.embedding_lookup(table, hr.placeholder(hr.int64, [64]))
        hr.nn.embedding_lookup(open_table, hr.placeholder(hr.int64, [None]))
        hr.nn.embedding_lookup(both, hr.placeholder(hr.int64, [64]))
        hr.reduce_sum(both)
        found = hr.dist.suggest_shards(graph, cluster, costs=costs)
        assert found == {"table": 1, "open": 1, "dense": 4, "both": 4, "few": 2}
        found = hr.dist.suggest_shards(graph, cluster, costs=costs, rows_per_step=500_000)
        assert (found["table"], found["open"]) == (1, 4)
        found = hr.dist.suggest_shards(graph, cluster, costs=costs, max_shards=3)
        assert found["dense"] == 3


def test_costs_are_measured_once_and_leave_nothing(cluster: Any) -> None:
    with hr.Graph().as_default() as graph:
        hr.get_variable("w", [100, 4])
        before = len(graph)
        found = hr.dist.suggest_shards(None, cluster)
        assert found == {"w": 1}
        assert len(graph) == before
    costs = hr.dist.measure_costs(cluster)
    assert costs is hr.dist.measure_costs(cluster)
    assert costs.update_byte_s > 0
    assert costs.per_transfer_s > 0


def test_what_cannot_be_suggested_is_refused(cluster: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be an hr\.dist\.Cluster, got 'mpi'"):
        hr.dist.suggest_shards(None, "mpi")
    with pytest.raises(ClusterError, match="has no job 'store', whose tasks would hold the shards"):
        hr.dist.suggest_shards(None, cluster, job="store")
    with pytest.raises(AttributeValueError, match="max_shards must be a whole number from 1 on"):
        hr.dist.suggest_shards(None, cluster, max_shards=0)
    with pytest.raises(AttributeValueError, match="rows_per_step must be a whole number from 1 on"):
        hr.dist.suggest_shards(None, cluster, rows_per_step=2.5)
