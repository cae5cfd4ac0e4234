"""Kernels that make arrays of plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, dimensions, scalar

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
def numbers(xp: Any, start: Array, limit: Array, delta: Array) -> Array:
    """Return evenly spaced numbers."""
    first, last = scalar(start, "start"), scalar(limit, "limit")
    step = scalar(delta, "delta")
    if step == 0:
        raise ValueError("delta must not be 0")
    if start.dtype.kind in "iu":
        count = len(range(first, last, step))
        # In the dtype itself, where a multiple that overflows comes out right all the same.
        return start + delta * xp.arange(count).astype(start.dtype)
    span = float(last) - float(first)
    if not math.isfinite(span) or not math.isfinite(step):
        raise ValueError(f"a range must be finite, got {first} to {last} by {step}")
    count = max(0, math.ceil(span / float(step)))
    return (float(first) + float(step) * xp.arange(count)).astype(start.dtype)


@KERNELS.plain("OneHot")
def one_hot(
    xp: Any, indices: Array, on_value: Array, off_value: Array, *, depth: int, axis: int
) -> Array:
    """Return vectors that differ from ``off_value`` at an index."""
    rank = indices.ndim + 1
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    for value, label in ((on_value, "on_value"), (off_value, "off_value")):
        if value.ndim:
            raise ValueError(f"{label} must be a scalar, got shape {list(value.shape)}")
    at = axis % rank
    classes = xp.arange(depth).reshape((depth,) + (1,) * (rank - 1 - at))
    # Unsigned indices beyond int64 become negative, and so stay outside.
    chosen = xp.expand_dims(indices.astype(np.int64), at) == classes
    return xp.where(chosen, on_value, off_value)
