"""Signals in every phase of a training program."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from headrace_train.checkpoint import CheckpointReader, latest_checkpoint

PHASES = ("import", "build", "first step", "steps", "save", "close")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
PROGRAM = Path(__file__).with_name("program.py")
_START_SECONDS = 120.0
# Two seconds are promised; the machine may be busy with other tests.
END_SECONDS = 10.0


@dataclass(frozen=True)
class Ending:
    """How a program ended after a signal.

    Attributes:
        fault: What is wrong with that; empty if nothing is.
        seconds: How long it took.
        late: Whether the program had ended by itself before.
    """

    fault: str
    seconds: float
    late: bool


def phases_of(folder: Path) -> dict[str, float]:
    """Return when a program entered its phases."""
    file = folder / "phases"
    lines = file.read_text().splitlines() if file.exists() else []
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def lengths(folder: Path) -> dict[str, float]:
    """Let the program run to its end; return the seconds that its phases take."""
    subprocess.run([sys.executable, str(PROGRAM), str(folder)], check=True, timeout=_START_SECONDS)
    times = phases_of(folder)
    names = [*PHASES, "end"]
    return {a: times[b] - times[a] for a, b in zip(PHASES, names[1:], strict=True)}


def interrupted(folder: Path, phase: str, number: signal.Signals, after: float) -> Ending:
    """Start the program, and send it a signal so many seconds after it has entered a phase."""
    said = folder / "said"
    with said.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, str(PROGRAM), str(folder)], stderr=stderr)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while phase not in phases_of(folder) and process.poll() is None:
                if time.monotonic() > deadline:
                    return Ending(f"it never came to {phase!r}", 0.0, False)
                time.sleep(0.001)
            time.sleep(after)
            late = process.poll() is not None
            started = time.monotonic()
            # One that has ended by itself gets none.
            process.send_signal(number)
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                return Ending(
                    f"it goes on {END_SECONDS:g} s after {number.name}", END_SECONDS, False
                )
            took = time.monotonic() - started
        finally:
            process.kill()
            process.wait()
    fault = _fault(process.returncode, number, said.read_text(), "end" in phases_of(folder))
    return Ending(fault or _lost(folder), took, late)


def _fault(code: int, number: signal.Signals, said: str, ended: bool) -> str:
    if ended and code in (0, -number):
        # Python, which clears up after the program, has no handlers any more.
        return ""
    if code == 0:
        return f"it ended well in spite of {number.name}"
    if code != -number:
        return f"after {number.name} it ended with {code}: {said[-400:]}"
    if number is signal.SIGINT and not said.rstrip().endswith("KeyboardInterrupt"):
        return f"it said something else than KeyboardInterrupt: {said[-400:]}"
    return ""


def _lost(folder: Path) -> str:
    """Return what is wrong with the checkpoints that a program left."""
    file = folder / "committed"
    lines = file.read_text().split() if file.exists() else []
    committed = int(lines[-1]) if lines else -1
    latest = latest_checkpoint(folder)
    if latest is None:
        return f"the checkpoint of step {committed} is lost" if lines else ""
    with CheckpointReader(latest) as reader:
        reader.verify()
        step = int(reader.read()["global_step"])
    # It may have ended between the commit and the note of it.
    if lines and step not in (committed, committed + 1):
        return f"the latest checkpoint is of step {step}, and {committed} was committed"
    return ""


def instants(seed: str, length: float, count: int) -> list[float]:
    """Return random times in a phase, one in each of ``count`` equal parts."""
    draw = random.Random(seed)
    return [length * (i + draw.random()) / count for i in range(count)]
