"""Gradients of activation functions."""

from __future__ import annotations

from headrace.extend import GradientTable, Operation, Tensor
from headrace.ops.elementwise import greater, select
from headrace.ops.transcendental import sigmoid

RULES = GradientTable()


@RULES.add("Relu")
def _relu(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (select(greater(op.outputs[0], 0), grad, 0),)


@RULES.add("Softplus")
def _softplus(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (grad * sigmoid(op.inputs[0]),)
