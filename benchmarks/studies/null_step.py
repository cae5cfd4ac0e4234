"""What a step over processes costs by itself, beside TensorFlow's gRPC, torch's gloo and plain MPI.

Servers hold the parameters, and each worker takes them, or some rows of them, and sends a trivial
update, again and again. Beside the time of a step stands the CPU time that all processes together
spent for it: where there are more processes than cores, the former says little.

References:
    M. Abadi et al., TensorFlow: a system for large-scale machine learning, OSDI 2016, section 6.2.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from benchmarks.controller import Progress, RunSettings
from benchmarks.null_step.kinds import KINDS
from benchmarks.peers import NOT_INSTALLED
from benchmarks.server_jobs.start import Found, run_job
from benchmarks.studies import Result
from benchmarks.table import figure, row

WORKERS = (1, 2, 4, 8, 16)
# As far as memory goes, rather than messages.
FEWER = {"100 MB": 8, "1 GB": 1}
SERVERS = (2, 4)
# The module of each participant, and what it needs.
PARTICIPANTS = {
    "headrace": "headrace_mpi",
    "tensorflow": "tensorflow",
    "gloo": "torch",
    "mpi": "mpi4py",
}
MOST_THREADS = 4
# No worker waits longer than this, in terms of the mean.
UNFAIR = 2.0
_HEAD = (
    *("parameters", "ps", "workers", "participant", "steps a second", "us per step", "best us"),
    *("CPU us per step", "slowest worker", "Python threads of a ps"),
)


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all participants in turn."""
    lines = [row(_HEAD), row(["---", "---:", "---:", "---", *["---:"] * (len(_HEAD) - 4)])]
    good = True
    for kind, servers, workers in jobs():
        for participant, module in PARTICIPANTS.items():
            start = [kind, str(servers), str(workers), participant]
            if importlib.util.find_spec(module) is None:
                lines.append(row([*start, NOT_INSTALLED]))
                continue
            progress(f"null-step: {kind}, {servers} ps, {workers} workers, {participant}")
            found = measure(participant, kind, workers, 0.5 * min(settings.rounds, 10), servers)
            if participant == "headrace":
                good &= found.threads <= MOST_THREADS and found.slowest <= UNFAIR
            lines.append(row([*start, *_cells(found)]))
    return Result(lines, good)


def jobs() -> Iterator[tuple[str, int, int]]:
    """Yield what is measured: a kind, a number of servers, and one of workers."""
    for kind in KINDS:
        for workers in WORKERS:
            if workers <= FEWER.get(kind, workers):
                yield kind, 1, workers
    for servers in SERVERS:
        yield "4 B", servers, 1


def measure(participant: str, kind: str, workers: int, seconds: float, servers: int = 1) -> Found:
    """Run one job, and return what it cost."""
    return run_job("null_step", participant, kind, workers, servers, seconds)


def _cells(found: Found) -> list[str]:
    times = (found.step_s, found.best_s, found.cpu_s)
    each = (figure(seconds * 1e6) for seconds in times)
    return [figure(found.steps_s), *each, f"{found.slowest:.2f}", str(found.threads)]
