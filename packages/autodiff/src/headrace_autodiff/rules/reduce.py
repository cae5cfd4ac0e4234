"""Gradients of reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import (
    Operation,
    Tensor,
    broadcast_to,
    cast,
    conj,
    cumprod,
    equal,
    maximum,
    ones_like,
    reduce_prod,
    reduce_sum,
    reshape,
    size,
)
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.ops import reduced_axes
from headrace_autodiff.shaping import spread, with_reduced_axes

RULES = GradientTable()


@RULES.add("ReduceSum")
def _sum(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (spread(grad, op),)


@RULES.add("ReduceMean")
def _mean(op: Operation, grad: Tensor) -> tuple[Tensor]:
    source, result = op.inputs[0], op.outputs[0]
    elements, kept = source.spec.shape.num_elements(), result.spec.shape.num_elements()
    count: Any
    if elements is not None and kept is not None:
        count = max(elements // max(kept, 1), 1)
    elif kept is not None:
        count = cast(size(source) if kept < 2 else size(source) // kept, grad.dtype)
    else:
        count = cast(size(source) // maximum(size(result), 1), grad.dtype)
    return (spread(grad / count, op),)


@RULES.add("ReduceMax")
@RULES.add("ReduceMin")
def _extremum(op: Operation, grad: Tensor) -> tuple[Tensor]:
    """Give equal shares to all elements that are the extremum."""
    source = op.inputs[0]
    found = cast(equal(source, with_reduced_axes(op.outputs[0], op)), grad.dtype)
    shares = reduce_sum(found, op.attrs["axis"], keepdims=True)
    return (found / shares * with_reduced_axes(grad, op),)


@RULES.add("ReduceProd")
def _prod(op: Operation, grad: Tensor) -> tuple[Tensor]:
    """Multiply the other elements with each other, rather than divide, for the sake of zeros."""
    source = op.inputs[0]
    axis = op.attrs["axis"]
    if axis is None:
        others = _other_products(reshape(source, [-1]), 0)
        return (reshape(conj(others), shape_of(source)) * with_reduced_axes(grad, op),)
    if source.shape.rank is not None:
        axes: Sequence[int] = reduced_axes(axis, source.shape.rank)
    else:
        axes = (axis,) if isinstance(axis, int) else axis
    result = with_reduced_axes(grad, op)
    partial = source
    for at in axes:
        result = result * conj(_other_products(partial, at))
        partial = reduce_prod(partial, at, keepdims=True)
    return (result,)


def _other_products(x: Tensor, axis: int) -> Tensor:
    """Return for each element the product of the others along an axis."""
    if x.spec.shape.dims is not None and x.spec.shape[axis] in (0, 1):
        return ones_like(x)
    return cumprod(x, axis, exclusive=True) * cumprod(x, axis, exclusive=True, reverse=True)


@RULES.add("SumToShape")
def _sum_to_shape(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return broadcast_to(grad, shape_of(op.inputs[0])), None
