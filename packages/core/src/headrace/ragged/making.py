"""Ragged tensors of ranges, of segments, and of functions of flat values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import dtypes
from headrace.dtypes import as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor, is_python_literal
from headrace.graph.scopes import name_scope
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int
from headrace.ops.array import broadcast_dynamic_shape, broadcast_to, reshape, shape
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import ceil, divide, maximum, not_equal
from headrace.ops.gather import gather
from headrace.ops.histogram import bincount
from headrace.ops.reduce import reduce_all
from headrace.ops.report import assert_true
from headrace.ragged.joining import stack as _stack
from headrace.ragged.partitions import (
    after,
    as_splits_dtype,
    as_vector,
    ids_of,
    splits_of,
    within,
)
from headrace.ragged.tensor import RaggedTensor, as_ragged, is_ragged
from headrace.shapes import Dim


def range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Make rows of numbers, each from a start up to a limit.

    Args:
        starts: [] or [rows], real; the limits, from 0, if ``limits`` is None.
        limits: [] or [rows]; not in the rows themselves.
        deltas: [] or [rows], how far one number is from the next; not 0.
        dtype: The dtype of the numbers; the widest of the arguments' if None.
        name: The name of the scope.
        row_splits_dtype: int32 or int64.

    Returns:
        [rows, None].

    Raises:
        ShapeError: if an argument has more than one axis, or vectors are known to have different
            lengths.
    """
    splits_dtype = as_splits_dtype(row_splits_dtype)
    with name_scope(name, "RaggedRange"):
        if limits is None:
            starts, limits = 0, starts
        first, last, step = _of_one_dtype([starts, limits, deltas], dtype)
        rows: Dim = None
        for what, part in (("starts", first), ("limits", last), ("deltas", step)):
            if part.shape.rank not in (None, 0, 1):
                raise ShapeError(
                    f"ragged.range: {what} must be a scalar or a vector, got shape "
                    f"{part.spec.shape}"
                )
            length = part.spec.shape[0] if part.shape.rank == 1 else None
            if None not in (rows, length) and rows != length:
                raise ShapeError(f"ragged.range: {what} has length {length}, another one {rows}")
            rows = length if rows is None else rows
        one = convert_to_tensor([1])
        sizes = broadcast_dynamic_shape(
            broadcast_dynamic_shape(shape(first), shape(last)),
            broadcast_dynamic_shape(shape(step), one),
        )
        if None in (first.shape.rank, last.shape.rank, step.shape.rank):
            # Fails in a step where one of them turns out to have more axes.
            sizes = reshape(sizes, [1])
        first, last, step = (broadcast_to(part, sizes) for part in (first, last, step))
        moving = assert_true(
            reduce_all(not_equal(step, zeros_like(step))), ["ragged.range: deltas must not be 0"]
        )
        step = after([moving], step)
        count = _count(last - first, step, splits_dtype)
        splits = splits_of(count)
        ids = ids_of(splits)
        places = cast(within(splits, ids), first.dtype)
        return RaggedTensor(gather(first, ids) + places * gather(step, ids), splits)


def _of_one_dtype(values: list[Any], dtype: Any) -> list[Tensor]:
    if dtype is not None:
        return [convert_to_tensor(value, as_dtype(dtype)) for value in values]
    parts = [convert_to_tensor(value) for value in values]
    order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
    fixed = [p for p, v in zip(parts, values, strict=True) if not is_python_literal(v)]
    for part in parts:
        if part.dtype not in order:
            raise DTypeError(f"ragged.range: expected integers or floats, got {part.dtype}")
    widest = max((part.dtype for part in fixed or parts), key=order.index)
    widest = max([widest, *(p.dtype for p in parts)], key=order.index)
    return [cast(part, widest) for part in parts]


