"""Gradients of activation functions."""

from __future__ import annotations

from headrace import Operation, Tensor, greater, sigmoid
from headrace.extend import GradientTable
from headrace.extend.primitives import select

RULES = GradientTable()


@RULES.add("Relu")
def _relu(op: Operation, grad: Tensor) -> tuple[Tensor]:
    positive = greater(op.outputs[0], 0)
    masked = select(positive, grad, 0)
    masked.op.graph.piecewise_constant |= {positive.op.index, masked.op.index}
    return (masked,)


@RULES.add("Softplus")
def _softplus(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (grad * sigmoid(op.inputs[0]),)
