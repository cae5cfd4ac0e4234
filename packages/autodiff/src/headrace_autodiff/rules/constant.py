"""Gradients of ops that make tensors of a few values."""

from __future__ import annotations

from headrace import Operation, Tensor, lin_space, one_hot, ones_like, reduce_sum, zeros_like
from headrace.extend import GradientTable

RULES = GradientTable()


@RULES.add("Fill")
def _fill(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, reduce_sum(grad)


@RULES.add("OneHot")
def _one_hot(op: Operation, grad: Tensor) -> tuple[None, Tensor, Tensor, None]:
    indices, _, _, depth = op.inputs
    axis = op.attrs["axis"]
    on = one_hot(indices, depth, axis=axis, dtype=grad.dtype)
    off = one_hot(indices, depth, 0, 1, axis=axis, dtype=grad.dtype)
    return None, reduce_sum(grad * on), reduce_sum(grad * off), None


@RULES.add("LinSpace")
def _lin_space(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor, None]:
    start, _, num = op.inputs
    # Of one number alone, the start is all there is.
    shares = lin_space(zeros_like(start), ones_like(start), num)
    return reduce_sum(grad * (1 - shares)), reduce_sum(grad * shares), None
