"""Long jobs whose processes are killed at random, again and again: training goes on each time.

Workers are killed in a job that goes on without them, and that ends, to be started anew with all of
them, when too few are left. The parameter server's loss ends a job each time; it goes on from its
last checkpoint, and its losses are those of a job that nobody killed, to the bit.
"""

from __future__ import annotations

import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .environment import of_job

_PROGRAM = Path(__file__).with_name("killed_program.py")
_PATIENCE_S = 120.0
# Until when all workers have seen that it is enough.
_MORE_STEPS = 100
# More bytes than two lines of losses have.
_LINES = 256


@dataclass(frozen=True)
class Told:
    """What came of it.

    Attributes:
        wrong: What is not as promised; empty if all is.
        said: Figures.
    """

    wrong: str
    said: str = ""


class Job:
    """A job that is started anew where it ends by a loss, and what its ranks note in a folder."""

    def __init__(self, folder: Path, mode: str, steps: int, *options: str) -> None:
        """Start it.

        Args:
            folder: Where ranks note their process ids and losses.
            mode: ``"async"`` or ``"sync"``.
            steps: After how many steps it ends.
            *options: Of ``python -m headrace run``.
        """
        folder.mkdir()
        self.folder = folder
        self._mark = f"HEADRACE_TEST_JOB={uuid.uuid4().hex}"
        name, value = self._mark.split("=")
        environ = of_job(folder, **{name: value})
        words = [*options, str(_PROGRAM), str(folder), mode, str(steps)]
        with (folder / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headrace", "run", *words],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def living(self, kind: str) -> dict[str, int]:
        """Return the process ids of ranks of a job that live, by task."""
        found = {}
        for file in self.folder.glob(f"pid-{kind}-*"):
            with suppress(OSError, ValueError):
                pid = int(file.read_text())
                if self._mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found[file.name.removeprefix("pid-")] = pid
        return found

    def losses(self) -> list[tuple[int, str]]:
        """Return the steps that the chief has made, with the loss of each."""
        file = self.folder / "losses"
        lines = file.read_text().splitlines() if file.exists() else []
        pairs = [line.split() for line in lines if line.endswith(" .")]
        return [(int(at), value) for at, value, _ in pairs]

    def last(self) -> int:
        """Return the last step that the chief has made, 0 before the first."""
        file = self.folder / "losses"
        if not file.exists():
            return 0
        with file.open("rb") as end:
            end.seek(max(file.stat().st_size - _LINES, 0))
            lines = end.read().decode().splitlines(keepends=True)
        return next((int(line.split()[0]) for line in lines[:0:-1] if line.endswith(" .\n")), 0)

    def stop(self, more: int) -> None:
        """Let all workers stop after the step that comes so many after the last one."""
        file = self.folder / "enough.new"
        file.write_text(str(max(at for at, _ in self.losses()) + more))
        file.rename(self.folder / "enough")

    def until(self, condition: Callable[[], object], patience_s: float = _PATIENCE_S) -> bool:
        """Wait for a condition; return whether it came to be."""
        end = time.monotonic() + patience_s
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                return bool(condition())
            time.sleep(0.01)
        return True

    @property
    def starts_anew(self) -> int:
        """How often the job has ended by a loss and was started anew."""
        return len(re.findall(r"^headrace: the job l.* anew", self.said, re.MULTILINE))

    @property
    def said(self) -> str:
        """What the job printed."""
        return (self.folder / "said").read_text()

    def end(self) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


def kill_workers(folder: Path, kills: int, seed: int) -> Told:
    """Kill workers of one job at random; each time the chief must make further steps."""
    draw = random.Random(seed)
    options = ("-n", "5", "--ps", "1", "--min-workers", "2", "--max-restarts", str(2 * kills))
    job = Job(folder / "job", "async", 1 << 40, *options)
    chief, anew = 0, 0
    try:
        for kill in range(kills):
            # Any worker, the chief too, whose place another one takes.
            if not job.until(lambda: len(job.living("worker")) > 1 and job.losses()):
                return Told(f"no worker lived before kill {kill}: {job.said[-1500:]}")
            time.sleep(draw.uniform(0.0, 0.5))
            name, pid = draw.choice(sorted(job.living("worker").items()))
            chief += name.endswith("-0")
            before = len(job.losses())
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if not job.until(lambda n=before: len(job.losses()) > n + 20):  # type: ignore[misc]
                return Told(f"no step was made after kill {kill} ({name}): {job.said[-1500:]}")
        anew = job.starts_anew
        values = [float.fromhex(value) for _, value in job.losses()]
        tenth = max(len(values) // 10, 1)
        first, last = statistics.fmean(values[:tenth]), statistics.fmean(values[-tenth:])
        if not last < first:
            return Told(f"the loss did not fall: {first} to {last}")
        job.stop(_MORE_STEPS)
        if not job.until(lambda: job.process.poll() is not None):
            return Told(f"it did not end: {job.said[-1500:]}")
        if job.process.returncode:
            return Told(f"it ended with {job.process.returncode}: {job.said[-1500:]}")
    finally:
        job.end()
    return Told(
        "",
        f"went on each time ({chief} were of the chief, {anew} starts anew); {len(values)} steps, "
        f"loss {first:.4f} to {last:.4f}",
    )


def kill_ps(folder: Path, kills: int, seed: int) -> Told:
    """Kill the parameter server at random; each time the job must resume, with the same losses."""
    draw = random.Random(seed)
    options = ("-n", "3", "--ps", "1", "--max-restarts", str(2 * kills))
    job = Job(folder / "job", "sync", 1 << 40, *options)
    resumed = []
    try:
        for kill in range(kills):
            if not job.until(lambda: job.living("ps") and job.losses()):
                return Told(f"no server lived before kill {kill}: {job.said[-1500:]}")
            time.sleep(draw.uniform(0.0, 0.3))
            ((_, pid),) = job.living("ps").items()
            before, starts = len(job.losses()), job.starts_anew
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            job.until(lambda n=starts: job.starts_anew > n)  # type: ignore[misc]
            ended = time.monotonic()
            if not job.until(lambda n=pid: set(job.living("ps").values()) - {n}):  # type: ignore[misc]
                return Told(f"it was not started anew after kill {kill}: {job.said[-1500:]}")
            formed = time.monotonic()
            if not job.until(lambda n=before: len(job.losses()) > n + 2):  # type: ignore[misc]
                return Told(f"no step was made after kill {kill}: {job.said[-1500:]}")
            resumed.append((ended - began, formed - ended, time.monotonic() - formed))
        job.stop(_MORE_STEPS)
        if not job.until(lambda: job.process.poll() is not None):
            return Told(f"it did not end: {job.said[-1500:]}")
        if job.process.returncode:
            return Told(f"it ended with {job.process.returncode}: {job.said[-1500:]}")
    finally:
        job.end()
    made = job.losses()
    curve: dict[int, str] = {}
    for at, value in made:
        if curve.setdefault(at, value) != value:
            return Told(f"step {at} has the losses {curve[at]} and {value}")
    whole = Job(folder / "whole", "sync", max(curve) + 1, "-n", "3", "--ps", "1")
    try:
        if not whole.until(lambda: whole.process.poll() is not None, 600):
            return Told(f"the job without kills did not end: {whole.said[-1500:]}")
    finally:
        whole.end()
    if whole.process.returncode:
        return Told(f"the job without kills ended with {whole.process.returncode}: {whole.said}")
    alone = dict(whole.losses())
    wrong = sorted(at for at in curve | alone if curve.get(at) != alone.get(at))
    if wrong:
        pairs = [f"{at}: {curve.get(at)}, {alone.get(at)} without kills" for at in wrong[:4]]
        return Told(f"{len(wrong)} of {len(alone)} losses differ: {'; '.join(pairs)}")
    # On an overloaded machine Open MPI itself does not always start.
    more = job.starts_anew - kills
    parts = zip(*resumed, strict=True)
    end, anew, loading, in_all = (_spread(part) for part in (*parts, map(sum, resumed)))
    return Told(
        "",
        f"resumed each time, with {more} starts that came to nothing: {end} until the job had "
        f"ended, {anew} more until the cluster was "
        f"formed again, {loading} more until the next steps, {in_all} in all; {len(made)} steps "
        f"made, {len(curve)} of them different, with the losses of a job without kills, to the bit",
    )


def _spread(seconds: Iterable[float]) -> str:
    found = list(seconds)
    return f"{statistics.median(found):.1f} s ({min(found):.1f} to {max(found):.1f})"
