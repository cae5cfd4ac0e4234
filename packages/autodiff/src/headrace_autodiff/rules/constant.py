"""Gradients of ops that make tensors of a few values."""

from __future__ import annotations

from headrace.extend import GradientTable, Operation, Tensor
from headrace.ops.constant import one_hot
from headrace.ops.reduce import reduce_sum

RULES = GradientTable()


@RULES.add("Fill")
def _fill(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, reduce_sum(grad)


@RULES.add("OneHot")
def _one_hot(op: Operation, grad: Tensor) -> tuple[None, Tensor, Tensor]:
    depth, axis = op.attrs["depth"], op.attrs["axis"]
    on = one_hot(op.inputs[0], depth, axis=axis, dtype=grad.dtype)
    off = one_hot(op.inputs[0], depth, 0, 1, axis=axis, dtype=grad.dtype)
    return None, reduce_sum(grad * on), reduce_sum(grad * off)
