"""Faults in every phase and role of a job on a cluster, and what is promised of each.

A cell is a phase, a role and a fault. The job is synchronous training on one parameter server and
three workers that goes on without a lost worker (``program.py``).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from .environment import of_job

PHASES = ("start", "register", "init", "transfer", "kernel", "admission", "save", "exit")
ROLES = ("ps", "chief", "worker")
FAULTS = {
    "exception": "raise",
    "SIGKILL": "kill",
    "SIGSTOP": "stop",
    "exit(0)": "exit=0",
    "exit(3)": "exit=3",
    "out of memory": "memory",
}
WITHIN_S = 10.0
# Silence after which a rank is lost; with it, a stopped one is found within the promised time.
LOST_AFTER_S = 4.0
_START_S = 5.0
_RANKS = {"ps": 0, "chief": 1, "worker": 3}
_TASKS = {"ps": "ps:0", "chief": "worker:0", "worker": "worker:2"}
# How often which point is passed until then. No point is passed on a parameter server between the
# admission of a gradient and its arrival, nor on a worker while the chief saves: there it is a
# step in the middle of them.
_POINTS = {
    "start": ("start", 1),
    "register": ("register", 1),
    "init": ("run", 1),
    "transfer": ("transfer", 30),
    "kernel": ("run", 20),
    "admission": ("admission", 8),
    "save": ("save", 2),
    "exit": ("exit", 1),
}
_ELSEWHERE = {("admission", "ps"): ("transfer", 60), ("save", "worker"): ("run", 30)}
_PROGRAM = Path(__file__).with_name("program.py")
_STEPS = 40
_ERRORS = ("exception", "out of memory")


@dataclass(frozen=True)
class Cell:
    """A fault in a phase of a role."""

    phase: str
    role: str
    fault: str

    @property
    def setting(self) -> str:
        """What ``HEADRACE_FAULTS`` says."""
        point, count = _ELSEWHERE.get((self.phase, self.role), _POINTS[self.phase])
        # Before the cluster is formed, nobody has a task.
        process = f"rank:{_RANKS[self.role]}" if self.phase == "start" else _TASKS[self.role]
        return f"{process} {point} {FAULTS[self.fault]} {count}"

    @property
    def codes(self) -> tuple[int, ...]:
        """The exit codes that are promised."""
        error = self.fault in _ERRORS
        if self.phase == "start":
            # No cluster is there yet that could go on.
            return (1, 70) if error else (70, 75)
        if self.role == "worker" or (self.role == "chief" and not error):
            return (0,)
        if not error:
            # At the very end the others are done, and say so.
            return (1, 75) if (self.phase, self.fault) == ("exit", "SIGSTOP") else (75,)
        if self.role == "chief" or self.phase == "exit":
            return (1,)
        # An error on the parameter server is that of a session's step: if the chief's, the job's.
        return (0, 1)

    def __str__(self) -> str:
        return f"{self.phase} {self.role} {self.fault}"


@dataclass(frozen=True)
class Ending:
    """How a cell went.

    Attributes:
        wrong: What is not as promised; empty if all is.
        code: The exit code.
        seconds: From the fault until all others knew of it, or the job had ended.
    """

    wrong: str
    code: int
    seconds: float


def cells() -> Iterator[Cell]:
    """All cells."""
    return (Cell(*names) for names in product(PHASES, ROLES, FAULTS))


class _Told:
    """The lines that a job writes, with the time of each."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.lines: list[tuple[float, str]] = []
        self._source = process.stdout
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._source is not None
        with self._source:
            for line in self._source:
                self.lines.append((time.monotonic(), line.decode("utf-8", "replace").rstrip()))

    def finish(self) -> None:
        self._thread.join(5)

    def times(self, pattern: str) -> list[float]:
        return [at for at, line in list(self.lines) if re.search(pattern, line)]

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


def run_cell(cell: Cell, folder: Path, *, patience_s: float = 120.0) -> Ending:
    """Run the job with a fault, and compare what comes of it with what is promised.

    Args:
        cell: The fault.
        folder: An empty folder.
        patience_s: After how many seconds in all the job is ended, and counts as hanging.
    """
    mark = uuid.uuid4().hex
    environ = of_job(
        folder,
        HEADRACE_FAULTS=cell.setting,
        HEADRACE_START_TIMEOUT=f"{30 if cell.phase != 'start' else _START_S:g}",
        HEADRACE_SLOW_AFTER=f"{LOST_AFTER_S / 2:g}",
        HEADRACE_LOST_AFTER=f"{LOST_AFTER_S:g}",
        HEADRACE_TEST_JOB=mark,
    )
    words = ["-n", "4", "--ps", "1", str(_PROGRAM), str(folder / "run"), str(_STEPS)]
    job = subprocess.Popen(
        [sys.executable, "-m", "headrace", "run", *words],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    told = _Told(job)
    hung = False
    try:
        job.wait(patience_s)
    except subprocess.TimeoutExpired:
        hung = True
        job.terminate()
        job.wait(30)
    end = time.monotonic()
    told.finish()
    wrong, seconds = _compare(cell, told, job.returncode, end)
    left = _processes(f"HEADRACE_TEST_JOB={mark}")
    if hung:
        wrong = f"it hung: {told.text[-1500:]}"
    elif left:
        wrong = f"processes are left: {left}"
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    return Ending(wrong, job.returncode, seconds)


def _compare(cell: Cell, told: _Told, code: int, end: float) -> tuple[str, float]:
    """Return what is wrong, and the seconds from the fault until all knew of it."""
    faults = told.times(r"headrace: fault: ")
    if not faults:
        return f"the fault did not happen: {told.text[-1500:]}", 0.0
    if code not in cell.codes:
        return f"code {code}, expected {cell.codes}: {told.text[-1500:]}", end - faults[0]
    if code:
        seconds = end - faults[0]
    else:
        knew = told.times(r"goes on without a worker: ")
        seconds = max(knew) - faults[0] if knew else 0.0
        # Another worker takes the place of a lost chief, unless that had done all there was to do.
        moved = cell.role == "chief" and cell.phase != "exit"
        chief = "worker:1" if moved else "worker:0"
        if not told.times(rf"\[{chief}\] loss \d"):
            return f"the chief did not come to its end: {told.text[-1500:]}", seconds
        if len(told.times(rf"\[{chief}\] .* is the chief from now on")) != moved:
            return f"{chief} did not say that it is the chief: {told.text[-1500:]}", seconds
        if cell.phase != "exit" and len(knew) != 3:
            return f"{len(knew)} of 3 survivors said so: {told.text[-1500:]}", seconds
    return "", seconds


def _processes(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found
