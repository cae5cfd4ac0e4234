"""``mpirun -n 3 python -m tests.soak.ranks FOLDER``: 100000 steps on a ps and two workers.

Each worker takes a small variable and updates it in every step, and every 50th one takes one of a
megabyte, which comes in memory that the ps lends. The first worker looks at all three processes ten
times on the way, from outside, and fails if memory, threads, descriptors or shared memory grew.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import headrace as hr

SAMPLES = 10
_WARM = 2
# What a process may hold more than when it was warm. Each worker may have a piece of lent memory at
# once, which happens late or never, and a thread is added where others wait.
_SLACK = {"memory_mb": 8.0, "threads": 1, "descriptors": 2, "shared": 2}
_LARGE_EVERY = 50
_LIMIT_S = 120.0


class Seen(NamedTuple):
    """What a process holds, seen from outside."""

    memory_mb: float
    threads: int
    descriptors: int
    shared: int


def look(pid: int) -> Seen:
    """Return what a process holds now."""
    folder = Path(f"/proc/{pid}")
    pages = int((folder / "statm").read_text().split()[1])
    threads = len(list((folder / "task").iterdir()))
    descriptors = len(list((folder / "fd").iterdir()))
    shared = (folder / "maps").read_text().count("memfd:headrace")
    return Seen(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, threads, descriptors, shared)


def grown(samples: Sequence[Seen]) -> list[str]:
    """Return what has grown since the processes were warm."""
    warm, last = samples[_WARM - 1], samples[-1]
    return [
        f"{name} grew from {before:g} to {after:g}"
        for name, before, after in zip(Seen._fields, warm, last, strict=True)
        if after > before + _SLACK[name]
    ]


def pids(folder: Path, count: int) -> dict[str, int]:
    """Return the processes of all tasks, once they have written them down."""
    deadline = time.monotonic() + _LIMIT_S
    while len(found := sorted(folder.glob("pid-*"))) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(found)} of {count} ranks have come after {_LIMIT_S:.0f} s")
        time.sleep(0.01)
    return {path.name.removeprefix("pid-"): int(path.read_text()) for path in found}


def main(words: Sequence[str] | None = None) -> int:
    """Play the part of this rank; the first worker returns 1 where something grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.ranks")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args(words)
    with hr.dist.Cluster(ps=1) as cluster:
        own = options.folder / f".{cluster.job_name}{cluster.task_index}"
        own.write_text(str(os.getpid()))
        own.rename(options.folder / f"pid-{own.name[1:]}")
        if cluster.job_name == "ps":
            cluster.serve()
            return 0
        with hr.device("/job:ps/task:0"):
            small = hr.get_variable("small", [16], initializer=hr.zeros_initializer())
            large = hr.get_variable("large", [1 << 18], initializer=hr.zeros_initializer())
        with hr.device(f"/job:worker/task:{cluster.task_index}"):
            gradient = 0.5 * small + 1.0
            taken = hr.reduce_sum(large)
        update = hr.assign_sub(small, 0.01 * gradient).op
        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run(hr.global_variables_initializer())
            while not all(session.run([hr.is_variable_initialized(v) for v in (small, large)])):
                time.sleep(0.01)
            step, take = session.make_callable(update, []), session.make_callable(taken, [])
            seen: dict[str, list[Seen]] = {}
            for i in range(1, options.steps + 1):
                step()
                if i % _LARGE_EVERY == 0:
                    take()
                if cluster.is_chief and i % (options.steps // SAMPLES) == 0:
                    for name, pid in pids(options.folder, 3).items():
                        seen.setdefault(name, []).append(look(pid))
    bad = False
    for name, samples in seen.items():
        faults = grown(samples)
        held = ", ".join(f"{value:g} {field}" for field, value in samples[-1]._asdict().items())
        lines = [f"{name} after {options.steps} steps: {held}", *(faults or ["nothing grew"])]
        sys.stdout.write("\n  ".join(lines) + "\n")
        bad = bad or bool(faults)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
