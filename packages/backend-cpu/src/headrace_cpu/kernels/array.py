"""Kernels of shapes, and of the same elements in another arrangement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    axis_index,
    check_rank,
    check_size,
    dimensions,
    extents,
    integers,
)

KERNELS = KernelTable()


@KERNELS.plain("Shape")
def shape(xp: Any, x: Array, *, out_type: DType) -> Array:
    """Return the dimensions as a vector."""
    return xp.asarray(x.shape, out_type.numpy)


@KERNELS.plain("Size")
def size(xp: Any, x: Array, *, out_type: DType) -> Array:
    """Return the number of elements."""
    return xp.asarray(x.size, out_type.numpy)


@KERNELS.plain("Rank")
def rank(xp: Any, x: Array) -> Array:
    """Return the number of dimensions."""
    return xp.asarray(x.ndim, np.int32)


@KERNELS.plain("Reshape")
def reshape(xp: Any, x: Array, shape: Array) -> Array:
    """Give the elements another shape."""
    wanted = integers(shape)
    known = [d for d in wanted if d != -1]
    free = len(wanted) - len(known)
    if free > 1 or any(d < 0 for d in known):
        raise ValueError(f"shape may hold dimensions >= 0 and one -1, got {list(wanted)}")
    count = math.prod(known)
    if free and not count and not x.size:
        # Of arrays without elements, the other sizes tell what is left.
        rest = math.prod(d for d in x.shape if d) // math.prod(d for d in known if d)
        return x.reshape([rest if d == -1 else d for d in wanted])
    fits = (count and x.size % count == 0) if free else count == x.size
    if not fits:
        raise ValueError(
            f"{x.size} elements of shape {list(x.shape)} do not fit shape {list(wanted)}"
        )
    check_size([d for d in wanted if d >= 0])
    return x.reshape(wanted)


@KERNELS.plain("Transpose")
def transpose(xp: Any, x: Array, *, perm: Sequence[int] | None) -> Array:
    """Put the axes in another order."""
    if perm is not None:
        check_rank(x, len(perm), f"what is transposed by {list(perm)}")
    return x.transpose(perm)


@KERNELS.plain("TransposeBy")
def transpose_by(xp: Any, x: Array, perm: Array) -> Array:
    """Put the axes in an order that was computed."""
    order = integers(perm)
    axes = [p + len(order) if p < 0 else p for p in order]
    if sorted(axes) != list(range(x.ndim)):
        raise ValueError(f"perm {list(order)} is no permutation of 0 to {x.ndim - 1}")
    return x.transpose(axes)


@KERNELS.plain("ExpandDims")
def expand_dims(xp: Any, x: Array, *, axis: int) -> Array:
    """Insert an axis of size 1."""
    at = axis_index(axis, x.ndim + 1)
    return x.reshape((*x.shape[:at], 1, *x.shape[at:]))


@KERNELS.plain("Squeeze")
def squeeze(xp: Any, x: Array, *, axis: int | Sequence[int] | None) -> Array:
    """Drop axes of size 1."""
    if axis is None or axis == ():
        return x.reshape(tuple(d for d in x.shape if d != 1))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = {axis_index(a, x.ndim) for a in given}
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"axis {a} of shape {list(x.shape)} has size {x.shape[a]}, expected 1")
    return x.reshape(tuple(d for i, d in enumerate(x.shape) if i not in axes))


@KERNELS.plain("BroadcastTo")
def broadcast_to(xp: Any, x: Array, shape: Array) -> Array:
    """Repeat along axes of size 1 and new leading ones."""
    dims = dimensions(shape)
    if dims == x.shape:
        return x
    fits = all(old in (1, new) for old, new in zip(x.shape[::-1], dims[::-1], strict=False))
    if x.ndim > len(dims) or not fits:
        raise ValueError(f"shape {list(x.shape)} does not broadcast to {list(dims)}")
    return xp.broadcast_to(x, dims)


@KERNELS.plain("BroadcastShape")
def broadcast_shape(xp: Any, left: Array, right: Array) -> Array:
    """Return the shape to which two shapes broadcast."""
    wide = np.int64 if np.int64 in (left.dtype, right.dtype) else np.int32
    first, second = extents(left), extents(right)
    rank = max(len(first), len(second))
    dims = []
    for a, b in zip(
        (1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True
    ):
        if a != b and 1 not in (a, b):
            raise ValueError(f"shapes {list(first)} and {list(second)} do not broadcast")
        dims.append(b if a == 1 else a)
    return xp.asarray(dims, wide)
