"""Kernels that fold axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace.extend.ops import MAX_RANK, Axis, reduced_axes
from headrace_cpu.kernels.numeric import (
    Array,
    axis_index,
    dimensions,
    integers,
    is_half,
    narrowed,
    scalar,
)

KERNELS = KernelTable()


@KERNELS.plain("ReduceSum")
def reduce_sum(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Add up; 16-bit floats in float32."""
    _check_axis(x, axis)
    if is_half(x):
        return x.sum(axis, dtype=np.float32, keepdims=keepdims).astype(x.dtype)
    return x.sum(axis, dtype=x.dtype, keepdims=keepdims)


def _check_axis(x: Array, axis: Axis) -> None:
    """Refuse axes out of range; NumPy ignores those of scalars, and CuPy names them otherwise."""
    if axis is not None:
        reduced_axes(axis, x.ndim)


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
    _check_axis(x, axis)
    if is_half(x):
        return x.prod(axis, dtype=np.float32, keepdims=keepdims).astype(x.dtype)
    return x.prod(axis, dtype=x.dtype, keepdims=keepdims)


@KERNELS.plain("ReduceMax")
def reduce_max(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Return the largest; the lowest value of the dtype of no elements."""
    _check_axis(x, axis)
    if not x.size:
        lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
        return _of_nothing(xp, x, axis, keepdims, lowest)
    return x.max(axis, keepdims=keepdims)


@KERNELS.plain("ReduceMin")
def reduce_min(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Return the smallest; the highest value of the dtype of no elements."""
    _check_axis(x, axis)
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
    _check_axis(x, axis)
    return x.all(axis, keepdims=keepdims)


@KERNELS.plain("ReduceAny")
def reduce_any(xp: Any, x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Return whether any holds."""
    _check_axis(x, axis)
    return x.any(axis, keepdims=keepdims)


@KERNELS.plain("ArgMax")
def argmax(xp: Any, x: Array, *, axis: int | None, output_type: DType) -> Array:
    """Return the index of the first largest that is not NaN."""
    at = _searched(x, axis)
    return _without_nan(xp, x, at, "argmax", -np.inf).astype(output_type.numpy)


@KERNELS.plain("ArgMin")
def argmin(xp: Any, x: Array, *, axis: int | None, output_type: DType) -> Array:
    """Return the index of the first smallest that is not NaN."""
    at = _searched(x, axis)
    return _without_nan(xp, x, at, "argmin", np.inf).astype(output_type.numpy)


def _without_nan(xp: Any, x: Array, axis: int, search: str, instead: float) -> Array:
    """Search with NaN replaced; NumPy finds NaN first, so that it is replaced on demand there."""
    if x.dtype.kind in "iu":
        return getattr(x, search)(axis)
    if xp is np:
        found = np.asarray(getattr(x, search)(axis))
        if not np.isnan(np.take_along_axis(x, np.expand_dims(found, axis), axis)).any():
            return found
    replaced = xp.where(xp.isnan(x), x.dtype.type(instead), x)
    return getattr(replaced, search)(axis)


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


@KERNELS.plain("ReductionOrder")
def reduction_order(xp: Any, axes: Array, rank: Array) -> tuple[Array, ...]:
    """Return the other axes followed by the given ones, the inverse, and 1 for each other."""
    count = int(scalar(rank, "rank"))
    if not 0 <= count <= MAX_RANK:
        raise ValueError(f"rank must be in [0, {MAX_RANK}], got {count}")
    # Axes may be named twice, as where they are known when the graph is built.
    named = [axis + count if -count <= axis < 0 else axis for axis in integers(axes)]
    last = reduced_axes(tuple(dict.fromkeys(named)), count)
    others = [axis for axis in range(count) if axis not in last]
    order = np.array([*others, *last], np.int32)
    kept = np.array([axis not in last for axis in range(count)], np.int32)
    return tuple(xp.asarray(part) for part in (order, order.argsort().astype(np.int32), kept))