def _count(distance: Tensor, step: Tensor, dtype: Any) -> Tensor:
    """Return how many steps lead up to a distance, none if they lead away."""
    if distance.dtype.is_integer:
        # Rounded up; exact also where floats would not be.
        count = -((-distance) // step)
    else:
        count = ceil(divide(distance, step))
    return maximum(cast(count, dtype), 0)


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply a function of tensors to the flat values of ragged tensors.

    Args:
        op: A function that returns as many values as it gets.
        args: Its arguments, ragged tensors among them, also inside of lists and dicts.
        kwargs: Likewise.

    Returns:
        A ragged tensor of the same rows; what ``op`` returns where no argument is ragged.

    Raises:
        ArgumentTypeError: if ``op`` is no function.
        DTypeError: if the splits of ragged arguments have two dtypes.
        AttributeValueError: if ragged arguments have different numbers of ragged axes.
    """
    if not callable(op):
        raise ArgumentTypeError(f"map_flat_values: op must be a function, got {shown(op)}")
    leaves = flatten([list(args), kwargs], False)
    ragged = [as_ragged(leaf) for leaf in leaves if is_ragged(leaf)]
    if not ragged:
        return op(*args, **kwargs)
    first = ragged[0]
    checks = []
    for other in ragged[1:]:
        mine, theirs = first.nested_row_splits, other.nested_row_splits
        if len(mine) != len(theirs):
            raise AttributeValueError(
                f"map_flat_values: ragged arguments have {len(mine)} and {len(theirs)} ragged axes"
            )
        for a, b in zip(mine, theirs, strict=True):
            if a.dtype != b.dtype:
                raise DTypeError(f"map_flat_values: splits are {a.dtype} and {b.dtype}")
            if a is not b:
                message = "map_flat_values: ragged arguments have rows of different lengths"
                checks.append(assert_equal(a, b, message=message))
    inner = [as_ragged(leaf).flat_values if is_ragged(leaf) else leaf for leaf in leaves]
    taken, named = pack([list(args), kwargs], inner, False)
    result = as_ragged(op(*taken, **named))
    splits = [after(checks, first.row_splits), *first.nested_row_splits[1:]]
    return RaggedTensor.unflatten([first.flat_values, *splits]).with_flat_values(result)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """Return the row that each value belongs to.

    Args:
        splits: [rows + 1], int32 or int64, as ``row_splits``.
        name: The name of the scope.
        out_type: int32 or int64; the dtype of ``splits`` if None.

    Returns:
        [values].

    Raises:
        ShapeError: if ``splits`` is no vector, or an empty one.
    """
    with name_scope(name, "RaggedSplitsToSegmentIds"):
        found = as_vector(splits, "splits")
        if found.spec.shape.dims == (0,):
            raise ShapeError("splits must not be empty; one row needs two of them")
        wanted = found.dtype if out_type is None else as_splits_dtype(out_type)
        ids: Tensor = cast(ids_of(found), wanted)
        return ids


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Return the splits of rows of which it is known what belongs to them.

    Args:
        segment_ids: [values], int32 or int64, the row of each value, in any order; not negative.
        num_segments: [], how many rows there are; one more than the largest if None. What belongs
            to others is not counted.
        out_type: int32 or int64; the dtype of ``segment_ids`` if None.
        name: The name of the scope.

    Returns:
        [rows + 1].

    Raises:
        ShapeError: if ``segment_ids`` is no vector.
    """
    with name_scope(name, "SegmentIdsToRaggedSplits"):
        ids = as_vector(segment_ids, "segment_ids")
        wanted = ids.dtype if out_type is None else as_splits_dtype(out_type)
        rows = None if num_segments is None else as_int(num_segments, "num_segments")
        return splits_of(bincount(ids, minlength=rows, maxlength=rows, dtype=wanted))


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Join tensors and ragged tensors along a new axis.

    Args:
        values: A list of tensors and ragged tensors of one rank and dtype. Their rows may have
            different lengths.
        axis: The new axis.
        name: The name of the scope.

    Returns:
        A ragged tensor; a tensor where ``values`` are scalars, or one tensor.

    Raises:
        ShapeError: if the ranks differ, or there is no such axis.
    """
    return _stack(values, axis, name)
