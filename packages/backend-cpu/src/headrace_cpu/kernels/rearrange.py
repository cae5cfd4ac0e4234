"""Kernels of reversing, rolling, and counting in another way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    axis_index,
    check_indices,
    check_shape,
    extents,
    integers,
)

KERNELS = KernelTable()


@KERNELS.plain("Reverse")
def reverse(xp: Any, x: Array, axis: Array) -> Array:
    """Reverse along axes."""
    axes = [axis_index(a, x.ndim) for a in integers(axis)]
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis {axis.tolist()} names an axis twice")
    backwards = [slice(None, None, -1 if i in axes else 1) for i in range(x.ndim)]
    return x[(*backwards, ...)]


@KERNELS.plain("ReverseSequence")
def reverse_sequence(
    xp: Any, x: Array, seq_lengths: Array, *, seq_axis: int, batch_axis: int
) -> Array:
    """Reverse the beginning of each sequence."""
    seq, batch = axis_index(seq_axis, x.ndim), axis_index(batch_axis, x.ndim)
    if seq == batch:
        raise ValueError(f"seq_axis and batch_axis must differ, both are {seq}")
    check_shape(seq_lengths, (x.shape[batch],), "seq_lengths")
    size = x.shape[seq]
    check_indices(seq_lengths, size + 1, f"lengths of sequences of {size} elements")
    lengths = seq_lengths.astype(np.int64)[:, None]
    places = xp.arange(size)[None, :]
    order = xp.where(places < lengths, lengths - 1 - places, places)
    front = xp.moveaxis(x, (batch, seq), (0, 1))
    picked = front[xp.arange(x.shape[batch])[:, None], order]
    return xp.moveaxis(picked, (0, 1), (batch, seq))


@KERNELS.plain("Roll")
def roll(xp: Any, x: Array, shift: Array, axis: Array) -> Array:
    """Move along axes, and come in again at the other end."""
    if shift.ndim > 1 or tuple(shift.shape) != tuple(axis.shape):
        raise ValueError(
            f"shift and axis must be numbers or vectors of one length, got shapes "
            f"{list(shift.shape)} and {list(axis.shape)}"
        )
    if not x.ndim:
        raise ValueError("a scalar cannot be rolled")
    total = [0] * x.ndim
    for by, a in zip(shift.reshape(-1).tolist(), axis.reshape(-1).tolist(), strict=True):
        total[axis_index(a, x.ndim)] += by
    for at, by in enumerate(total):
        size = x.shape[at]
        first = -by % size if size else 0
        if first:
            lead = (slice(None),) * at
            x = xp.concatenate([x[(*lead, slice(first, None))], x[(*lead, slice(0, first))]], at)
    return x


@KERNELS.plain("InvertPermutation")
def invert_permutation(xp: Any, x: Array) -> Array:
    """Return where each number stands."""
    if x.ndim != 1:
        raise ValueError(f"x must be a vector, got shape {list(x.shape)}")
    check_indices(x, x.size, f"a permutation of {x.size}")
    places = xp.full((x.size,), -1, x.dtype)
    places[x] = xp.arange(x.size, dtype=x.dtype)
    if bool((places < 0).any()):
        raise ValueError("x is no permutation: a number occurs twice")
    return places


@KERNELS.plain("UnravelIndex")
def unravel_index(xp: Any, indices: Array, dims: Array) -> Array:
    """Return coordinates."""
    sizes = extents(dims)
    if indices.ndim > 1:
        raise ValueError(f"indices must be a number or a vector, got shape {list(indices.shape)}")
    check_indices(indices, math.prod(sizes), f"the elements of shape {list(sizes)}")
    result = xp.zeros((len(sizes), *indices.shape), indices.dtype)
    rest = indices.astype(np.int64)
    for i in range(len(sizes) - 1, -1, -1):
        if indices.size:
            result[i] = rest % sizes[i]
            rest = rest // sizes[i]
    return result
