"""Kernels of shapes, joining and splitting, gathering and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.extend import DType, KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    axis_index,
    check_indices,
    check_rank,
    dimensions,
    integers,
)

KERNELS = KernelTable()


@KERNELS.plain("Identity")
def identity(xp: Any, x: Array) -> Array:
    """Return the array itself."""
    return x


@KERNELS.plain("IdentityN")
def identity_n(xp: Any, values: list[Array]) -> list[Array]:
    """Return the arrays themselves."""
    return values


@KERNELS.plain("StopGradient")
def stop_gradient(xp: Any, x: Array) -> Array:
    """Return the array itself."""
    return x


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
    fits = (count and x.size % count == 0) if free else count == x.size
    if not fits:
        raise ValueError(
            f"{x.size} elements of shape {list(x.shape)} do not fit shape {list(wanted)}"
        )
    return x.reshape(wanted)


@KERNELS.plain("Transpose")
def transpose(xp: Any, x: Array, *, perm: Sequence[int] | None) -> Array:
    """Put the axes in another order."""
    if perm is not None:
        check_rank(x, len(perm), f"what is transposed by {list(perm)}")
    return x.transpose(perm)


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


@KERNELS.plain("Concat")
def concat(xp: Any, values: list[Array], *, axis: int) -> Array:
    """Join along an axis."""
    return xp.concatenate(values, axis)


@KERNELS.plain("Stack")
def stack(xp: Any, values: list[Array], *, axis: int) -> Array:
    """Join along a new axis."""
    return xp.stack(values, axis)


@KERNELS.plain("Unstack")
def unstack(xp: Any, x: Array, *, num: int, axis: int) -> list[Array]:
    """Return the slices along an axis."""
    at = axis_index(axis, x.ndim)
    if x.shape[at] != num:
        raise ValueError(
            f"axis {at} of shape {list(x.shape)} has size {x.shape[at]}, expected {num}"
        )
    lead = (slice(None),) * at
    return [x[(*lead, i, ...)] for i in range(num)]


@KERNELS.plain("Split")
def split(xp: Any, x: Array, *, sizes: Sequence[int], axis: int) -> list[Array]:
    """Return consecutive parts along an axis."""
    at = axis_index(axis, x.ndim)
    if x.shape[at] != sum(sizes):
        raise ValueError(
            f"sizes {list(sizes)} add up to {sum(sizes)}, axis {at} of shape {list(x.shape)} has "
            f"size {x.shape[at]}"
        )
    parts, start = [], 0
    for length in sizes:
        parts.append(x[(slice(None),) * at + (slice(start, start + length),)])
        start += length
    return parts


@KERNELS.plain("Gather")
def gather(xp: Any, params: Array, indices: Array, *, axis: int) -> Array:
    """Pick slices along an axis."""
    at = axis_index(axis, params.ndim)
    check_indices(indices, params.shape[at], f"axis {at} of shape {list(params.shape)}")
    if indices.ndim and indices.size and params.size:
        return xp.take(params, indices, axis=at)
    # Unlike `take`, this yields an array where one element is picked, and takes empty arrays.
    return params[(slice(None),) * at + (indices, ...)]


@KERNELS.plain("BroadcastTo")
def broadcast_to(xp: Any, x: Array, shape: Array) -> Array:
    """Repeat along axes of size 1 and new leading ones."""
    dims = dimensions(shape)
    return x if dims == x.shape else xp.broadcast_to(x, dims)


@KERNELS.plain("Tile")
def tile(xp: Any, x: Array, *, multiples: Sequence[int]) -> Array:
    """Repeat along all axes."""
    check_rank(x, len(multiples), f"what is tiled by {list(multiples)}")
    return xp.tile(x, tuple(multiples))


@KERNELS.plain("Pad")
def pad(
    xp: Any,
    x: Array,
    *,
    paddings: Sequence[Sequence[int]],
    mode: str,
    constant_values: float,
) -> Array:
    """Put a border of one value around an array."""
    check_rank(x, len(paddings), f"what is padded by {[list(p) for p in paddings]}")
    border = np.asarray(constant_values).astype(x.dtype)
    if x.dtype.kind in "iu" and border != constant_values:
        raise ValueError(f"constant_values must be a value of {x.dtype}, got {constant_values}")
    dims = tuple(d + before + after for d, (before, after) in zip(x.shape, paddings, strict=True))
    padded = xp.full(dims, border[()], x.dtype)
    inner = tuple(
        slice(before, before + d) for d, (before, _) in zip(x.shape, paddings, strict=True)
    )
    padded[inner] = x
    return padded
