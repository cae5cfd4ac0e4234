"""What each rank runs: sums of all sizes by all participants in turns, and a network on shares.

    mpirun -n 2 python -m benchmarks.collectives.program sums OUT ROUNDS
    mpirun -n 2 python -m benchmarks.collectives.program lenet OUT ROUNDS
    python -m benchmarks.collectives.program lenet OUT ROUNDS

writes seconds as JSON into the file OUT.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (4, 64 * 1024, 1_000_000, 100_000_000)
HEADRACE, OPEN_MPI, GLOO = "Headrace", "Open MPI", "torch gloo"
# How long to repeat a sum in each round, about.
_ROUND_S = 0.3

Sum = Callable[[], Any]


def headrace(nbytes: int) -> Sum:
    """Return a prepared step that sums an array over all ranks."""
    import headrace as hr

    value = np.ones(nbytes // 4, np.float32)
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, value.shape)
        call = hr.Session().make_callable(hr.dist.all_reduce(x), [x])
    return lambda: call(value)


def open_mpi(nbytes: int) -> Sum:
    """Return a call of MPI's own sum; not the one that blocks, as that does not yield its core."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Dup()
    value = np.ones(nbytes // 4, np.float32)
    out = np.empty_like(value)

    def call() -> Any:
        request = comm.Iallreduce(value, out)
        while not request.Test():
            os.sched_yield()
        return out

    return call


def gloo(nbytes: int) -> Sum:
    """Return a call of torch's sum with its backend for CPUs."""
    import torch
    import torch.distributed as dist

    value = torch.ones(nbytes // 4)

    def call() -> Any:
        # In place: the values grow, and what is timed is the same.
        dist.all_reduce(value)
        return value

    return call


def sums(folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Return seconds per sum, by participant and size; the best of all rounds."""
    import headrace as hr

    makers = {HEADRACE: headrace, OPEN_MPI: open_mpi}
    # Its MPI starts first: what comes after it shares the job.
    rank, size = hr.dist.rank(), hr.dist.size()
    if importlib.util.find_spec("torch") is not None:
        import torch.distributed as dist

        store = f"file://{folder / 'gloo'}"
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
        makers[GLOO] = gloo
    wait = headrace(4)
    found: dict[str, dict[str, float]] = {name: {} for name in makers}
    for nbytes in SIZES:
        calls = {name: make(nbytes) for name, make in makers.items()}
        for call in calls.values():
            for _ in range(4):
                call()
        for _ in range(rounds):
            for name, call in calls.items():
                wait()
                begin = time.perf_counter()
                call()
                once = time.perf_counter() - begin
                count = max(int(_agreed(_ROUND_S / once)), 1)
                wait()
                begin = time.perf_counter()
                for _ in range(count):
                    call()
                seconds = (time.perf_counter() - begin) / count
                known = found[name].get(str(nbytes), seconds)
                found[name][str(nbytes)] = min(known, seconds)
    return found


def _agreed(number: float) -> float:
    """Return the least of a number over all ranks: all are to do something as often."""
    from mpi4py import MPI

    return float(MPI.COMM_WORLD.allreduce(number, op=MPI.MIN))


def lenet(rounds: int) -> dict[str, float]:
    """Return seconds per step of this rank's share of a batch; the best of all rounds."""
    import headrace as hr
    from benchmarks.networks import dataflow
    from benchmarks.networks.tasks import TASKS

    task = TASKS["lenet"]
    rank, size = hr.dist.rank(), hr.dist.size()
    program = dataflow.build(hr, task)
    optimizer = hr.dist.DistributedOptimizer(hr.train.GradientDescentOptimizer(task.rate))
    train = optimizer.minimize(program.loss)
    threads = int(os.environ["OMP_NUM_THREADS"])
    with hr.Session(config=hr.Config(threads=threads)) as session:
        session.run(hr.global_variables_initializer())
        dataflow.load(session, program, task)
        call = session.make_callable(train, program.feeds)
        rows = task.batch // size
        mine = slice(rank * rows, (rank + 1) * rows)
        feeds = [(images[mine], labels[mine]) for images, labels in task.feeds()]
        for images, labels in feeds[: task.lead_in]:
            call(images, labels)
        best = float("inf")
        for _ in range(rounds):
            begin = time.perf_counter()
            for images, labels in feeds:
                call(images, labels)
            best = min(best, (time.perf_counter() - begin) / len(feeds))
    return {"step": best}


def main() -> None:
    """Measure, and let the first rank write what was found."""
    what, path, rounds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    found: Any = sums(path.parent, rounds) if what == "sums" else lenet(rounds)
    if int(os.environ.get("OMPI_COMM_WORLD_RANK", "0")) == 0:
        path.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
