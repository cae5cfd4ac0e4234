"""Gradients of reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.extend import GradientTable, Operation, Tensor
from headrace.ops.array import broadcast_to, concat, expand_dims, gather, rank, reshape, shape, size
from headrace.ops.constant import ones, ones_like, shape_of
from headrace.ops.constant import range as range_of
from headrace.ops.elementwise import cast, conj, equal, greater_equal, maximum, where
from headrace.ops.reduce import reduce_prod, reduce_sum, reduced_axes
from headrace_autodiff.shaping import spread, take, with_reduced_axes

RULES = GradientTable()


@RULES.add("ReduceSum")
def _sum(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (spread(grad, op),)


@RULES.add("ReduceMean")
def _mean(op: Operation, grad: Tensor) -> tuple[Tensor]:
    source, result = op.inputs[0], op.outputs[0]
    elements, kept = source.shape.num_elements, result.shape.num_elements
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
    length = None if x.shape.dims is None else x.shape[axis]
    if length is None:
        return _other_products_by_mask(x, axis)
    if length < 2:
        return ones_like(x)
    # Products of all elements before, and after, each one: doubled in reach until they have all.
    before, after = _shift(x, 1, axis), _shift(x, -1, axis)
    reach = 1
    while reach < length - 1:
        before = before * _shift(before, reach, axis)
        after = after * _shift(after, -reach, axis)
        reach *= 2
    return before * after


def _shift(x: Tensor, by: int, axis: int) -> Tensor:
    """Move the elements along an axis, ones coming in behind them."""
    if by > 0:
        return concat([ones_like(take(x, axis, 0, by)), take(x, axis, 0, -by)], axis)
    return concat([take(x, axis, -by, None), ones_like(take(x, axis, by, None))], axis)


def _other_products_by_mask(x: Tensor, axis: int) -> Tensor:
    """As above for an axis of unknown length n, in n times the memory."""
    at = axis if x.shape.rank is None or axis < 0 else axis - x.shape.rank
    length = shape(x)[axis]
    places = range_of(length)
    same = equal(expand_dims(places, 1), expand_dims(places, 0))
    if at < 0:
        same = reshape(same, [length, length] + [1] * (-at - 1))
        return reduce_prod(where(same, 1, expand_dims(x, at - 1)), at)
    behind = ones(expand_dims(rank(x) - at - 1, 0), "int32")
    same = reshape(same, concat([[length, length], behind], 0))
    return reduce_prod(where(same, 1, expand_dims(x, at)), at + 1)


@RULES.add("SumToShape")
def _sum_to_shape(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return broadcast_to(grad, shape_of(op.inputs[0])), None


@RULES.add("UnsortedSegmentSum")
def _unsorted_segment_sum(op: Operation, grad: Tensor) -> tuple[Tensor, None, None]:
    data, ids, _ = op.inputs
    value = ids.spec.value
    if value is not None and not bool((value < 0).any()):
        return gather(grad, ids), None, None
    rows = gather(grad, maximum(ids, 0))
    used = greater_equal(ids, 0)
    if data.shape.rank is not None and ids.shape.rank is not None:
        for _ in range(data.shape.rank - ids.shape.rank):
            used = expand_dims(used, -1)
    else:
        behind = ones(expand_dims(rank(data) - rank(ids), 0), "int32")
        used = reshape(used, concat([shape(ids), behind], 0))
    return where(used, rows, 0), None, None
