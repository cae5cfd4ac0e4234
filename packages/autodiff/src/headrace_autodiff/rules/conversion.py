"""Gradients of conversions."""

from __future__ import annotations

from headrace import Operation, Tensor, cast
from headrace.extend import GradientTable

RULES = GradientTable()


@RULES.add("Cast")
def _cast(op: Operation, grad: Tensor) -> tuple[Tensor]:
    converted: Tensor = cast(grad, op.inputs[0].dtype)
    return (converted,)
