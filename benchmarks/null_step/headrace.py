"""The null step on a cluster of Headrace; its processes are ranks that mpirun starts."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import headrace as hr
from benchmarks.null_step.kinds import KINDS, ROWS_TAKEN
from benchmarks.server_jobs.timing import LIMIT_S, Job, measure, watch


def play(job: Job) -> None:
    """Play the part of this rank."""
    with hr.dist.Cluster(ps=job.servers) as cluster:
        if cluster.job_name == "ps":
            watching = watch(job._replace(index=cluster.task_index - job.servers))
            cluster.serve()
            watching.join(LIMIT_S)
            return
        job = job._replace(index=cluster.task_index)
        kind = KINDS[job.kind]
        ids = hr.placeholder(hr.int64, [ROWS_TAKEN]) if kind.sparse else None
        updates = [_update(server, cluster.task_index, ids, job) for server in range(job.servers)]
        rng = np.random.default_rng(job.index)
        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run(hr.global_variables_initializer())
            missing = hr.report_uninitialized_variables()
            while session.run(missing).size:
                time.sleep(0.01)
            call = session.make_callable(hr.group(*updates), [] if ids is None else [ids])

            def step() -> None:
                if ids is None:
                    call()
                else:
                    call(rng.integers(0, kind.shape[0], ROWS_TAKEN))

            measure(step, job)


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
