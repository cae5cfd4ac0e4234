"""Networks of dense layers written by hand: gradients derived on paper, work in place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.networks import reference
from benchmarks.networks.tasks import TASKS, Array, Labels
from benchmarks.participant import Participant, Request, StepLoop


def build(request: Request) -> Participant:
    """Set up parameters that a step updates in place; rectifiers lie between the layers."""
    task = TASKS[request.workload]
    values = list(task.first_values())
    weights, biases = values[::2], values[1::2]
    rate = np.float32(task.rate)
    rows = np.arange(task.batch)

    def logits_of(images: Array) -> tuple[list[Array], Array]:
        inputs = [images]
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            hidden = inputs[-1] @ w
            hidden += b
            inputs.append(np.maximum(hidden, 0, out=hidden))
        logits = inputs[-1] @ weights[-1]
        logits += biases[-1]
        return inputs, logits

    def to_logits(logits: Array, labels: Labels) -> Array:
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        logits[rows, labels] -= 1
        logits *= np.float32(1 / task.batch)
        return logits

    def step(images: Array, labels: Labels) -> None:
        inputs, logits = logits_of(images)
        gradient: npt.NDArray[np.float32] = to_logits(logits, labels)
        for at in reversed(range(len(weights))):
            to_weights = inputs[at].T @ gradient
            to_biases = gradient.sum(axis=0)
            if at > 0:
                gradient = gradient @ weights[at].T
                gradient *= inputs[at] > 0
            to_weights *= rate
            to_biases *= rate
            weights[at] -= to_weights
            biases[at] -= to_biases

    return StepLoop(
        step,
        task.feeds(),
        final_loss=lambda: reference.loss(task, values),
        lead_in=task.lead_in,
    )
