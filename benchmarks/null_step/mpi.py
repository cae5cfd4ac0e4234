"""The null step written by hand on MPI: a request with the update, an answer with data."""

from __future__ import annotations

import numpy as np

from benchmarks.null_step.kinds import KINDS, ROWS_TAKEN
from benchmarks.server_jobs.timing import LIMIT_S, Job, measure, watch

_END = -1


def play(job: Job) -> None:
    """Play the part of this rank."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    job = job._replace(index=comm.Get_rank() - job.servers)
    kind = KINDS[job.kind]
    request = np.zeros(ROWS_TAKEN if kind.sparse else 1, np.int64)
    if job.index < 0:
        parameters, left = np.zeros(kind.shape, np.float32), job.workers
        watching, status = watch(job), MPI.Status()
        while left:
            comm.Recv(request, MPI.ANY_SOURCE, 0, status)
            if int(request[0]) == _END:
                left -= 1
            else:
                comm.Send(parameters[request] if kind.sparse else parameters, status.Get_source())
        watching.join(LIMIT_S)
        return
    room = np.zeros((ROWS_TAKEN, *kind.shape[1:]) if kind.sparse else kind.shape, np.float32)
    rng = np.random.default_rng(job.index)

    def step() -> None:
        if kind.sparse:
            request[:] = rng.integers(0, kind.shape[0], ROWS_TAKEN)
        for server in range(job.servers):
            comm.Send(request, server)
        for server in range(job.servers):
            comm.Recv(room, server)

    measure(step, job)
    request[0] = _END
    for server in range(job.servers):
        comm.Send(request, server)
