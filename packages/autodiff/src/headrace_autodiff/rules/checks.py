"""Gradients of checks of values."""

from __future__ import annotations

from headrace import Operation, Tensor, check_numerics
from headrace.extend import GradientTable

RULES = GradientTable()


@RULES.add("CheckNumerics")
def _check_numerics(op: Operation, grad: Tensor) -> tuple[Tensor]:
    text = f"the gradient fails the check of {op.name!r} ({op.attrs['message']})"
    return (check_numerics(grad, text),)
