"""How long the first step takes of each workload of the suite and each network, cold and warm.

Each is started in a new process with an empty cache of kernels, in one that fills the cache and is
not timed, and in one that finds it full. The process that is timed compiles behind its steps, as
programs of users do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.controller import Progress, RunSettings
from benchmarks.networks.tasks import TASKS
from benchmarks.process import ROOT, environment
from benchmarks.studies import Result
from benchmarks.suite.cases import all_cases
from benchmarks.table import figure, row

# What a first step may take, in seconds.
COLD_S, WARM_S = 0.5, 0.15
# Its size is what it is about.
WITHOUT_GOAL = ("ten-thousand-nodes",)
_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class First:
    """The first step of a workload.

    Attributes:
        cold: Its seconds with an empty cache.
        warm: Its seconds with the cache of another process.
        slowest: Seconds of the slowest of the steps after the first one, with an empty cache.
        compiled: How many kernels the process compiled that had the cache of another.
    """

    cold: float
    warm: float
    slowest: float
    compiled: int


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all, the slowest first; the quickest of some rounds counts."""
    rounds = max(settings.rounds // 4, 1)
    found = {}
    for name in (*all_cases(), *TASKS):
        progress(f"first-steps: {name}")
        found[name] = measure(name, settings.threads, rounds)
    head = ("workload", "cold ms", "slowest of the next 7", "warm ms", "compiled when warm")
    lines = [row(head), row(["---", *["---:"] * (len(head) - 1)])]
    good = True
    for name, first in sorted(found.items(), key=lambda item: -item[1].cold):
        times = [figure(s * 1e3) for s in (first.cold, first.slowest, first.warm)]
        lines.append(row([f"`{name}`", *times, str(first.compiled)]))
        if name not in WITHOUT_GOAL:
            good &= first.cold <= COLD_S and first.warm <= WARM_S and not first.compiled
    return Result(lines, good)


def measure(name: str, threads: int, rounds: int) -> First:
    """Start the processes of a workload, some times, and return the least."""
    firsts = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold = _steps(name, threads, Path(cache), wait=False)
            _steps(name, threads, Path(cache), wait=True)
            kept = _kernels(Path(cache))
            warm = _steps(name, threads, Path(cache), wait=False)
            compiled = _kernels(Path(cache)) - kept
        firsts.append(First(cold[0], warm[0], max(cold[1:]), len(compiled)))
    least = min(first.cold for first in firsts), min(first.warm for first in firsts)
    return First(*least, min(f.slowest for f in firsts), max(f.compiled for f in firsts))


def _kernels(cache: Path) -> set[Path]:
    """Return the files that hold kernels."""
    return {path for path in cache.rglob("*") if path.is_file()}


def _steps(name: str, threads: int, cache: Path, *, wait: bool) -> list[float]:
    """Return the seconds of the first steps of a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.suite.first_step", name, str(threads)],
        cwd=ROOT,
        env={
            **environment(threads),
            "HEADRACE_CACHE": str(cache),
            "HEADRACE_COMPILE_WAIT": str(int(wait)),
        },
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
    )
    if done.returncode:
        raise RuntimeError(f"the first steps of {name} failed:\n{done.stderr[-2000:]}")
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])
    return seconds
