"""Any case of the suite in PyTorch, eager or compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from typing import Any

import torch

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.suite.case import ADAGRAD_START, ADAM_EPSILON, MOMENTUM, Case, checksum
from benchmarks.suite.cases import all_cases
from benchmarks.torch_setup import compiled, set_threads


def build(request: Request) -> Participant:
    """Set up the tensors, and optimizers if the case trains."""
    set_threads(request.threads)
    torch.manual_seed(0)
    case = all_cases()[request.workload]
    state = {name: torch.from_numpy(value) for name, value in case.first_state().items()}
    feeds = [
        {name: torch.from_numpy(value) for name, value in batch.items()} for batch in case.feeds()
    ]
    assert case.torch is not None

    def eager(state: Any, inputs: Any) -> Any:
        return case.torch(torch, state, inputs)

    function = eager
    if request.variant == "compile":
        torch.compiler.reset()
        function = compiled(eager)
    step = _training(case, function, state) if case.optimizer else _evaluation(function, state)

    def final() -> float:
        with torch.no_grad():
            found = eager(state, feeds[0])
        parts = found if isinstance(found, tuple) else (found,)
        return checksum([part.detach().numpy() for part in parts])

    return StepLoop(step, [(batch,) for batch in feeds], final_loss=final, lead_in=2)


def _evaluation(function: Any, state: Any) -> Any:
    """Return a step that computes the result."""

    def step(inputs: Any) -> Any:
        with torch.no_grad():
            return function(state, inputs)

    return step


def _training(case: Case, function: Any, state: dict[str, Any]) -> Any:
    """Return a step that trains the state; it sums rows where the case says so."""
    for value in state.values():
        value.requires_grad_()
    dense = [value for name, value in state.items() if name not in case.row_sparse]
    rows = [state[name] for name in case.row_sparse]
    optimizers = [_optimizer(case, dense, fused=True)] if dense else []
    if rows:
        optimizers.append(_optimizer(case, rows, fused=False))

    def step(inputs: Any) -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        function(state, inputs).backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def _optimizer(case: Case, parameters: Any, *, fused: bool) -> Any:
    """Return the optimizer of a case; the fused ones know no rows."""
    optim, rate = torch.optim, case.rate
    match case.optimizer:
        case "sgd":
            return optim.SGD(parameters, rate, fused=fused)
        case "momentum":
            return optim.SGD(parameters, rate, momentum=MOMENTUM, fused=fused)
        case "adagrad":
            start = {"initial_accumulator_value": ADAGRAD_START}
            return optim.Adagrad(parameters, rate, fused=fused, **start)
        case "adam":
            return optim.Adam(parameters, rate, eps=ADAM_EPSILON, fused=fused)
        case other:
            raise ValueError(f"case {case.name!r}: expected an optimizer, got {other!r}")
