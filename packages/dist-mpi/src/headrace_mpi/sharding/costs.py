"""The costs of moving and updating variables on a cluster, measured by real steps."""

from __future__ import annotations

import itertools
import math
import statistics
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import headrace as hr
from headrace.errors import ClusterError, shown
from headrace_mpi.cluster import Cluster

_ELEMENTS = 2_000_000
_MANY = 16
_REPEATS = 7
_numbers = itertools.count()
_measured: weakref.WeakKeyDictionary[Cluster, ShardingCosts] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ShardingCosts:
    """What a step pays for the variables that it uses on servers.

    Attributes:
        per_transfer_s: Seconds for each tensor that moves, whatever its size.
        per_byte_s: Seconds for each byte that moves over the link of a server.
        update_byte_s: Seconds for each byte of a variable to which a gradient is applied.
        at_once: How many servers work at once; fewer than there are where they share a host.
    """

    per_transfer_s: float
    per_byte_s: float
    update_byte_s: float
    at_once: float = math.inf


def measure_costs(cluster: Cluster, job: str = "ps") -> ShardingCosts:
    """Measure what transfers and updates cost, once for each cluster.

    It moves numbers between the tasks of the job and this one, about 200 MB for each task, and
    leaves nothing there. Other work at the same time makes the result larger.

    Args:
        cluster: The cluster.
        job: The job whose tasks hold variables.

    Raises:
        ClusterError: if the cluster has no such job.
    """
    if not cluster.num_tasks(job):
        raise ClusterError(
            f"{shown(cluster)} has no job {job!r}, whose tasks would hold the shards"
        )
    known = _measured.get(cluster)
    if known is None:
        known = _measured[cluster] = _measure(cluster, job)
    return known


def _measure(cluster: Cluster, job: str) -> ShardingCosts:
    here = f"/job:{cluster.job_name}/task:{cluster.task_index}"
    servers = [f"/job:{job}/task:{i}" for i in range(cluster.num_tasks(job))]
    # Variables live with the task: another measurement must not find these.
    mark = f"sharding_costs/{cluster.job_name}_{cluster.task_index}_{next(_numbers)}"
    with hr.Graph().as_default():
        with hr.device(servers[0]):
            small = [
                hr.Variable(0.0, name=f"{mark}/small_{i}", trainable=False) for i in range(_MANY)
            ]
        large = [_large(server, f"{mark}/large_{i}") for i, server in enumerate(servers)]
        update = hr.assign_sub(large[0], large[0].value() * 0.5).op
        clear = [hr.assign(v, hr.zeros([0]), validate_shape=False).op for v in large]
        with hr.device(here):
            fetches = {
                "one": hr.identity(small[0]).op,
                "many": hr.group(*(hr.identity(v) for v in small)),
                "large": hr.identity(large[0]).op,
                "all": hr.group(*(hr.identity(v) for v in large)),
                "update": update,
            }
        with hr.Session(cluster.target) as session:
            session.run(hr.global_variables_initializer())
            seconds = {n: _median(session.make_callable(fetch)) for n, fetch in fetches.items()}
            session.run(clear)
    size = 4 * _ELEMENTS
    least = 1e-12
    return ShardingCosts(
        max((seconds["many"] - seconds["one"]) / (_MANY - 1), least),
        max((seconds["large"] - seconds["one"]) / size, least),
        max((seconds["update"] - seconds["one"]) / size, least),
        max(len(servers) * seconds["large"] / max(seconds["all"], least), 1.0),
    )


def _large(server: str, name: str) -> hr.Variable:
    # Without a shape, so that it can be made empty in the end.
    start = hr.placeholder_with_default(hr.zeros([_ELEMENTS]), [None])
    with hr.device(server):
        return hr.Variable(start, name=name, trainable=False, validate_shape=False)


def _median(run: Callable[[], Any]) -> float:
    times = []
    for i in range(_REPEATS + 3):
        begin = time.perf_counter()
        run()
        # The first runs compile.
        if i >= 3:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)
