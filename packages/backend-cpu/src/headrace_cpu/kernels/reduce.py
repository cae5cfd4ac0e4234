"""Kernels that fold axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import DType, KernelTable
from headrace.ops.reduce import Axis, reduced_axes
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    axis_index,
    check_indices,
    dimensions,
    is_half,
    narrowed,
    scalar,
    widened,
)

KERNELS = KernelTable()


@KERNELS.plain("ReduceSum")
def reduce_sum(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Add up; 16-bit floats in float32."""
    if is_half(x):
        return x.sum(axis, dtype=np.float32, keepdims=keepdims).astype(x.dtype)
    return x.sum(axis, dtype=x.dtype, keepdims=keepdims)


@KERNELS.plain("ReduceMean")
def reduce_mean(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Average; integers exactly, rounded towards zero."""
    count = _folded_count(x, axis)
    if x.dtype.kind in "iu":
        return _integer_mean(xp, x, count, axis, keepdims)
    wide = np.dtype(np.float32) if is_half(x) else x.dtype
    total = x.sum(axis, dtype=wide, keepdims=keepdims)
    return narrowed(total / wide.type(count), x.dtype)


def _folded_count(x: Array, axis: Axis) -> int:
    count = 1
    for folded in reduced_axes(axis, x.ndim):
        count *= x.shape[folded]
    return count


def _integer_mean(xp: Any, x: Array, count: int, axis: Axis, keepdims: bool) -> Array:
    """Return the mean of integers, computed so that no sum overflows; 0 of no elements."""
    if not count:
        return x.sum(axis, dtype=x.dtype, keepdims=keepdims)
    if x.dtype.itemsize < 8:
        parts, rest = 0, x.sum(axis, dtype=np.int64, keepdims=keepdims)
    else:
        # sum(x) = count * sum(x // count) + sum(x % count), and neither sum is large.
        n = x.dtype.type(count)
        parts = (x // n).sum(axis, dtype=x.dtype, keepdims=keepdims)
        rest = (x % n).sum(axis, dtype=x.dtype, keepdims=keepdims)
    n = rest.dtype.type(count)
    floor = parts + rest // n
    if x.dtype.kind == "i":
        floor = floor + ((floor < 0) & (rest % n != 0))
    return floor.astype(x.dtype)


@KERNELS.plain("ReduceProd")
def reduce_prod(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Multiply up; 16-bit floats in float32."""
    if is_half(x):
        return x.prod(axis, dtype=np.float32, keepdims=keepdims).astype(x.dtype)
    return x.prod(axis, dtype=x.dtype, keepdims=keepdims)


@KERNELS.plain("ReduceMax")
def reduce_max(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Return the largest; the lowest value of the dtype of no elements."""
    if not x.size:
        lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
        return _of_nothing(xp, x, axis, keepdims, lowest)
    return x.max(axis, keepdims=keepdims)


@KERNELS.plain("ReduceMin")
def reduce_min(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Return the smallest; the highest value of the dtype of no elements."""
    if not x.size:
        highest = np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).max
        return _of_nothing(xp, x, axis, keepdims, highest)
    return x.min(axis, keepdims=keepdims)


def _of_nothing(xp: Any, x: Array, axis: Axis, keepdims: bool, value: float) -> Array:
    axes = reduced_axes(axis, x.ndim)
    kept = [1 if i in axes else d for i, d in enumerate(x.shape)]
    shape = kept if keepdims else [d for i, d in enumerate(kept) if i not in axes]
    return xp.full(tuple(shape), value, x.dtype)


@KERNELS.plain("ReduceAll")
def reduce_all(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Return whether all hold."""
    return x.all(axis, keepdims=keepdims)


@KERNELS.plain("ReduceAny")
def reduce_any(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Return whether any holds."""
    return x.any(axis, keepdims=keepdims)


@KERNELS.plain("ArgMax")
def argmax(xp: Any, x: Array, *, axis: int | None, output_type: DType) -> Array:
    """Return the index of the first largest."""
    return x.argmax(_searched(x, axis)).astype(output_type.numpy)


@KERNELS.plain("ArgMin")
def argmin(xp: Any, x: Array, *, axis: int | None, output_type: DType) -> Array:
    """Return the index of the first smallest."""
    return x.argmin(_searched(x, axis)).astype(output_type.numpy)


def _searched(x: Array, axis: int | None) -> int:
    at = axis_index(0 if axis is None else axis, x.ndim)
    if not x.shape[at]:
        raise ValueError(f"axis {at} of shape {list(x.shape)} is empty: no index to find")
    return at


@KERNELS.plain("SumToShape")
def sum_to_shape(xp: Any, x: Array, shape: Array) -> Array:
    """Add up over the axes along which ``shape`` was broadcast."""
    dims = dimensions(shape)
    if dims == x.shape:
        return x
    lead = x.ndim - len(dims)
    fits = lead >= 0 and all(d in (1, s) for d, s in zip(dims, x.shape[lead:], strict=True))
    if not fits:
        raise ValueError(f"shape {list(dims)} does not broadcast to {list(x.shape)}")
    axes = (*range(lead), *(i + lead for i, d in enumerate(dims) if d != x.shape[lead + i]))
    return reduce_sum(xp, x, axis=axes, keepdims=True).reshape(dims)


@KERNELS.plain("UnsortedSegmentSum")
def unsorted_segment_sum(xp: Any, data: Array, segment_ids: Array, num_segments: Array) -> Array:
    """Add up the rows with the same id; rows with negative ids are dropped."""
    count = int(scalar(num_segments, "num_segments"))
    if count < 0:
        raise ValueError(f"num_segments must be >= 0, got {count}")
    lead = segment_ids.ndim
    if tuple(data.shape[:lead]) != tuple(segment_ids.shape):
        raise ValueError(
            f"segment_ids must have the leading axes of data {list(data.shape)}, got shape "
            f"{list(segment_ids.shape)}"
        )
    row_shape = tuple(data.shape[lead:])
    ids = segment_ids.reshape(-1)
    rows = widened(data).reshape((ids.size, int(np.prod(row_shape))))
    if ids.size and int(ids.min()) < 0:
        kept = ids >= 0
        ids, rows = ids[kept], rows[kept]
    check_indices(ids, count, f"{count} segments")
    total = xp.zeros((count, rows.shape[1]), rows.dtype)
    add_rows(xp, total, ids, rows)
    return narrowed(total.reshape((count, *row_shape)), data.dtype)
