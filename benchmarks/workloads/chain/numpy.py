"""The formula in NumPy, with buffers for what lies between."""

from __future__ import annotations

import numpy as np

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.chain import data


def build(request: Request) -> Participant:
    """Set up two buffers that all steps use."""
    del request  # NumPy computes elementwise functions in one thread
    a, b, c = data.arrays()
    result, factor = np.empty_like(a), np.empty_like(a)

    def step() -> None:
        np.multiply(a, b, out=result)
        np.add(result, c, out=result)
        np.tanh(result, out=result)
        np.negative(a, out=factor)
        np.exp(factor, out=factor)
        np.multiply(result, factor, out=result)

    return StepLoop(
        step, data.feeds(), final_loss=lambda: data.checksum(result), lead_in=data.LEAD_IN
    )
