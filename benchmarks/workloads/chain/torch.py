"""The formula in PyTorch, eager and compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from typing import Any

import torch

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.torch_setup import compiled, set_threads
from benchmarks.workloads.chain import data


def build(request: Request) -> Participant:
    """Set up the tensors."""
    set_threads(request.threads)
    a, b, c = (torch.from_numpy(value) for value in data.arrays())

    def eager(a: Any, b: Any, c: Any) -> Any:
        return torch.tanh(a * b + c) * torch.exp(-a)

    formula = compiled(eager) if request.variant == "compile" else eager

    def step() -> Any:
        with torch.no_grad():
            return formula(a, b, c)

    return StepLoop(
        step, data.feeds(), final_loss=lambda: data.checksum(step()), lead_in=data.LEAD_IN
    )
