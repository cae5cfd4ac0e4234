"""Gradients of activation functions."""

from __future__ import annotations

from headrace import Operation, Tensor, greater, sigmoid
from headrace.extend import GradientTable
from headrace.extend.primitives import select

RULES = GradientTable()


@RULES.add("Relu")
def _relu(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (select(greater(op.outputs[0], 0), grad, 0),)


@RULES.add("Softplus")
def _softplus(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (grad * sigmoid(op.inputs[0]),)
