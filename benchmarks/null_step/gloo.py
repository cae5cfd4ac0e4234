"""The null step written by hand on torch's gloo: a request with the update, an answer with data."""

from __future__ import annotations

from benchmarks.null_step.kinds import KINDS, ROWS_TAKEN
from benchmarks.server_jobs.timing import LIMIT_S, Job, measure, watch

_END = -1


def play(job: Job) -> None:
    """Play the part of this process."""
    import torch
    import torch.distributed as dist

    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{job.ports[0]}",
        world_size=job.workers + job.servers,
        rank=job.index + job.servers,
    )
    kind = KINDS[job.kind]
    request = torch.zeros(ROWS_TAKEN if kind.sparse else 1, dtype=torch.int64)
    if job.index < 0:
        parameters, left = torch.zeros(kind.shape), job.workers
        watching = watch(job)
        while left:
            source = dist.recv(request)
            if int(request[0]) == _END:
                left -= 1
            else:
                dist.send(parameters[request] if kind.sparse else parameters, source)
        watching.join(LIMIT_S)
        return
    room = torch.zeros((ROWS_TAKEN, *kind.shape[1:]) if kind.sparse else kind.shape)
    generator = torch.Generator().manual_seed(job.index)

    def step() -> None:
        if kind.sparse:
            torch.randint(0, kind.shape[0], (ROWS_TAKEN,), generator=generator, out=request)
        for server in range(job.servers):
            dist.send(request, server)
        for server in range(job.servers):
            dist.recv(room, server)

    measure(step, job)
    request.fill_(_END)
    for server in range(job.servers):
        dist.send(request, server)
