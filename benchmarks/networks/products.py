"""The products of a training step of a network of dense layers, and nothing else."""

from __future__ import annotations

import numpy as np

from benchmarks.networks import layers as lay
from benchmarks.networks.tasks import TASKS, Array
from benchmarks.participant import Participant, Request, StepLoop


def build(request: Request) -> Participant:
    """Set up buffers for all products: forward, to the weights, and to the input but the first."""
    task = TASKS[request.workload]
    rng = np.random.default_rng(0)
    products: list[tuple[Array, Array, Array]] = []
    for layer, size in lay.walk(task.layers, task.size):
        if isinstance(layer, lay.Dense):
            x = rng.standard_normal((task.batch, size[0]), np.float32)
            weights = rng.standard_normal((size[0], layer.units), np.float32)
            y = np.empty((task.batch, layer.units), np.float32)
            forward, to_weights = (x, weights, y), (x.T, y, np.empty_like(weights))
            to_source = (y, weights.T, np.empty_like(x))
            products += [forward, to_weights] + ([to_source] if products else [])

    def step() -> None:
        for left, right, result in products:
            np.matmul(left, right, out=result)

    return StepLoop(step, [()] * task.steps, lead_in=task.lead_in)
