"""Gradients of checks of values."""

from __future__ import annotations

from headrace.extend import GradientTable, Operation, Tensor
from headrace.ops.checks import check_numerics

RULES = GradientTable()


@RULES.add("CheckNumerics")
def _check_numerics(op: Operation, grad: Tensor) -> tuple[Tensor]:
    text = f"the gradient fails the check of {op.name!r} ({op.attrs['message']})"
    return (check_numerics(grad, text),)
