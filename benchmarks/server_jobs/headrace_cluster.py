"""A job on a cluster of Headrace: servers that serve, and workers that measure their steps."""

from __future__ import annotations

import time
from collections.abc import Callable

import headrace as hr
from benchmarks.server_jobs.timing import LIMIT_S, Job, measure, watch

# Builds a worker's graph; returns what makes the step that is measured, given a session.
Build = Callable[[Job], Callable[[hr.Session], Callable[[], object]]]


def play(job: Job, build: Build) -> None:
    """Play the part of this rank.

    The chief initializes the variables; the other workers wait until it has.

    Args:
        job: The job.
        build: Called on a worker, with the job as this worker has it, before its session is
            opened; what it returns is called with the session, and returns the step.
    """
    with hr.dist.Cluster(ps=job.servers) as cluster:
        if cluster.job_name == "ps":
            watching = watch(job._replace(index=cluster.task_index - job.servers))
            cluster.serve()
            watching.join(LIMIT_S)
            return
        job = job._replace(index=cluster.task_index)
        make_step = build(job)
        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run(hr.global_variables_initializer())
            missing = hr.report_uninitialized_variables()
            while session.run(missing).size:
                time.sleep(0.01)
            measure(make_step(session), job)
