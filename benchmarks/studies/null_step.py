"""What a step over processes costs by itself, beside TensorFlow's gRPC, torch's gloo and plain MPI.

One ps holds the parameters, and each worker takes them, or some rows of them, and sends a trivial
update, again and again. Beside the time of a step stands the CPU time that all processes together
spent for it: where there are more processes than cores, the former says little.

References:
    M. Abadi et al., TensorFlow: a system for large-scale machine learning, OSDI 2016, section 6.2.
"""

from __future__ import annotations

import importlib.util
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

from benchmarks.controller import Progress, RunSettings
from benchmarks.null_step.kinds import KINDS
from benchmarks.null_step.timing import LIMIT_S, Job
from benchmarks.peers import NOT_INSTALLED
from benchmarks.process import ROOT, environment
from benchmarks.studies import Result
from benchmarks.table import figure, row

WORKERS = (1, 2, 4, 8)
# The module of each participant, and what it needs.
PARTICIPANTS = {
    "headrace": "headrace_mpi",
    "tensorflow": "tensorflow",
    "gloo": "torch",
    "mpi": "mpi4py",
}
# Those whose processes mpirun starts, all at once.
_RANKS = ("headrace", "mpi")
MOST_THREADS = 4
# No worker waits longer than this, in terms of the mean.
UNFAIR = 2.0
_HEAD = (
    *("parameters", "workers", "participant", "steps a second", "us per step", "best us"),
    *("CPU us per step", "slowest worker", "Python threads of the ps"),
)
_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
# Steps that are measured have their kernels, and no thread compiles beside them.
_WHOLE = {"HEADRACE_COMPILE_WAIT": "1"}


class Found(NamedTuple):
    """What a job of null steps cost.

    Attributes:
        steps_s: Steps per second of all workers together.
        step_s: Mean time of a step.
        best_s: Time of the fastest step.
        cpu_s: CPU time of all processes per step.
        slowest: Mean time of a step of the slowest worker, in terms of that of all.
        threads: How many threads of Python the ps had.
    """

    steps_s: float
    step_s: float
    best_s: float
    cpu_s: float
    slowest: float
    threads: int


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all participants in turn."""
    lines = [row(_HEAD), row(["---", "---:", "---", *["---:"] * (len(_HEAD) - 3)])]
    good = True
    for kind in KINDS:
        for workers in WORKERS:
            for participant, module in PARTICIPANTS.items():
                if importlib.util.find_spec(module) is None:
                    lines.append(row([kind, str(workers), participant, NOT_INSTALLED]))
                    continue
                progress(f"null-step: {kind}, {workers} workers, {participant}")
                found = measure(participant, kind, workers, 0.5 * min(settings.rounds, 10))
                if participant == "headrace":
                    good &= found.threads <= MOST_THREADS and found.slowest <= UNFAIR
                lines.append(row([kind, str(workers), participant, *_cells(found)]))
    return Result(lines, good)


def _cells(found: Found) -> list[str]:
    times = (found.step_s, found.best_s, found.cpu_s)
    each = (figure(seconds * 1e6) for seconds in times)
    return [figure(found.steps_s), *each, f"{found.slowest:.2f}", str(found.threads)]


def measure(participant: str, kind: str, workers: int, seconds: float) -> Found:
    """Run one job, and return what it cost.

    Raises:
        RuntimeError: if a process failed, with what it printed.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        job = Job(kind, Path(folder), workers, seconds, -1, _free_ports(workers + 1))
        indices = [-1] if participant in _RANKS else range(-1, workers)
        processes = [_started(stack, job._replace(index=i), participant) for i in indices]
        # The first one is the ps, which may never end; or mpirun.
        waited = processes if participant in _RANKS else processes[1:]
        for process in waited:
            if process.wait(2 * LIMIT_S + seconds):
                output = "\n".join(p.read_text() for p in Path(folder).glob("*.log"))
                raise RuntimeError(f"the null step of {participant} failed:\n{output[-4000:]}")
        done = [json.loads(path.read_text()) for path in Path(folder).glob("done-*")]
        ps = json.loads(_there(Path(folder, "ps")).read_text())
    steps = sum(one["steps"] for one in done)
    means = [one["seconds"] / one["steps"] for one in done]
    mean = sum(one["seconds"] for one in done) / steps
    return Found(
        sum(1 / mean for mean in means),
        mean,
        min(one["best"] for one in done),
        (ps["cpu"] + sum(one["cpu"] for one in done)) / steps,
        max(means) / mean,
        ps["threads"],
    )


def _started(stack: ExitStack, job: Job, participant: str) -> subprocess.Popen[bytes]:
    """Start a process of a job, which is ended with the stack."""
    described = json.dumps({**job._asdict(), "folder": str(job.folder)})
    arguments = [sys.executable, "-m", "benchmarks.null_step.program", participant, described]
    if participant in _RANKS:
        beside = shutil.which("mpirun", path=str(Path(sys.executable).parent))
        mpirun = beside or shutil.which("mpirun") or "mpirun"
        arguments = [mpirun, "-n", str(job.workers + 1), "--bind-to", "none", *arguments]
    with Path(job.folder, f"{job.index}.log").open("wb") as log:
        process = subprocess.Popen(
            arguments, cwd=ROOT, env={**environment(1), **_MPI, **_WHOLE}, stdout=log, stderr=log
        )
    stack.callback(process.wait, LIMIT_S)
    # A launcher that is asked to end ends its ranks; a server of TensorFlow's does not listen.
    stack.callback(process.terminate if participant in _RANKS else process.kill)
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
