"""The two matrix products of a step and nothing else: what any implementation must do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.softmax import data

Array = npt.NDArray[np.float32]


def build(request: Request) -> Participant:
    """Set up buffers of the right size for both products."""
    del request  # the environment has set the threads of BLAS already
    weights = np.zeros((data.FEATURES, data.CLASSES), np.float32)
    logits = np.empty((data.BATCH, data.CLASSES), np.float32)
    gradient = np.empty_like(weights)

    def step(images: Array, targets: Array) -> None:
        np.matmul(images, weights, out=logits)
        np.matmul(images.T, targets, out=gradient)

    return StepLoop(step, data.feeds())
