"""Time steps of the networks on a GPU: ``python -m benchmarks.gpu.program FILE``.

Participants of one process take turns, and the best round of each counts. What fails leaves the
run with a line that says why. The file gets a JSON object: for each network and precision the
seconds of a step of each participant, and the losses of the first steps.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.gpu.participants import PARTICIPANTS, Trainer
from benchmarks.networks.tasks import TASKS, Task

# Batches with which a GPU has something to do.
BATCHES = {"lenet": 50, "mlp": 128, "resnet18": 64, "alexnet": 128, "vgg-a": 64}
_LOSSES = 6
_ROUND_S = 0.15


def main() -> None:
    """Measure what the command line asks for."""
    options = _options()
    # JAX takes three quarters of the memory otherwise.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    found: dict[str, Any] = {}
    for name in options.networks:
        task = replace(TASKS[name], batch=BATCHES[name], batches=1, steps=1)
        for precision in options.precisions:
            key = f"{name} {precision}"
            found[key] = measure(task, precision, options.participants, options.rounds)
            print(key, json.dumps(found[key]), flush=True)
            if options.file is not None:
                options.file.write_text(json.dumps(found, indent=1))


def measure(task: Task, precision: str, names: list[str], rounds: int) -> dict[str, Any]:
    """Return what the steps of each participant take, in seconds, and its first losses."""
    built: dict[str, tuple[Trainer, int]] = {}
    found: dict[str, Any] = {name: {} for name in names}
    for name in names:
        try:
            began = time.perf_counter()
            trainer = PARTICIPANTS[name](task, precision)
            losses = [trainer.loss() for _ in range(_LOSSES)]
            ready = time.perf_counter() - began
            found[name] = {"losses": losses, "ready_s": ready, "step_s": None}
            built[name] = trainer, _steps(trainer)
        except Exception as error:
            traceback.print_exc()
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:400]}
    for _ in range(rounds):
        for name, (trainer, steps) in built.items():
            seconds = _timed(trainer, steps)
            known = found[name]["step_s"]
            found[name]["step_s"] = seconds if known is None else min(known, seconds)
    return found


def _steps(trainer: Trainer) -> int:
    """Return how many steps a round has."""
    _timed(trainer, 5)
    return max(3, int(_ROUND_S / _timed(trainer, 5)))


def _timed(trainer: Trainer, steps: int) -> float:
    trainer.wait()
    began = time.perf_counter()
    for _ in range(steps):
        trainer.step()
    trainer.wait()
    return (time.perf_counter() - began) / steps


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--networks", nargs="+", choices=[*BATCHES], default=[*BATCHES])
    parser.add_argument("--precisions", nargs="+", default=["tf32", "highest"])
    parser.add_argument("--participants", nargs="+", default=[*PARTICIPANTS])
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
