"""Joining ragged tensors, repeating them, and adding and removing axes of size 1."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops import array
from headrace.ops import joining as dense
from headrace.ops.aliases import renamed
from headrace.ops.arguments import as_int, static_value
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import range as range_
from headrace.ops.conversion import cast
from headrace.ops.elementwise import maximum
from headrace.ops.gather import gather
from headrace.ragged.gathering import gather_rows
from headrace.ragged.partitions import after, count_of, lengths_of, spans
from headrace.ragged.tensor import RaggedTensor, as_ragged
from headrace.shapes import normalize_axis


def axis_of(axis: Any, rank: int | None, what: str) -> int:
    """Return an axis counted from the front.

    Raises:
        ShapeError: if there is no such axis, it is a tensor, or the rank is needed and unknown.
    """
    found = as_int(axis, f"{what}: axis")
    if not isinstance(found, int):
        raise ShapeError(f"{what}: the axis of a ragged tensor must be a number, got {shown(axis)}")
    if rank is None:
        if found < 0:
            raise ShapeError(f"{what}: a negative axis needs a known rank, got axis {found}")
        return found
    return normalize_axis(found, rank, f"{what}: axis")


def concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """Join tensors and ragged tensors along an axis; see ``hr.concat``."""
    parts = [as_ragged(v) for v in values] if isinstance(values, list | tuple) else [values]
    with name_scope(name, "RaggedConcat"):
        return _concat(parts, axis_of(axis, common_rank(parts, "concat"), "concat"))


def stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Join tensors and ragged tensors along a new axis; see ``hr.stack``."""
    listed = isinstance(values, list | tuple)
    parts = [as_ragged(v) for v in (values if listed else [values])]
    if not parts:
        raise AttributeValueError("stack needs at least one value")
    with name_scope(name, "RaggedStack"):
        rank = common_rank(parts, "stack")
        at = axis_of(axis, None if rank is None else rank + 1, "stack")
        if rank == 0:
            return dense.stack(parts)
        if rank != 1:
            # Their rows may have lengths of their own, also those of tensors.
            parts = _alike(parts)
        return _concat([expanded(part, at) for part in parts], at)


def common_rank(parts: list[Any], what: str) -> int | None:
    """Return the rank that all parts have, None where it is unknown.

    Raises:
        ShapeError: if two differ.
    """
    ranks = {part.shape.rank for part in parts if part.shape.rank is not None}
    if len(ranks) > 1:
        raise ShapeError(f"{what}: values have ranks {sorted(ranks)}; expected one rank")
    return next(iter(ranks), None)


def _concat(parts: list[Any], axis: int) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not any(isinstance(part, RaggedTensor) for part in parts):
        return dense.concat(parts, axis)
    cut = _alike(parts)
    if not isinstance(cut[0], RaggedTensor):
        return dense.concat(cut, axis)
    if axis == 0:
        return _below(cut)
    if axis == 1:
        return _beside(cut)
    first = cut[0]
    checks = [
        assert_equal(
            part.row_splits,
            first.row_splits,
            message="concat: the rows before the axis must have the same lengths",
        )
        for part in cut[1:]
        if part.row_splits is not first.row_splits
    ]
    splits = after(checks, first.row_splits)
    return RaggedTensor(_concat([part.values for part in cut], axis - 1), splits)


def _alike(parts: list[Any]) -> list[Any]:
    """Return values with as many ragged axes as the one that has most of them, at least one."""
    depth = max((p.ragged_rank for p in parts if isinstance(p, RaggedTensor)), default=0)
    depth = max(depth, 1)
    made: list[RaggedTensor] = []
    for part in parts:
        if not isinstance(part, RaggedTensor):
            rank = part.shape.rank
            if rank is not None and rank < 2:
                return parts
            made.append(RaggedTensor.from_tensor(part, ragged_rank=min(depth, (rank or 2) - 1)))
        elif part.ragged_rank < depth and (part.flat_values.shape.rank or 1) > 1:
            deeper = (part.flat_values.shape.rank or 2) - 1
            inner = RaggedTensor.from_tensor(
                part.flat_values,
                ragged_rank=min(depth - part.ragged_rank, deeper),
                row_splits_dtype=part.row_splits.dtype,
            )
            made.append(part.with_flat_values(inner))
        else:
            made.append(part)
    wide = any(p.row_splits.dtype == dtypes.int64 for p in made)
    return [p.with_row_splits_dtype(dtypes.int64 if wide else dtypes.int32) for p in made]


def _below(parts: list[RaggedTensor]) -> RaggedTensor:
    """Return the rows of ragged tensors one after the other."""
    splits = [parts[0].row_splits]
    end = parts[0].row_splits[-1]
    for i, part in enumerate(parts[1:], 2):
        splits.append(part.row_splits[1:] + end)
        if i < len(parts):
            end = end + part.row_splits[-1]
    values = [part.values for part in parts]
    if any(isinstance(v, RaggedTensor) for v in values):
        return RaggedTensor(_concat(values, 0), dense.concat(splits, 0))
    return RaggedTensor(dense.concat(values, 0), dense.concat(splits, 0))


