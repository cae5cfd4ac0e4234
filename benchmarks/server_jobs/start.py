"""Starting the processes of a job, and what their work cost."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.process import ROOT, environment
from benchmarks.server_jobs.timing import LIMIT_S, Job

# Those whose processes mpirun starts, all at once.
_RANKS = ("headrace", "mpi")
_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
# Steps that are measured have their kernels, and no thread compiles beside them.
_WHOLE = {"HEADRACE_COMPILE_WAIT": "1"}


class Found(NamedTuple):
    """What a job cost.

    Attributes:
        steps_s: Steps per second of all workers together.
        step_s: Mean time of a step.
        best_s: Time of the fastest step.
        cpu_s: CPU time of all processes per step.
        slowest: Mean time of a step of the slowest worker, in terms of that of all.
        threads: How many threads of Python a server kept while they measured, at most.
        result: What the last steps of the workers returned, their mean.
    """

    steps_s: float
    step_s: float
    best_s: float
    cpu_s: float
    slowest: float
    threads: int
    result: float


def run_job(
    study: str, participant: str, kind: str, workers: int, servers: int, seconds: float
) -> Found:
    """Run a job, and return what it cost.

    Args:
        study: The package of the participants' programs, as ``null_step``.
        participant: The module in it.
        kind: As in ``Job``.
        workers: How many workers there are.
        servers: How many parameter servers there are.
        seconds: For how long workers run steps.

    Raises:
        RuntimeError: if a process failed, with what it printed.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports = _free_ports(workers + servers)
        job = Job(kind, Path(folder), workers, servers, seconds, -servers, ports)
        indices = [-servers] if participant in _RANKS else range(-servers, workers)
        module = f"benchmarks.{study}.{participant}"
        processes = [_started(stack, job._replace(index=i), module) for i in indices]
        # The first ones are the servers, which may never end; or it is mpirun.
        waited = processes if participant in _RANKS else processes[servers:]
        for process in waited:
            if process.wait(2 * LIMIT_S + seconds):
                output = "\n".join(p.read_text() for p in Path(folder).glob("*.log"))
                raise RuntimeError(f"{study} of {participant} failed:\n{output[-4000:]}")
        done = [json.loads(path.read_text()) for path in Path(folder).glob("done-*")]
        served = [
            json.loads(_there(Path(folder, f"server-{number}")).read_text())
            for number in range(servers)
        ]
    steps = sum(one["steps"] for one in done)
    means = [one["seconds"] / one["steps"] for one in done]
    mean = sum(one["seconds"] for one in done) / steps
    return Found(
        sum(1 / mean for mean in means),
        mean,
        min(one["best"] for one in done),
        sum(one["cpu"] for one in (*served, *done)) / steps,
        max(means) / mean,
        max(one["threads"] for one in served),
        sum(one["result"] for one in done) / workers,
    )


def _started(stack: ExitStack, job: Job, module: str) -> subprocess.Popen[bytes]:
    """Start a process of a job, which is ended with the stack."""
    described = json.dumps({**job._asdict(), "folder": str(job.folder)})
    arguments = [sys.executable, "-m", "benchmarks.server_jobs.program", module, described]
    ranks = module.rpartition(".")[2] in _RANKS
    if ranks:
        beside = shutil.which("mpirun", path=str(Path(sys.executable).parent))
        mpirun = beside or shutil.which("mpirun") or "mpirun"
        arguments = [mpirun, "-n", str(job.workers + job.servers), "--bind-to", "none", *arguments]
    with Path(job.folder, f"{job.index}.log").open("wb") as log:
        process = subprocess.Popen(
            arguments, cwd=ROOT, env={**environment(1), **_MPI, **_WHOLE}, stdout=log, stderr=log
        )
    stack.callback(process.wait, LIMIT_S)
    # A launcher that is asked to end ends its ranks; a server of TensorFlow's does not listen.
    stack.callback(process.terminate if ranks else process.kill)
    return process


def _there(path: Path) -> Path:
    """Return a path when there is a file."""
    deadline = time.monotonic() + LIMIT_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {path.name} after {LIMIT_S:.0f} s")
        time.sleep(0.01)
    return path


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
