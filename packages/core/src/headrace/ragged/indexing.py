"""Indexing ragged tensors, as Python's lists and NumPy's arrays are indexed."""

from __future__ import annotations

from typing import Any

from headrace.errors import ArgumentTypeError, NoDimensionError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import static_value
from headrace.ops.constant import range as range_
from headrace.ops.conversion import cast
from headrace.ops.elementwise import floordiv, less, maximum, minimum, select
from headrace.ops.gather import gather
from headrace.ragged.gathering import gather_rows
from headrace.ragged.gathering import row as one_row
from headrace.ragged.joining import expanded
from headrace.ragged.partitions import ids_of, lengths_of, spans
from headrace.ragged.tensor import RaggedTensor
from headrace.shapes import Shape


def getitem(rt: RaggedTensor, key: Any) -> Any:
    """Return what a key names of a ragged tensor.

    Args:
        rt: The ragged tensor.
        key: Numbers, scalar tensors, slices, ``...`` and ``None``, or a tuple of them. A number
            names a row of the first axis, or of an axis that is not ragged; along ragged axes there
            are slices only, since rows may be too short for a number.

    Raises:
        ShapeError: if there are more of them than axes, or a number stands at a ragged axis.
        ArgumentTypeError: if one of them is another thing.
    """
    keys = list(key) if isinstance(key, tuple | list) else [key]
    if sum(k is Ellipsis for k in keys) > 1:
        raise NoDimensionError("a ragged tensor is indexed with one ... at most")
    with name_scope(None, "RaggedGetItem"):
        return _get(rt, _without_ellipsis(keys, rt))


def _without_ellipsis(keys: list[Any], rt: RaggedTensor) -> list[Any]:
    if not any(k is Ellipsis for k in keys):
        return keys
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    axes = sum(k is not None for k in keys) - 1
    rank = rt.shape.rank
    if rank is None:
        raise ShapeError("an index with ... needs a ragged tensor of known rank")
    if axes > rank:
        raise ShapeError(f"{axes} indices for a ragged tensor of rank {rank}")
    return [*keys[:at], *[slice(None)] * (rank - axes), *keys[at + 1 :]]


def _get(value: Any, keys: list[Any]) -> Any:
    """Return what keys name of a tensor or ragged tensor, from its first axis."""
    if not keys:
        return value
    if not isinstance(value, RaggedTensor):
        return value[tuple(keys)]
    first, *rest = keys
    if first is None:
        return expanded(_get(value, rest), 0)
    if isinstance(first, slice):
        return _inner(_rows_of(value, first), rest)
    return _get(one_row(value, _row_index(value, first)), rest)


def _row_index(value: RaggedTensor, key: Any) -> Any:
    """Return the number of a row, counted from the first."""
    index = convert_to_tensor(key)
    if not index.dtype.is_integer or index.shape.rank not in (None, 0):
        raise ArgumentTypeError(
            f"a ragged tensor is indexed with integers and slices, got {shown(key)}; "
            "hr.gather takes several rows"
        )
    rows = value.shape[0]
    known, count = static_value(index), getattr(rows, "value", rows)
    if known is not None and count is not None and not -count <= int(known) < count:
        raise ShapeError(f"index {int(known)} is out of range for a ragged tensor of {count} rows")
    if known is not None and (known >= 0 or count is not None):
        return int(known) if known >= 0 else int(known) + count
    wide = cast(index, value.row_splits.dtype)
    return select(less(wide, 0), wide + value.nrows(), wide)


