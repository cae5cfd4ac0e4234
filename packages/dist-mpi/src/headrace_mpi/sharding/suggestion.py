"""Deducing the number of shards of each variable from what transfers and updates cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace_mpi.cluster import Cluster
from headrace_mpi.sharding.costs import ShardingCosts, measure_costs

# Reads of variables that the rows of a table go through on their way to a lookup.
_VIEWS = ("Identity", "StopGradient")
_LOOKUPS = ("Gather", "GatherNd")


def suggest_shards(
    graph: hr.Graph | None,
    cluster: Cluster,
    *,
    costs: ShardingCosts | None = None,
    job: str = "ps",
    rows_per_step: int = 1024,
    max_shards: int | None = None,
) -> dict[str, int]:
    """Return into how many shards to divide each variable along its first axis.

    With n shards on P servers and W workers, a step takes about::

        2 n c + W max(ceil(n / P) / n, 1 / a) B (2 t + u)

    where c is what each transfer costs, t what each byte of it costs, u what each byte of an
    update costs, a is how many servers work at once, and B the bytes of the variable that a step
    reads and changes: all of it, or the rows that lookups ask for. The first term grows with n and
    the second shrinks; the smallest n with the shortest time is returned.

    Args:
        graph: The program's graph, with variables that are not divided yet; the default graph if
            None.
        cluster: The cluster on which it will run. This task measures the costs; the others must
            serve meanwhile.
        costs: What transfers and updates cost; ``hr.dist.measure_costs`` measures if None.
        job: The job whose tasks hold variables.
        rows_per_step: How many rows of a table a step looks up, where the graph does not tell.
        max_shards: The most shards of a variable; four for each server if None.

    Returns:
        For each trainable variable of a known shape, by name, its number of shards: 1 for those
        that are best left whole. Pass it to ``hr.fixed_size_partitioner``.

    Raises:
        ClusterError: if the cluster has no such job.
        AttributeValueError: if ``rows_per_step`` or ``max_shards`` is less than 1.
    """
    if not isinstance(cluster, Cluster):
        raise ArgumentTypeError(f"cluster must be an hr.dist.Cluster, got {shown(cluster)}")
    for name, value in (("rows_per_step", rows_per_step), ("max_shards", max_shards)):
        if value is not None and (type(value) is not int or value < 1):
            raise AttributeValueError(
                f"{name} must be a whole number from 1 on, got {shown(value)}"
            )
    found = hr.get_default_graph() if graph is None else graph
    if costs is None:
        costs = measure_costs(cluster, job)
    servers = max(cluster.num_tasks(job), 1)
    workers = max(cluster.num_workers, 1)
    most = 4 * servers if max_shards is None else max_shards
    suggested = {}
    for variable in found.get_collection(hr.GraphKeys.TRAINABLE_VARIABLES):
        if not variable.shape.is_fully_defined() or variable.shape.rank == 0:
            continue
        dims = variable.shape.plain.known
        size = moved_bytes(variable, dims, rows_per_step)
        limit = max(min(most, dims[0]), 1)
        times = [step_seconds(n, size, costs, servers, workers) for n in range(1, limit + 1)]
        suggested[variable.op.name] = min(range(limit), key=times.__getitem__) + 1
    return suggested


def step_seconds(n: int, size: int, costs: ShardingCosts, servers: int, workers: int) -> float:
    """Return the time that a step takes for a variable in ``n`` shards, by the model.

    Args:
        n: The number of shards.
        size: The bytes of the variable that a step reads and changes.
        costs: What transfers and updates cost.
        servers: How many servers hold shards.
        workers: How many workers run steps at once.
    """
    busiest = max(-(-n // servers) / n, 1 / min(costs.at_once, n)) * size
    per_byte = 2 * costs.per_byte_s + costs.update_byte_s
    return 2 * n * costs.per_transfer_s + workers * busiest * per_byte


def moved_bytes(variable: Any, dims: Sequence[int], rows_per_step: int) -> int:
    """Return the bytes of a variable that a step reads, and of which it sends gradients.

    Args:
        variable: The variable.
        dims: Its shape.
        rows_per_step: How many rows a lookup asks for, where the graph does not tell.
    """
    item = variable.dtype.numpy.itemsize
    row = item
    for dim in dims[1:]:
        row *= dim
    rows = 0
    waiting = [variable.handle]
    while waiting:
        tensor = waiting.pop()
        for op in tensor.graph.operations[tensor.op.index + 1 :]:
            if tensor not in op.inputs:
                continue
            if op.type == "ReadVariable" or (op.type in _VIEWS and tensor is not variable.handle):
                waiting += op.outputs
            elif op.type in _LOOKUPS and op.inputs[0] is tensor:
                count = op.inputs[1].spec.shape.num_elements()
                rows += rows_per_step if count is None else count
            elif tensor is not variable.handle:
                # Something needs all of it.
                return int(dims[0] * row)
    return int(min(rows, dims[0]) * row) if rows else int(dims[0] * row)
