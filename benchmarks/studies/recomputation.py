"""Memory and time of a training step that computes part of the forward pass again.

A net of 50 layers is trained with several memory budgets, each in a process of its own, on one
thread: the memory of the compiled step's values, by how much the process was larger in its steps
than before the first, and the least time of a step: wall time, and that of the processors, which
other work on the machine disturbs less.

    python -m benchmarks.studies.recomputation --net dense --budget '"memory"'

measures one budget in this process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.controller import Progress, RunSettings
from benchmarks.memory import METER, peak_bytes, resident_bytes
from benchmarks.process import ROOT, environment
from benchmarks.studies import Result
from benchmarks.table import row

BUDGETS: tuple[str | float | None, ...] = (None, "memory", "speed", 0.5, 0.1)
_HEAD = ("budget", "values of the step", "growth of the process", "step", "processors")
_LAYERS = 50
_TIMEOUT_S = 900


@dataclass(frozen=True)
class Measured:
    """What a step takes with one budget.

    Attributes:
        arena_bytes: Memory for the values of the compiled step.
        resident_bytes: Growth of the process, once compiled, from before the first step.
        step_s: Least time of a step, in seconds.
        processor_s: Least time of the processors for a step, in seconds.
    """

    arena_bytes: int
    resident_bytes: int
    step_s: float
    processor_s: float


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure the nets with all budgets."""
    lines: list[str] = []
    for net in _NETS:
        found = {}
        for budget in BUDGETS:
            progress(f"recomputation: {net} net, budget {budget!r}")
            found[budget] = _in_process(net, budget)
        lines += [*([""] if lines else []), f"The {net} net of {_LAYERS} layers:", ""]
        lines += [row(_HEAD), row(["---", *["---:"] * (len(_HEAD) - 1)])]
        whole = found[None]
        for budget, cost in found.items():
            cells = [
                f"`{budget!r}`",
                _amount(cost.arena_bytes, whole.arena_bytes),
                _amount(cost.resident_bytes, whole.resident_bytes),
                f"{cost.step_s * 1e3:.0f} ms, x {cost.step_s / whole.step_s:.2f}",
                f"x {cost.processor_s / whole.processor_s:.2f}",
            ]
            lines.append(row(cells))
    return Result(lines)


def main() -> None:
    """Measure one budget."""
    options = _options()
    print(json.dumps(asdict(measure(json.loads(options.budget), options))))


def measure(budget: Any, options: argparse.Namespace) -> Measured:
    """Measure the steps of this process."""
    import headrace as hr

    loss, feeds = _NETS[options.net](options)
    variables = list(hr.get_default_graph().variables)
    gradients = hr.gradients(loss, variables, memory_budget=budget)
    pairs = zip(gradients, variables, strict=True)
    step = hr.train.GradientDescentOptimizer(1e-3).apply_gradients(list(pairs))
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        before = resident_bytes()
        for _ in range(4):
            session.run(step, feeds)
        METER.settle()
        walls, processors = [], []
        for _ in range(options.steps):
            wall, processor = time.perf_counter(), time.process_time()
            session.run(step, feeds)
            walls.append(time.perf_counter() - wall)
            processors.append(time.process_time() - processor)
        parts = session.explain(step, feeds).parts
    arena = sum(part.report.arena_bytes for part in parts if part.report is not None)
    return Measured(arena, peak_bytes() - before, min(walls), min(processors))


def _dense(options: argparse.Namespace) -> Any:
    import numpy as np

    import headrace as hr

    width = options.width
    x = hr.placeholder(hr.float32, [options.batch, width])
    h = x
    for _ in range(options.layers):
        w = hr.Variable(hr.random_normal([width, width], stddev=(2 / width) ** 0.5))
        h = hr.nn.relu(hr.matmul(h, w) + hr.Variable(hr.zeros([width])))
    return hr.reduce_mean(h * h), {x: np.ones([options.batch, width], np.float32)}


def _convolutional(options: argparse.Namespace) -> Any:
    import numpy as np

    import headrace as hr

    channels = options.width // 16
    shape = [options.batch // 64, 32, 32, channels]
    x = hr.placeholder(hr.float32, shape)
    h = x
    for _ in range(options.layers):
        w = hr.Variable(hr.random_normal([3, 3, channels, channels], stddev=0.1))
        h = hr.nn.conv2d(h, w, strides=1, padding="SAME")
        mean, variance = hr.nn.moments(h, [0, 1, 2])
        scale, offset = hr.Variable(hr.ones([channels])), hr.Variable(hr.zeros([channels]))
        h = hr.nn.relu(hr.nn.batch_normalization(h, mean, variance, offset, scale, 1e-3))
    return hr.reduce_mean(h * h), {x: np.ones(shape, np.float32)}


_NETS = {"dense": _dense, "convolutional": _convolutional}


def _in_process(net: str, budget: Any) -> Measured:
    command = [sys.executable, "-m", "benchmarks.studies.recomputation"]
    done = subprocess.run(
        [*command, "--net", net, "--budget", json.dumps(budget)],
        cwd=ROOT,
        env=environment(1),
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
    )
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def _amount(size: int, whole: int) -> str:
    return f"{size / 1e6:.1f} MB, x {size / max(1, whole):.2f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--net", choices=sorted(_NETS), default="dense")
    parser.add_argument("--layers", type=int, default=_LAYERS)
    parser.add_argument("--width", type=int, default=512, help="16 times the channels, too")
    parser.add_argument("--batch", type=int, default=2048, help="64 times the images, too")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--budget", default="null", help="JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
