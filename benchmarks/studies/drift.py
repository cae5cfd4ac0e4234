"""Whether anything grows in a long run: memory, threads, graph and time over 100 000 steps."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from benchmarks.controller import Progress, RunSettings
from benchmarks.memory import resident_bytes, thread_count
from benchmarks.process import ROOT, environment
from benchmarks.studies import Result
from benchmarks.table import figure, row

STEPS = 100_000
VARIANTS = ("Session.run", "make_callable")
# Plans, kernels and pools are made in the first steps; the first look is taken after those.
SETTLED = STEPS // 10
# What the allocator may keep without anything having been lost.
ALLOWED_BYTES = 2_000_000


@dataclass(frozen=True)
class Look:
    """The state of a process at some step.

    Attributes:
        resident: resident memory, in bytes.
        threads: number of threads.
        nodes: operations in the graph.
        step_s: time per step since the look before, in seconds.
    """

    resident: int
    threads: int
    nodes: int
    step_s: float


def run(settings: RunSettings, progress: Progress) -> Result:
    """Run the steps in a new process for each way to run them."""
    head = ("participant", "step", "resident MB", "threads", "nodes", "us per step")
    lines = [row(head), row(["---"] + ["---:"] * (len(head) - 1))]
    grown: list[str] = []
    for variant in VARIANTS:
        progress(f"drift: {variant}")
        first, last = _looks(variant, settings)
        for step, look in ((SETTLED, first), (STEPS, last)):
            memory = f"{look.resident / 1e6:.2f}"
            counts = [str(look.threads), str(look.nodes)]
            cells = [f"headrace, {variant}", str(step), memory, *counts, figure(look.step_s * 1e6)]
            lines.append(row(cells))
        grown += [f"{what} ({variant})" for what in drifts(first, last)]
    span = f"between step {SETTLED} and step {STEPS}"
    told = f"**What grew {span}**: {', '.join(grown)}." if grown else f"Nothing grew {span}."
    return Result([*lines, "", told], not grown)


def drifts(first: Look, last: Look) -> list[str]:
    """Name what grew between two looks; time is shown and not judged, for machines vary."""
    grown = {
        "memory": last.resident > first.resident + ALLOWED_BYTES,
        "threads": last.threads > first.threads,
        "graph": last.nodes > first.nodes,
    }
    return [what for what, has in grown.items() if has]


def _looks(variant: str, settings: RunSettings) -> tuple[Look, Look]:
    """Run the steps in a new process; returns what it saw after the settling, and at the end."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.studies.drift", variant, str(settings.threads)],
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
        encoding="utf-8",
        env=environment(settings.threads),
        timeout=settings.timeout_s,
    )
    first, last = json.loads(done.stdout.splitlines()[-1])
    return Look(**first), Look(**last)


def main(arguments: list[str]) -> None:
    """Be the new process, and print what it saw."""
    variant, threads = arguments
    import headrace as hr
    from benchmarks.headrace_session import open_session, stepper
    from benchmarks.studies.programs import build

    program = build(hr, "nodes", 20)
    counter = hr.Variable(hr.zeros([]))
    fetch = [program.fetch, hr.assign_add(counter, hr.reduce_sum(program.fetch))]
    session = open_session(int(threads))
    session.run(hr.global_variables_initializer())
    step = stepper(session, variant, fetch, program.feeds)
    looks = [
        _look(lambda: step(*program.values), count, hr.get_default_graph())
        for count in (SETTLED, STEPS - SETTLED)
    ]
    sys.stdout.write(f"\n{json.dumps([asdict(look) for look in looks])}\n")


def _look(step: Callable[[], object], count: int, graph: object) -> Look:
    """Run steps, and look."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    each = (time.perf_counter() - start) / count
    nodes = len(graph.get_operations())  # type: ignore[attr-defined]
    return Look(resident_bytes(), thread_count(), nodes, each)


if __name__ == "__main__":
    main(sys.argv[1:])
