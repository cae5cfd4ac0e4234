"""Reductions of ragged tensors, and sums of their rows by segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops import reduce as dense
from headrace.ops import segment, text
from headrace.ops.aliases import renamed
from headrace.ops.arguments import as_ints, static_value
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import ones_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import divide, equal, maximum
from headrace.ops.gather import gather
from headrace.ops.joining import concat
from headrace.ops.transcendental import rsqrt
from headrace.ragged.partitions import (
    after,
    ids_of,
    lengths_of,
    splits_of,
    within,
)
from headrace.ragged.tensor import RaggedTensor, as_ragged
from headrace.shapes import Shape

# A reduction of values by segment: of values, the segment of each, and the number of segments.
BySegment = Callable[[Tensor, Tensor, Tensor], Tensor]


def reduction(whole: Callable[..., Tensor], by_segment: BySegment) -> Callable[..., Any]:
    """Return a reduction of ragged tensors, with the arguments of ``hr.reduce_sum``.

    Args:
        whole: The reduction of tensors.
        by_segment: The reduction by segment.
    """

    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Any:
        if keepdims or keep_dims:
            raise AttributeValueError(
                "keepdims: reductions of ragged tensors keep no axes of size 1"
            )
        given = renamed("axis", axis, "reduction_indices", reduction_indices)
        with name_scope(name, "RaggedReduce"):
            return reduced(as_ragged(input_tensor), given, whole, by_segment)

    return reduce


def reduced(value: Any, axis: Any, whole: Callable[..., Tensor], by_segment: BySegment) -> Any:
    """Return a value reduced along axes; along all if None."""
    if not isinstance(value, RaggedTensor):
        return whole(value, axis=axis)
    axes = None if axis is None else _axes(axis, value.shape.rank)
    if axes is None or (value.shape.rank is not None and len(axes) == value.shape.rank):
        return whole(value.flat_values)
    for at in axes:
        value = _along(value, at, whole, by_segment)
    return value


def _axes(axis: Any, rank: int | None) -> list[int]:
    """Return axes counted from the front, the innermost first."""
    given = as_ints(axis, "axis")
    listed = given if isinstance(given, list) else [given]
    found = set()
    for each in listed:
        if not isinstance(each, int | np.integer):
            raise ShapeError("the axes of a ragged tensor must be numbers, got a tensor")
        if rank is None and each < 0:
            raise ShapeError(f"a negative axis needs a known rank, got axis {each}")
        if rank is not None and not -rank <= each < rank:
            raise ShapeError(
                f"axis {each} is out of range for a ragged tensor of rank {rank}; expected {-rank} "
                f"to {rank - 1}"
            )
        found.add(int(each) + rank if each < 0 and rank is not None else int(each))
    return sorted(found, reverse=True)


def _along(value: Any, axis: int, whole: Callable[..., Tensor], by_segment: BySegment) -> Any:
    if not isinstance(value, RaggedTensor):
        return whole(value, axis=axis)
    splits = value.row_splits
    if axis == 0:
        # What stands in the same place of each row belongs together.
        places = within(splits, value.value_rowids())
        none = convert_to_tensor([0], splits.dtype)
        return segmented(
            value.values,
            places,
            dense.reduce_max(concat([lengths_of(splits), none], 0)),
            by_segment,
        )
    if axis == 1:
        made = segmented(value.values, value.value_rowids(), value.nrows(), by_segment)
        if isinstance(made, Tensor) and made.shape.rank is not None:
            made.set_shape([Shape(value.shape)[0], *[None] * (made.shape.rank - 1)])
        return made
    return value.with_values(_along(value.values, axis - 1, whole, by_segment))


def segmented(data: Any, ids: Any, count: Any, by_segment: BySegment) -> Any:
    """Return the rows of each segment reduced to one.

    Args:
        data: [rows, ...], a tensor or a ragged tensor.
        ids: The segment of each row; of each value, if it is ragged as ``data`` is.
        count: How many segments there are.
        by_segment: The reduction.
    """
    if isinstance(ids, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            raise DTypeError("ragged segment_ids need ragged data")
        check = assert_equal(
            cast(ids.row_splits, dtypes.int64),
            cast(data.row_splits, dtypes.int64),
            message="segment_ids and data must have rows of the same lengths",
        )
        inner = data.values
        if isinstance(inner, RaggedTensor):
            inner = RaggedTensor(inner.values, after([check], inner.row_splits))
        else:
            inner = after([check], inner)
        return segmented(inner, ids.values, count, by_segment)
    if not isinstance(data, RaggedTensor):
        return by_segment(data, ids, count)
    dtype = data.row_splits.dtype
    ids, count = cast(ids, dtype), cast(convert_to_tensor(count), dtype)
    lengths = lengths_of(data.row_splits)
    # A row of the result is as long as the longest that goes into it; none is, without rows.
    longest = maximum(segment.unsorted_segment_max(lengths, ids, count), 0)
    splits = splits_of(longest)
    known = static_value(count)
    if known is not None:
        splits.set_shape([int(known) + 1])
    rows = ids_of(data.row_splits)
    place = gather(gather(splits, ids), rows) + within(data.row_splits, rows)
    return RaggedTensor(segmented(data.values, place, splits[-1], by_segment), splits)


def _mean_by_segment(data: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    total = segment.unsorted_segment_sum(data, ids, count)
    number = segment.unsorted_segment_sum(ones_like(data), ids, count)
    return divide(total, number)


def _mean(value: Any, axis: Any = None) -> Tensor:
    tensor = convert_to_tensor(value)
    if tensor.dtype.is_integer:
        tensor = cast(tensor, dtypes.float64)
    return dense.reduce_mean(tensor, axis=axis)


def _logical(by_segment: BySegment) -> BySegment:
    """Return a reduction of bools, out of one of numbers."""

    def reduce(data: Tensor, ids: Tensor, count: Tensor) -> Tensor:
        if not data.dtype.is_bool:
            raise DTypeError(f"expected a bool tensor, got {data.dtype}")
        return equal(by_segment(cast(data, dtypes.int32), ids, count), 1)

    return reduce


def _any_by_segment(data: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    # No element holds in an empty segment.
    return maximum(segment.unsorted_segment_max(data, ids, count), 0)


reduce_sum = reduction(dense.reduce_sum, segment.unsorted_segment_sum)
reduce_prod = reduction(dense.reduce_prod, segment.unsorted_segment_prod)
reduce_max = reduction(dense.reduce_max, segment.unsorted_segment_max)
reduce_min = reduction(dense.reduce_min, segment.unsorted_segment_min)
_whole_mean = reduction(_mean, _mean_by_segment)
reduce_any = reduction(dense.reduce_any, _logical(_any_by_segment))
reduce_all = reduction(dense.reduce_all, _logical(segment.unsorted_segment_prod))


def reduce_mean(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Any:
    """Average along axes of a ragged tensor, all elements alike; see ``hr.reduce_mean``."""
    value = as_ragged(input_tensor)
    given = renamed("axis", axis, "reduction_indices", reduction_indices)
    several = isinstance(given, list | tuple) and len(given) > 1
    if not several or keepdims or keep_dims or not isinstance(value, RaggedTensor):
        return _whole_mean(value, given, keepdims, name, keep_dims=keep_dims)
    with name_scope(name, "RaggedReduce"):
        ones = value.with_flat_values(ones_like(value.flat_values))
        return divide(reduce_sum(value, given), reduce_sum(ones, given))


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Any:
    """Join strings along axes of a ragged tensor; see ``hr.strings.reduce_join``."""

    def whole(value: Any, axis: Any = None) -> Tensor:
        return text.reduce_join(value, axis=axis, separator=separator)

    def by_segment(data: Tensor, ids: Tensor, count: Tensor) -> Tensor:
        return text.unsorted_segment_join(data, ids, count, separator=separator)

    return reduction(whole, by_segment)(inputs, axis, keepdims, name, reduction_indices, keep_dims)


def by_segments(by_segment: BySegment) -> Callable[..., Any]:
    """Return a function with the arguments of ``hr.unsorted_segment_sum`` for ragged tensors."""

    def reduce(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        with name_scope(name, "RaggedSegment"):
            values = as_ragged(data)
            ids = as_ragged(segment_ids, preferred_dtype=dtypes.int64)
            return segmented(values, ids, num_segments, by_segment)

    return reduce


def _sqrt_n_by_segment(data: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    total = segment.unsorted_segment_sum(data, ids, count)
    number = segment.unsorted_segment_sum(ones_like(data), ids, count)
    return total * rsqrt(maximum(number, 1))


def _mean_or_zero(data: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    total = segment.unsorted_segment_sum(data, ids, count)
    number = segment.unsorted_segment_sum(ones_like(data), ids, count)
    return divide(total, maximum(number, 1))


segment_sum = by_segments(segment.unsorted_segment_sum)
segment_prod = by_segments(segment.unsorted_segment_prod)
segment_max = by_segments(segment.unsorted_segment_max)
segment_min = by_segments(segment.unsorted_segment_min)
segment_mean = by_segments(_mean_or_zero)
segment_sqrt_n = by_segments(_sqrt_n_by_segment)
