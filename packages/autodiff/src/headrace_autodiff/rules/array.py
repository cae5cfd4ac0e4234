"""Gradients of array ops: the same elements in another arrangement."""

from __future__ import annotations

from headrace import Operation, Tensor, reshape, transpose
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.ops import call_op
from headrace_autodiff.shaping import shaped_as, unbroadcast

RULES = GradientTable()


@RULES.add("Reshape")
def _reshape(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return reshape(grad, shape_of(op.inputs[0])), None


@RULES.add("ExpandDims")
@RULES.add("Squeeze")
def _same_elements(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (reshape(grad, shape_of(op.inputs[0])),)


@RULES.add("Transpose")
def _transpose(op: Operation, grad: Tensor) -> tuple[Tensor]:
    perm = op.attrs["perm"]
    if perm is None:
        return (transpose(grad),)
    order = [p % len(perm) for p in perm]
    return (transpose(grad, [order.index(i) for i in range(len(order))]),)


@RULES.add("TransposeBy")
def _transpose_by(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    x, perm = op.inputs
    # Axes may be counted from the end, too.
    axes = call_op("Maximum", call_op("Cast", call_op("Rank", x), perm.dtype), 1)
    order = call_op("FloorMod", perm, axes)
    return shaped_as(transpose(grad, call_op("InvertPermutation", order)), x), None


@RULES.add("BroadcastTo")
def _broadcast_to(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return unbroadcast(grad, op.inputs[0], op.outputs[0].spec.shape), None
