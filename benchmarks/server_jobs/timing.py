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
        kind: What is measured, a name that the study knows.
        folder: Where results are written.
        workers: How many workers there are.
        servers: How many parameter servers there are.
        seconds: For how long steps are run.
        index: The number of this worker; those of servers begin at minus their number.
        ports: A port for each server, and one for each worker.
    """

    kind: str
    folder: Path
    workers: int
    servers: int
    seconds: float
    index: int
    ports: list[int]

    @property
    def server(self) -> int:
        """The number of this server; below 0 for none."""
        return self.index + self.servers if self.index < 0 else -1


def measure(step: Callable[[], object], job: Job) -> None:
    """Run steps on a worker for a while, beginning with the others, and write what they cost.

    Args:
        step: Runs a step; what the last one returns is noted, if it is a number.
        job: The job.
    """
    for _ in range(_WARM):
        step()
    (job.folder / f"ready-{job.index}").touch()
    _await(job, "ready")
    times = []
    cpu, start = time.process_time(), time.perf_counter()
    last, result = start, None
    while last - start < job.seconds or not times:
        result = step()
        now = time.perf_counter()
        times.append(now - last)
        last = now
    found = {
        "steps": len(times),
        "seconds": last - start,
        "best": min(times),
        "cpu": time.process_time() - cpu,
        "result": 0.0 if result is None else float(result),
    }
    _write(job.folder / f"done-{job.index}", found)
    _await(job, "done")


def watch(job: Job) -> threading.Thread:
    """On a server, write what its CPU time and its threads are while the workers measure.

    Threads are the fewest of many looks: those that it keeps. While jobs are held up, as on a busy
    machine, a pool has one more.

    Returns:
        The thread that does so, to be waited for.
    """

    def look() -> None:
        _await(job, "ready")
        cpu = time.process_time()
        counts: list[int] = []
        # Without the one that looks.
        _await(job, "done", lambda: counts.append(threading.active_count() - 1))
        _write(
            job.folder / f"server-{job.server}",
            {"cpu": time.process_time() - cpu, "threads": min(counts)},
        )

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    return watching


def _await(job: Job, what: str, look: Callable[[], object] = lambda: None) -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        look()
        if len(list(job.folder.glob(f"{what}-*"))) >= job.workers:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all workers are {what} after {LIMIT_S:.0f} s")
        time.sleep(0.01)


def _write(path: Path, found: dict[str, float]) -> None:
    # Whole or not at all: others look for it.
    path.with_name(f".{path.name}").write_text(json.dumps(found))
    path.with_name(f".{path.name}").rename(path)
