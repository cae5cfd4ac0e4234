"""Gradients of distinct elements."""

from __future__ import annotations

from headrace import Operation, Tensor, size, unsorted_segment_min, unsorted_segment_sum
from headrace import range as range_of
from headrace.extend import GradientTable

RULES = GradientTable()


@RULES.add("Unique")
def _unique(op: Operation, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None]:
    """Of equal elements the first one is what the result holds."""
    if grad is None:
        return (None,)
    (x,), places = op.inputs, op.outputs[1]
    first = unsorted_segment_min(range_of(size(x)), places, size(op.outputs[0]))
    return (unsorted_segment_sum(grad, first, size(x)),)


@RULES.add("ListDiff")
def _list_diff(op: Operation, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, None]:
    if grad is None:
        return None, None
    return unsorted_segment_sum(grad, op.outputs[1], size(op.inputs[0])), None
