"""Timing in all processes of a job at once: they begin together, and write what they found."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# Everybody has come by then, or nobody waits any more.
LIMIT_S = 120.0
_WARM = 5


class Job(NamedTuple):
    """What a process knows of the job that it is in.

    Attributes:
        kind: Key in ``KINDS``.
        folder: Where results are written.
        workers: How many workers there are.
        seconds: For how long steps are run.
        index: The number of this worker; -1 for the ps.
        ports: A port for the ps, and one for each worker.
    """

    kind: str
    folder: Path
    workers: int
    seconds: float
    index: int
    ports: list[int]


def measure(step: Callable[[], object], job: Job) -> None:
    """Run steps on a worker for a while, beginning with the others, and write what they cost."""
    for _ in range(_WARM):
        step()
    (job.folder / f"ready-{job.index}").touch()
    _await(job, "ready")
    times = []
    cpu, start = time.process_time(), time.perf_counter()
    last = start
    while last - start < job.seconds or not times:
        step()
        now = time.perf_counter()
        times.append(now - last)
        last = now
    found = {
        "steps": len(times),
        "seconds": last - start,
        "best": min(times),
        "cpu": time.process_time() - cpu,
    }
    _write(job.folder / f"done-{job.index}", found)
    _await(job, "done")


def watch(job: Job) -> threading.Thread:
    """On the ps, write what its CPU time and its threads are while the workers measure.

    Returns:
        The thread that does so, to be waited for.
    """

    def look() -> None:
        _await(job, "ready")
        cpu = time.process_time()
        # Without the one that looks.
        threads = threading.active_count() - 1
        _await(job, "done")
        _write(job.folder / "ps", {"cpu": time.process_time() - cpu, "threads": threads})

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    return watching


def _await(job: Job, what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while len(list(job.folder.glob(f"{what}-*"))) < job.workers:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all workers are {what} after {LIMIT_S:.0f} s")
        time.sleep(0.01)


def _write(path: Path, found: dict[str, float]) -> None:
    # Whole or not at all: others look for it.
    path.with_name(f".{path.name}").write_text(json.dumps(found))
    path.with_name(f".{path.name}").rename(path)
