"""How a vector of rows is cut out of values: splits, lengths, and the row of each value.

Splits are [rows + 1], integers from 0 to the number of values: row ``i`` is
``values[splits[i]:splits[i + 1]]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import control_dependencies
from headrace.graph.tensor import Tensor
from headrace.ops.array import identity, shape
from headrace.ops.constant import range as range_
from headrace.ops.conversion import cast
from headrace.ops.cumulative import cumsum
from headrace.ops.gather import gather
from headrace.ops.joining import concat
from headrace.ops.sort import searchsorted


def as_splits_dtype(dtype: Any) -> DType:
    """Return a dtype that splits may have.

    Raises:
        DTypeError: if it is neither int32 nor int64.
    """
    found = as_dtype(dtype)
    if found not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"row splits are int32 or int64, got {found}")
    return found


def as_vector(value: Any, what: str) -> Tensor:
    """Return splits, lengths or the like as an integer vector; plain numbers become int64.

    Raises:
        DTypeError: if they are neither int32 nor int64.
        ShapeError: if they are no vector.
    """
    found = convert_to_tensor(value, preferred_dtype=dtypes.int64)
    if found.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"{what} must be int32 or int64, got {found.dtype}")
    if found.shape.rank not in (None, 1):
        raise ShapeError(f"{what} must be a vector, got shape {found.spec.shape}")
    found.set_shape([None])
    return found


def count_of(values: Tensor, dtype: DType) -> Tensor:
    """Return the size of the first axis."""
    return shape(values, out_type=dtype)[0]


def lengths_of(splits: Tensor) -> Tensor:
    """Return how long the rows are, [rows]."""
    return splits[1:] - splits[:-1]


def splits_of(lengths: Tensor) -> Tensor:
    """Return the splits of rows of these lengths."""
    return concat([convert_to_tensor([0], lengths.dtype), cumsum(lengths)], 0)


def ids_of(splits: Tensor) -> Tensor:
    """Return the row that each value belongs to, [values], of the dtype of the splits."""
    places = range_(splits[-1], dtype=splits.dtype)
    return searchsorted(splits[1:], places, side="right", out_type=splits.dtype)


def splits_of_ids(ids: Tensor, rows: Tensor) -> Tensor:
    """Return the splits of values whose rows are known, in ascending order.

    Args:
        ids: [values], the row of each.
        rows: [], how many rows there are.
    """
    return searchsorted(ids, range_(rows + 1, dtype=ids.dtype), side="left", out_type=ids.dtype)


def within(splits: Tensor, ids: Tensor) -> Tensor:
    """Return the place of each value in its row.

    Args:
        splits: The splits.
        ids: The row of each value.
    """
    return range_(splits[-1], dtype=splits.dtype) - gather(splits, ids)


def spans(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return all the places of several spans, one after the other, and the splits between them.

    Args:
        starts: [n], the first place of each.
        lengths: [n], of one dtype with ``starts``.
    """
    splits = splits_of(lengths)
    ids = ids_of(splits)
    return gather(starts, ids) + within(splits, ids), splits


def after(checks: Sequence[Operation | None], value: Tensor) -> Tensor:
    """Return a tensor that is there once checks have passed."""
    left = [check for check in checks if check is not None]
    if not left:
        return value
    with control_dependencies(left):
        return identity(value)


def one_dtype(*tensors: Tensor) -> list[Tensor]:
    """Return splits in one dtype, int64 if one of them is."""
    if any(t.dtype == dtypes.int64 for t in tensors):
        return [t if t.dtype == dtypes.int64 else cast(t, dtypes.int64) for t in tensors]
    return list(tensors)
