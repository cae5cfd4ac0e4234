"""Gradients of conversions."""

from __future__ import annotations

from headrace import IndexedSlices, Operation, Tensor, cast
from headrace.extend import GradientTable

RULES = GradientTable()

Grad = Tensor | IndexedSlices


@RULES.add("Cast", rows=True)
def _cast(op: Operation, grad: Grad) -> tuple[Grad]:
    converted: Grad = cast(grad, op.inputs[0].dtype)
    return (converted,)
