"""The language model on a cluster of Headrace; its processes are ranks that mpirun starts."""

from __future__ import annotations

import time

import numpy as np

import headrace as hr
from benchmarks.ps_train.graph import train_step
from benchmarks.ps_train.sizes import words
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
        fed, train, loss = train_step(hr, job.kind, job.servers, job.index)
        rng = np.random.default_rng(job.index)
        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run(hr.global_variables_initializer())
            missing = hr.report_uninitialized_variables()
            while session.run(missing).size:
                time.sleep(0.01)
            call = session.make_callable([train, loss], [fed])
            measure(lambda: call(words(rng))[1], job)
