"""The language model on a cluster of Headrace; its processes are ranks that mpirun starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import headrace as hr
from benchmarks.ps_train.graph import train_step
from benchmarks.ps_train.sizes import words
from benchmarks.server_jobs import headrace_cluster
from benchmarks.server_jobs.timing import Job


def play(job: Job) -> None:
    """Play the part of this rank."""
    headrace_cluster.play(job, _build)


def _build(job: Job) -> Callable[[hr.Session], Callable[[], object]]:
    fed, train, loss = train_step(hr, job.kind, job.servers, job.index)
    rng = np.random.default_rng(job.index)

    def make_step(session: hr.Session) -> Callable[[], object]:
        call = session.make_callable([train, loss], [fed])
        return lambda: call(words(rng))[1]

    return make_step
