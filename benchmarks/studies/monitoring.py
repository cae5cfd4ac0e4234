"""What a monitored session adds to a step, without hooks and with those of training.

A tiny program is run with the session and without hooks in turns, in one process; what is left of
the least times is what the hooks and the session around them take.

    python -m benchmarks.studies.monitoring

measures in this process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.controller import Progress, RunSettings
from benchmarks.process import ROOT, environment
from benchmarks.studies import Result
from benchmarks.table import row

# How many microseconds a step may take longer with the hooks of training.
ALLOWED_US = 10.0
HOOKS = ("none", "of training")
_TURNS = 200
_STEPS = 200
_TIMEOUT_S = 300
_NEVER = 10**9


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure in a process of its own."""
    del settings
    progress("monitoring: sessions with hooks and without")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.studies.monitoring"],
        cwd=ROOT,
        env=environment(1),
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    head = ("hooks", "us per step", "us without", "difference")
    lines = [row(head), row(["---", *["---:"] * (len(head) - 1)])]
    for hooks in HOOKS:
        bare, monitored = found[hooks]
        lines.append(row([hooks, f"{monitored:.1f}", f"{bare:.1f}", f"{monitored - bare:.1f}"]))
    bare, monitored = found["of training"]
    return Result(lines, monitored - bare <= ALLOWED_US)


def measure(turns: int = _TURNS) -> dict[str, tuple[float, float]]:
    """Return microseconds per step without a monitored session and with one, by its hooks."""
    import headrace as hr

    found = {}
    with hr.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        step = hr.train.get_or_create_global_step()
        x = hr.Variable(1.0)
        hr.summary.scalar("x", x)
        train = hr.train.GradientDescentOptimizer(0.1).minimize(x * x, global_step=step)
        usual = {
            "checkpoint_dir": folder,
            "save_summaries_steps": _NEVER,
            "log_step_count_steps": _NEVER,
        }
        options: dict[str, dict[str, Any]] = {"none": {}, "of training": usual}
        for hooks, chosen in options.items():
            with hr.train.MonitoredTrainingSession(**chosen) as session:
                bare = session._tf_sess()  # noqa: SLF001 - the session without hooks
                found[hooks] = _in_turns(bare.run, session.run, train, turns)
    return found


def _in_turns(
    first: Callable[[Any], Any], second: Callable[[Any], Any], train: Any, turns: int
) -> tuple[float, float]:
    least = [float("inf"), float("inf")]
    for _ in range(turns):
        # A busy moment of the machine must not fall to one of them alone.
        for i, run_step in enumerate((first, second)):
            begin = time.perf_counter()
            for _ in range(_STEPS):
                run_step(train)
            least[i] = min(least[i], (time.perf_counter() - begin) / _STEPS)
    return least[0] * 1e6, least[1] * 1e6


if __name__ == "__main__":
    print(json.dumps(measure()))
