"""The null step on a cluster of Headrace; its processes are ranks that mpirun starts."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import headrace as hr
from benchmarks.null_step.kinds import KINDS, ROWS_TAKEN
from benchmarks.null_step.timing import LIMIT_S, Job, measure, watch


def play(job: Job) -> None:
    """Play the part of this rank."""
    with hr.dist.Cluster(ps=1) as cluster:
        if cluster.job_name == "ps":
            watching = watch(job)
            cluster.serve()
            watching.join(LIMIT_S)
            return
        job = job._replace(index=cluster.task_index)
        kind = KINDS[job.kind]
        with hr.device("/job:ps/task:0"):
            parameters = hr.get_variable(
                "parameters", kind.shape, initializer=hr.zeros_initializer()
            )
            count = hr.get_variable("count", [], initializer=hr.zeros_initializer())
        update, ids = _step(cluster.task_index, parameters, count, kind.sparse)
        rng = np.random.default_rng(job.index)
        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run(hr.global_variables_initializer())
            missing = hr.report_uninitialized_variables()
            while session.run(missing).size:
                time.sleep(0.01)
            call = session.make_callable(update, [] if ids is None else [ids])

            def step() -> None:
                if ids is None:
                    call()
                else:
                    call(rng.integers(0, kind.shape[0], ROWS_TAKEN))

            measure(step, job)


def _step(index: int, parameters: Any, count: Any, sparse: bool) -> tuple[Any, Any]:
    """Return the update of a step, and what is fed."""
    ids = hr.placeholder(hr.int64, [ROWS_TAKEN]) if sparse else None
    if ids is not None:
        with hr.device("/job:ps/task:0"):
            taken = hr.gather(parameters, ids)
    with hr.device(f"/job:worker/task:{index}"):
        here = hr.identity(parameters if ids is None else taken)
        with hr.control_dependencies([here]):
            one = hr.identity(hr.ones([]))
    return hr.assign_add(count, one).op, ids
