"""Gradients of conversions."""

from __future__ import annotations

from headrace.extend import GradientTable, Operation, Tensor
from headrace.ops.conversion import cast

RULES = GradientTable()


@RULES.add("Cast")
def _cast(op: Operation, grad: Tensor) -> tuple[Tensor]:
    converted: Tensor = cast(grad, op.inputs[0].dtype)
    return (converted,)