def _beside(parts: list[RaggedTensor]) -> RaggedTensor:
    """Return the rows of ragged tensors joined, each with those of the same number."""
    rows = parts[0].nrows()
    checks = [
        assert_equal(part.nrows(), rows, message="concat: the numbers of rows must be the same")
        for part in parts[1:]
    ]
    stacked = _below(parts)
    count = len(parts)
    order = range_(rows * count, dtype=rows.dtype)
    # Row i of part k stands at k * rows + i in what is stacked.
    picked = order % count * rows + order // count
    mixed = gather_rows(stacked, after(checks, picked))
    splits = mixed.row_splits[::count]
    for part in parts:
        splits.set_shape(part.row_splits.spec.shape)
    return RaggedTensor(mixed.values, splits)


def expanded(value: Any, axis: int) -> Any:
    """Return a value with a new axis of size 1."""
    if not isinstance(value, RaggedTensor):
        return array.expand_dims(value, axis)
    if axis == 0:
        ends = dense.stack([convert_to_tensor(0, value.row_splits.dtype), value.nrows()])
        return RaggedTensor(value, ends)
    if axis == 1:
        splits = range_(value.nrows() + 1, dtype=value.row_splits.dtype)
        splits.set_shape(value.row_splits.spec.shape)
        return RaggedTensor(value, splits)
    return RaggedTensor(expanded(value.values, axis - 1), value.row_splits)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """Add an axis of size 1; see ``hr.expand_dims``."""
    value = as_ragged(input)
    with name_scope(name, "RaggedExpandDims"):
        rank = value.shape.rank
        at = renamed("axis", axis, "dim", dim)
        return expanded(value, axis_of(at, None if rank is None else rank + 1, "expand_dims"))


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    """Remove axes of size 1; see ``hr.squeeze``. The axes must be named.

    Raises:
        AttributeValueError: if no axis is named: which ragged axes have size 1 is not known.
    """
    value = as_ragged(input)
    given = renamed("axis", axis, "squeeze_dims", squeeze_dims)
    if given is None:
        raise AttributeValueError("squeeze: a ragged tensor needs the axes that are to be removed")
    listed = given if isinstance(given, list | tuple) else [given]
    with name_scope(name, "RaggedSqueeze"):
        axes = sorted({axis_of(a, value.shape.rank, "squeeze") for a in listed}, reverse=True)
        for at in axes:
            value = _without(value, at)
        return value


def _without(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return array.squeeze(value, axis)
    message = f"squeeze: the rows along axis {axis} must have length 1"
    if axis == 0:
        check = assert_equal(value.nrows(), 1, message=message)
        return _after_check(value.values, check)
    if axis == 1:
        check = assert_equal(lengths_of(value.row_splits), 1, message=message)
        return _after_check(value.values, check)
    return RaggedTensor(_without(value.values, axis - 1), value.row_splits)


def _after_check(value: Any, check: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return RaggedTensor(value.values, after([check], value.row_splits))
    return after([check], value)


def tile(input: Any, multiples: Any, name: str | None = None) -> RaggedTensor:
    """Repeat a ragged tensor along its axes; see ``hr.tile``."""
    value = as_ragged(input)
    with name_scope(name, "RaggedTile"):
        times = convert_to_tensor(multiples)
        if not times.dtype.is_integer:
            raise ShapeError(f"tile: multiples must be integers, got {times.dtype}")
        rank = value.shape.rank
        if times.shape.rank not in (None, 1) or (
            rank is not None and times.shape.rank == 1 and times.spec.shape[0] not in (None, rank)
        ):
            raise ShapeError(
                f"tile: multiples must have one number for each of {rank} axes, got shape "
                f"{times.spec.shape}"
            )
        # Inner axes first: rows that repeat hold rows that have repeated already.
        dtype = value.row_splits.dtype
        counts = cast(times, dtype)
        return _tiled(value, counts)


def _tiled(value: RaggedTensor, counts: Tensor) -> RaggedTensor:
    inner = value.values
    if isinstance(inner, RaggedTensor):
        # The axis of the rows of the inner one is axis 1 here, and repeats below.
        one = convert_to_tensor([1], counts.dtype)
        inner = _tiled(inner, dense.concat([one, counts[2:]], 0))
    else:
        rank = inner.shape.rank
        one = convert_to_tensor([1], counts.dtype)
        if rank != 1:
            inner = dense.tile(inner, cast(dense.concat([one, counts[2:]], 0), dtypes.int32))
    starts, lengths = value.row_splits[:-1], lengths_of(value.row_splits)
    rows, across, down = count_of(lengths, counts.dtype), counts[1], counts[0]
    # Row i, across times; then all rows, down times.
    order = range_(rows * down * across, dtype=counts.dtype)
    which = order // maximum(across, 1) % maximum(rows, 1)
    places, splits = spans(gather(starts, which), gather(lengths, which))
    is_ragged = isinstance(inner, RaggedTensor)
    values = gather_rows(inner, places) if is_ragged else gather(inner, places)
    whole = gather(splits, range_(rows * down + 1, dtype=counts.dtype) * across)
    known = value.row_splits.spec.shape
    times = static_value(counts)
    if known.is_fully_defined() and times is not None:
        whole.set_shape([(known.known[0] - 1) * int(times[0]) + 1])
    return RaggedTensor(values, whole)
