"""The matrix products of a training step and nothing else: what any implementation must do.

Gradients of weights, and products with all inputs of the first layer, are done for all time
steps at once, which is the quickest way; what feeds back goes step by step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.lstm import data


def build(request: Request) -> Participant:
    """Set up buffers of the right size for all products."""
    del request  # the environment has set the threads of BLAS already
    rows, units, gates = data.BATCH * data.STEPS, data.UNITS, 4 * data.UNITS
    products: list[Callable[[], object]] = []
    for _ in range(data.LAYERS):
        products += _with_gradients(rows, units, gates)
        products += data.STEPS * [_product(data.BATCH, units, gates)]
        products += data.STEPS * [_product(data.BATCH, gates, units)]
        products.append(_product(units, rows, gates))
    products += _with_gradients(rows, units, data.VOCABULARY)

    def step() -> None:
        for run in products:
            run()

    return StepLoop(step, [()] * data.BATCHES, lead_in=data.LEAD_IN)


def _with_gradients(rows: int, inner: int, columns: int) -> list[Callable[[], object]]:
    """Return a product and those of both its gradients."""
    forward = _product(rows, inner, columns)
    return [forward, _product(rows, columns, inner), _product(inner, rows, columns)]


def _product(rows: int, inner: int, columns: int) -> Callable[[], object]:
    """Return a product of two matrices of a network's usual values."""
    rng = np.random.default_rng(0)
    left = rng.standard_normal((rows, inner), np.float32)
    right = rng.standard_normal((inner, columns), np.float32)
    result = np.empty((rows, columns), np.float32)
    return lambda: np.matmul(left, right, out=result)
