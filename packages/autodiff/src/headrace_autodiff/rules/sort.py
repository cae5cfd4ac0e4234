"""Gradients of sorting."""

from __future__ import annotations

from headrace import Operation, Tensor, cast, maximum, reshape, shape, size, unsorted_segment_sum
from headrace import range as range_of
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of

RULES = GradientTable()


@RULES.add("Sort")
def _sort(op: Operation, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None]:
    return (None if grad is None else _put_back(op, grad),)


@RULES.add("TopK")
def _top_k(op: Operation, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, None]:
    return None if grad is None else _put_back(op, grad), None


def _put_back(op: Operation, grad: Tensor) -> Tensor:
    """Bring the gradient of each element to where the element was in its row."""
    source, indices = op.inputs[0], op.outputs[1]
    columns = shape(source, out_type="int64")[-1]
    width = shape(indices, out_type="int64")[-1]
    # Elements are counted through all rows, in which a row begins at its number times its length.
    row = range_of(size(indices, out_type="int64")) // maximum(width, 1)
    places = row * columns + cast(reshape(indices, [-1]), "int64")
    back = unsorted_segment_sum(reshape(grad, [-1]), places, size(source, out_type="int64"))
    return reshape(back, shape_of(source))
