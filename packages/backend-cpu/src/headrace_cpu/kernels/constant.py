"""Kernels that make arrays of plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_size, dimensions, scalar

KERNELS = KernelTable()


@KERNELS.plain("Fill")
def fill(xp: Any, dims: Array, value: Array) -> Array:
    """Fill a new array with one value."""
    if value.ndim:
        raise ValueError(f"value must be a scalar, got shape {list(value.shape)}")
    filled = xp.empty(dimensions(dims), value.dtype)
    filled[...] = value
    return filled


@KERNELS.plain("Range")
def range_of(xp: Any, start: Array, limit: Array, delta: Array) -> Array:
    """Return evenly spaced numbers."""
    first, last = scalar(start, "start"), scalar(limit, "limit")
    step = scalar(delta, "delta")
    if step == 0:
        raise ValueError("delta must not be 0")
    if start.dtype.kind in "iu":
        if (last - first) * step < 0:
            raise ValueError(f"a range from {first} to {last} needs another step than {step}")
        # Not len(), which takes no range as long as those of uint64 can be.
        count = _checked_count(-((first - last) // step))
        # In the dtype itself, where a multiple that overflows comes out right all the same.
        return start + delta * xp.arange(count).astype(start.dtype)
    span = float(last) - float(first)
    if not math.isfinite(span) or not math.isfinite(step):
        raise ValueError(f"a range must be finite, got {first} to {last} by {step}")
    if span * float(step) < 0:
        raise ValueError(f"a range from {first} to {last} needs another step than {step}")
    count = _checked_count(math.ceil(span / float(step)))
    return (float(first) + float(step) * xp.arange(count)).astype(start.dtype)


def _checked_count(count: int) -> int:
    # What an address can reach, of eight bytes each.
    if count >= 2**59:
        raise ValueError(f"a range of {count:.3e} numbers is too long")
    return max(0, count)


@KERNELS.plain("OneHot")
def one_hot(
    xp: Any, indices: Array, on_value: Array, off_value: Array, depth: Array, *, axis: int
) -> Array:
    """Return vectors that differ from ``off_value`` at an index."""
    rank = indices.ndim + 1
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    for value, label in ((on_value, "on_value"), (off_value, "off_value")):
        if value.ndim:
            raise ValueError(f"{label} must be a scalar, got shape {list(value.shape)}")
    classes = scalar(depth, "depth")
    if classes < 0:
        raise ValueError(f"depth must be >= 0, got {classes}")
    check_size((classes, *indices.shape))
    at = axis % rank
    numbers = xp.arange(classes).reshape((classes,) + (1,) * (rank - 1 - at))
    # Unsigned indices beyond int64 become negative, and so stay outside.
    chosen = xp.expand_dims(indices.astype(np.int64), at) == numbers
    return xp.where(chosen, on_value, off_value)


@KERNELS.plain("LinSpace")
def lin_space(xp: Any, start: Array, stop: Array, num: Array) -> Array:
    """Return evenly spaced numbers between two, both included."""
    for value, label in ((start, "start"), (stop, "stop")):
        if value.ndim:
            raise ValueError(f"{label} must be a scalar, got shape {list(value.shape)}")
    count = scalar(num, "num")
    if count < 1:
        raise ValueError(f"num must be >= 1, got {count}")
    if count == 1:
        return start.reshape((1,))
    check_size((count,))
    first, last = start.astype(np.float64), stop.astype(np.float64)
    shares = xp.arange(count, dtype=np.float64) / (count - 1)
    return (first * (1.0 - shares) + last * shares).astype(start.dtype)
