"""Gradients of reductions by segment."""

from __future__ import annotations

from headrace import (
    Operation,
    Tensor,
    argsort,
    cast,
    concat,
    conj,
    equal,
    expand_dims,
    gather,
    greater_equal,
    logical_and,
    maximum,
    ones,
    ones_like,
    rank,
    reshape,
    shape,
    size,
    unsorted_segment_sum,
    zeros,
    zeros_like,
)
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.primitives import linear_recurrence, select

RULES = GradientTable()


@RULES.add("UnsortedSegmentSum")
def _sum(op: Operation, grad: Tensor) -> tuple[Tensor, None, None]:
    return _spread(op, grad, 0), None, None


@RULES.add("UnsortedSegmentMax")
@RULES.add("UnsortedSegmentMin")
def _extremum(op: Operation, grad: Tensor) -> tuple[Tensor, None, None]:
    """Give equal shares to all elements of a segment that are its extremum."""
    data, ids, count = op.inputs
    found = equal(data, _spread(op, op.outputs[0], 0))
    used = _used(op)
    if used is not None:
        found = logical_and(found, used)
    chosen = cast(found, grad.dtype)
    shares = maximum(unsorted_segment_sum(chosen, ids, count), 1)
    spread = _spread(op, grad / shares, 0)
    return _of_shape(chosen * spread, spread), None, None


@RULES.add("UnsortedSegmentProd")
def _prod(op: Operation, grad: Tensor) -> tuple[Tensor, None, None]:
    """Multiply the other elements of a segment, rather than divide, for the sake of zeros."""
    data = op.inputs[0]
    spread = _spread(op, grad, 0)
    result = conj(_other_products(op)) * spread
    used = _used(op)
    # What was dropped may be NaN.
    found = result if used is None else select(used, result, zeros_like(data))
    return _of_shape(found, spread), None, None


def _of_shape(grad: Tensor, spread: Tensor) -> Tensor:
    """Return a gradient with what the ids tell of its shape, which has as many rows as they."""
    grad.set_shape(spread.shape)
    return grad


def _other_products(op: Operation) -> Tensor:
    """Return for each element the product of the others of its segment.

    With the rows in the order of their ids, the products of those before, and of those behind,
    satisfy linear recurrences that start anew with each segment.
    """
    data, ids, _ = op.inputs
    flat = reshape(ids, [-1])
    order = argsort(flat)
    row_dims = [expand_dims(size(ids), 0), shape(data)[rank(ids) :]]
    rows = gather(reshape(data, concat(row_dims, 0)), order)
    in_order = gather(flat, order)
    same = equal(in_order[1:], in_order[:-1])
    if rows.shape.rank is None:
        behind = ones(expand_dims(rank(rows) - 1, 0), "int32")
        same = reshape(same, concat([shape(same), behind], 0))
    else:
        for _ in range(rows.shape.rank - 1):
            same = expand_dims(same, -1)
    first = zeros_like(rows[:1])
    before = linear_recurrence(
        concat([first, select(same, rows[:-1], 0)], 0),
        concat([ones_like(first), select(same, 0, ones_like(rows[1:]))], 0),
    )
    after = linear_recurrence(
        concat([select(same, rows[1:], 0), first], 0),
        concat([select(same, 0, ones_like(rows[1:])), ones_like(first)], 0),
        reverse=True,
    )
    return reshape(gather(before * after, argsort(order)), shape_of(data))


def _spread(op: Operation, per_segment: Tensor, dropped: float) -> Tensor:
    """Return for each element of the data what its segment has, ``dropped`` where it has none."""
    ids = op.inputs[1]
    used = _used(op)
    if used is None:
        return gather(per_segment, ids)
    segments = None if per_segment.spec.shape.dims is None else per_segment.spec.shape[0]
    if segments is None or segments == 0:
        # There may be no segment at all to look at.
        row = concat([[1], shape(per_segment)[1:]], 0)
        per_segment = concat([per_segment, zeros(row, per_segment.dtype)], 0)
    return select(used, gather(per_segment, maximum(ids, 0)), dropped)


def _used(op: Operation) -> Tensor | None:
    """Return whether rows have a segment, in the rank of the data; None if all are known to."""
    data, ids, _ = op.inputs
    value = ids.spec.value
    if value is not None and not bool((value < 0).any()):
        return None
    used = greater_equal(ids, 0)
    if data.shape.rank is not None and ids.shape.rank is not None:
        for _ in range(data.shape.rank - ids.shape.rank):
            used = expand_dims(used, -1)
        return used
    behind = ones(expand_dims(rank(data) - rank(ids), 0), "int32")
    return reshape(used, concat([shape(ids), behind], 0))