def _rows_of(value: RaggedTensor, key: slice) -> RaggedTensor:
    if key == slice(None):
        return value
    if key.step is None or (isinstance(key.step, int) and key.step == 1):
        starts, limits = value.row_splits[:-1], value.row_splits[1:]
        # One more split than rows; the values in front stay where they are.
        first, last = starts[key], limits[key]
        lengths = last - first
        places, splits = spans(first, lengths)
    else:
        order = range_(value.nrows(), dtype=value.row_splits.dtype)[key]
        rows = Shape(value.shape)[0]
        bounds = (key.start, key.stop, key.step)
        if rows is not None and all(b is None or isinstance(b, int) for b in bounds):
            order.set_shape([len(range(rows)[key])])
        return gather_rows(value, order)
    known = first.spec.shape[0]
    splits.set_shape([None if known is None else known + 1])
    if isinstance(value.values, RaggedTensor):
        return RaggedTensor(gather_rows(value.values, places), splits)
    return RaggedTensor(gather(value.values, places), splits)


def _inner(value: RaggedTensor, keys: list[Any]) -> Any:
    """Return what keys name of each row."""
    if not keys:
        return value
    first, *rest = keys
    if first is None:
        return expanded(_inner(value, rest), 1)
    if not isinstance(first, slice):
        raise ShapeError(
            f"index {shown(first)} at a ragged axis: a row may be too short for it; take a slice, "
            "or use hr.batch_gather"
        )
    cut = _columns(value, first)
    if isinstance(cut.values, RaggedTensor):
        return cut.with_values(_inner(cut.values, rest)) if rest else cut
    return cut.with_values(cut.values[(slice(None), *rest)]) if rest else cut


def _columns(value: RaggedTensor, key: slice) -> RaggedTensor:
    """Return a slice of each row."""
    if key == slice(None):
        return value
    dtype = value.row_splits.dtype
    lengths = lengths_of(value.row_splits)
    step = 1 if key.step is None else _step(key.step)
    zero = convert_to_tensor(0, dtype)
    if isinstance(step, Tensor):
        step = cast(step, dtype)
        forward = less(zero, step)
        low, high = select(forward, zero, -1), select(forward, lengths, lengths - 1)
        first, last = select(forward, zero, lengths - 1), select(forward, lengths, zero - 1)
        start = first if key.start is None else _clipped(key.start, lengths, low, high)
        stop = last if key.stop is None else _clipped(key.stop, lengths, low, high)
        count = -floordiv(start - stop, step)
    elif step > 0:
        low, high = zero, lengths
        start = zero if key.start is None else _clipped(key.start, lengths, low, high)
        stop = lengths if key.stop is None else _clipped(key.stop, lengths, low, high)
        count = floordiv(stop - start + (step - 1), step)
    else:
        low, high = convert_to_tensor(-1, dtype), lengths - 1
        start = high if key.start is None else _clipped(key.start, lengths, low, high)
        stop = low if key.stop is None else _clipped(key.stop, lengths, low, high)
        count = floordiv(start - stop + (-step - 1), -step)
    count = maximum(count, zero) + lengths * 0
    ticks, splits = spans(count * 0, count)
    ids = ids_of(splits)
    offset = value.row_splits[:-1] + start
    places = gather(offset, ids) + ticks * step
    splits.set_shape(value.row_splits.spec.shape)
    if isinstance(value.values, RaggedTensor):
        return RaggedTensor(gather_rows(value.values, places), splits)
    return RaggedTensor(gather(value.values, places), splits)


def _step(step: Any) -> int | Tensor:
    """Return the step of a slice, a number where it is known."""
    given = _integer(step, "the step")
    known = static_value(given)
    if known is None:
        return given
    if int(known) == 0:
        raise ShapeError("the step of a slice must not be 0")
    return int(known)


def _integer(value: Any, what: str) -> Tensor:
    given = convert_to_tensor(value)
    if not given.dtype.is_integer or given.shape.rank not in (None, 0):
        raise ArgumentTypeError(
            f"{what} of a slice of a ragged axis must be an integer, got {shown(value)}"
        )
    return given


def _clipped(bound: Any, lengths: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the bound of a slice in each row, as Python clips it."""
    given = cast(_integer(bound, "a bound"), lengths.dtype)
    counted = select(less(given, 0), given + lengths, given + lengths * 0)
    return minimum(maximum(counted, low), high)


OPERATORS["ragged_getitem"] = getitem
