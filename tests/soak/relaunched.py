"""``python -m tests.soak.relaunched``: 100000 steps of four ranks, two workers of which are lost.

The job goes on without the first one that is killed. Without the second one too few are left: the
job is started anew with all of them, and resumes from its last checkpoint. All ranks are looked at
from outside; what a rank holds may not grow within a start of the job, nor from one to the next,
and when the job has ended neither a process nor shared memory is left of it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.faults.cluster.kills import Job

from .ranks import Seen, grown, look

WORKERS = 3
# Of all steps: when a worker is killed, each time another one.
KILLED_AT = (0.3, 0.6)
SAMPLES = 20
_PATIENCE_S = 600.0
_SHARED = Path("/dev/shm")


# What each rank held, by name, in one start of the job.
Start = dict[str, list[Seen]]


def soak(folder: Path, steps: int) -> tuple[list[Start], list[str]]:
    """Run the job.

    Args:
        folder: Where its ranks write.
        steps: How many steps all of its workers make together.

    Returns:
        What the ranks held in each start, and what is not as promised beside that.
    """
    before = {path.name for path in _SHARED.iterdir()}
    # Fewer than all but one: the first loss is lived with, the second is not.
    fewest = str(WORKERS - 1)
    options = ("-n", str(WORKERS + 1), "--ps", "1", "--min-workers", fewest, "--max-restarts", "4")
    job = Job(folder / "job", "async", steps, *options)
    seen: list[Start] = [{}]
    killed: list[str] = []
    try:
        for sample in range(1, SAMPLES):
            due = steps * sample // SAMPLES
            if not job.until(lambda due=due: job.last() >= due, _PATIENCE_S):  # type: ignore[misc]
                return seen, [f"step {due} was not made: {job.said[-1500:]}"]
            while len(seen) <= job.starts_anew:
                seen.append({})
            for name, pid in (job.living("ps") | job.living("worker")).items():
                # It may end while it is looked at.
                with suppress(OSError):
                    seen[-1].setdefault(name, []).append(look(pid))
            if len(killed) < len(KILLED_AT) and due >= KILLED_AT[len(killed)] * steps:
                name, pid = max(job.living("worker").items())
                killed.append(name)
                os.kill(pid, signal.SIGKILL)
        if not job.until(lambda: job.process.poll() is not None, _PATIENCE_S):
            return seen, [f"it did not end: {job.said[-1500:]}"]
    finally:
        job.end()
    faults = []
    if job.process.returncode:
        faults.append(f"it ended with {job.process.returncode}: {job.said[-1500:]}")
    if job.starts_anew != 1:
        faults.append(f"it was started anew {job.starts_anew} times: {job.said[-1500:]}")
    left = job.living("ps") | job.living("worker")
    if left:
        faults.append(f"these processes are left: {left}")
    # Other programs of this machine may have some of their own, but not with our names.
    names = {path.name for path in _SHARED.iterdir()} - before
    if ours := sorted(name for name in names if "headrace" in name):
        faults.append(f"this shared memory is left: {ours}")
    return seen, faults


def growth(seen: Sequence[Start]) -> list[str]:
    """Return what has grown within a start of the job, and from the first to the last."""
    faults = []
    for number, start in enumerate(seen):
        for name, samples in start.items():
            if len(samples) > 2:
                faults += [f"start {number + 1}, {name}: {fault}" for fault in grown(samples)]
    for name in seen[0].keys() & seen[-1].keys() if len(seen) > 1 else ():
        first, last = seen[0][name], seen[-1][name]
        # As it is at the end of each, when both are warm.
        faults += [
            f"{name}, from start to start: {fault}" for fault in grown([*first[-2:], last[-1]])
        ]
    return faults


def main(words: Sequence[str] | None = None) -> int:
    """Return 1 where something grew or was left."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.relaunched")
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        seen, faults = soak(Path(folder), options.steps)
    for number, start in enumerate(seen):
        for name, samples in start.items():
            held = ", ".join(f"{value:g} {field}" for field, value in samples[-1]._asdict().items())
            sys.stdout.write(f"start {number + 1}, {name}, {len(samples)} looks: {held}\n")
    faults += growth(seen)
    sys.stdout.write("\n".join(faults or ["nothing grew, and nothing is left"]) + "\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
