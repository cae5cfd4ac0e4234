"""The softmax regression in PyTorch, eager and with its loss compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.softmax import data

Array = npt.NDArray[np.float32]


def build(request: Request) -> Participant:
    """Set up parameters and an optimizer."""
    torch.set_num_threads(request.threads)
    weights = torch.zeros(data.FEATURES, data.CLASSES, requires_grad=True)
    biases = torch.zeros(data.CLASSES, requires_grad=True)
    # One fused kernel for the loss and one for the update are the library's quickest way.
    optimizer = torch.optim.SGD([weights, biases], lr=data.LEARNING_RATE, fused=True)

    def cross_entropy(x: Any, labels: Any) -> Any:
        return torch.nn.functional.cross_entropy(torch.addmm(biases, x, weights), labels)

    loss = torch.compile(cross_entropy) if request.variant == "compile" else cross_entropy

    def step(images: Array, targets: Array) -> None:
        optimizer.zero_grad()
        loss(torch.from_numpy(images), torch.from_numpy(targets)).backward()
        optimizer.step()

    def final_loss() -> float:
        return data.loss(weights.detach().numpy(), biases.detach().numpy())

    return StepLoop(step, data.feeds(), final_loss=final_loss)
