"""The null step on a cluster of Headrace; its processes are ranks that mpirun starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from benchmarks.null_step.kinds import KINDS, ROWS_TAKEN
from benchmarks.server_jobs import headrace_cluster
from benchmarks.server_jobs.timing import Job


def play(job: Job) -> None:
    """Play the part of this rank."""
    headrace_cluster.play(job, _build)


def _build(job: Job) -> Callable[[hr.Session], Callable[[], object]]:
    kind = KINDS[job.kind]
    ids = hr.placeholder(hr.int64, [ROWS_TAKEN]) if kind.sparse else None
    updates = [_update(server, job.index, ids, job) for server in range(job.servers)]
    rng = np.random.default_rng(job.index)

    def make_step(session: hr.Session) -> Callable[[], object]:
        call = session.make_callable(hr.group(*updates), [] if ids is None else [ids])
        if ids is None:
            return lambda: call()
        return lambda: call(rng.integers(0, kind.shape[0], ROWS_TAKEN))

    return make_step


def _update(server: int, worker: int, ids: Any, job: Job) -> Any:
    """Return the update of one server by a worker that has its parameters."""
    kind = KINDS[job.kind]
    with hr.device(f"/job:ps/task:{server}"):
        zeros = hr.zeros_initializer()
        parameters = hr.get_variable(f"parameters_{server}", kind.shape, initializer=zeros)
        count = hr.get_variable(f"count_{server}", [], initializer=zeros)
        taken = parameters if ids is None else hr.gather(parameters, ids)
    with hr.device(f"/job:worker/task:{worker}"):
        here = hr.identity(taken)
        with hr.control_dependencies([here]):
            one = hr.identity(hr.ones([]))
    return hr.assign_add(count, one).op
