"""Kernels of joining and splitting, and of repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    axis_index,
    check_shape,
    check_size,
    dimensions,
    integers,
    narrowed,
    widened,
)

KERNELS = KernelTable()


@KERNELS.plain("Concat")
def concat(xp: Any, values: list[Array], *, axis: int) -> Array:
    """Join along an axis."""
    first = values[0].shape
    at = axis_index(axis, len(first))
    for value in values[1:]:
        other = value.shape
        same = other[:at] == first[:at] and other[at + 1 :] == first[at + 1 :]
        if len(other) != len(first) or not same:
            raise ValueError(
                f"values must have one shape but along axis {at}, got {list(first)} and "
                f"{list(value.shape)}"
            )
    return xp.concatenate(values, axis)


@KERNELS.plain("Stack")
def stack(xp: Any, values: list[Array], *, axis: int) -> Array:
    """Join along a new axis."""
    for value in values[1:]:
        if value.shape != values[0].shape:
            raise ValueError(
                f"values must have one shape, got {list(values[0].shape)} and {list(value.shape)}"
            )
    return xp.stack(values, axis_index(axis, values[0].ndim + 1))


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


@KERNELS.plain("SplitBy")
def split_by(xp: Any, x: Array, sizes: Array, *, num: int, axis: int) -> list[Array]:
    """Return consecutive parts of computed sizes along an axis."""
    at = axis_index(axis, x.ndim)
    given = list(integers(sizes))
    rest = x.shape[at] - sum(s for s in given if s != -1)
    whole = rest >= 0 if -1 in given else rest == 0
    if len(given) != num or given.count(-1) > 1 or any(s < -1 for s in given) or not whole:
        raise ValueError(
            f"sizes {given} do not divide axis {at} of shape {list(x.shape)} into {num} parts"
        )
    return split(xp, x, sizes=[rest if s == -1 else s for s in given], axis=at)


def _times(multiples: Array, rank: int) -> tuple[int, ...]:
    times = integers(multiples)
    if len(times) != rank or any(m < 0 for m in times):
        raise ValueError(f"multiples must be {rank} integers >= 0, got {list(times)}")
    return times


@KERNELS.plain("Tile")
def tile(xp: Any, x: Array, multiples: Array) -> Array:
    """Repeat along all axes."""
    times = _times(multiples, x.ndim)
    dims = [d for pair in zip(times, x.shape, strict=True) for d in pair]
    spread = x.reshape([d for size in x.shape for d in (1, size)])
    whole = tuple(m * d for m, d in zip(times, x.shape, strict=True))
    check_size(whole)
    return xp.broadcast_to(spread, dims).reshape(whole)


@KERNELS.plain("TileGrad")
def tile_grad(xp: Any, dy: Array, multiples: Array, shape: Array) -> Array:
    """Add up the copies."""
    dims = dimensions(shape)
    times = _times(multiples, len(dims))
    check_shape(dy, [m * d for m, d in zip(times, dims, strict=True)], "dy")
    pairs = [d for pair in zip(times, dims, strict=True) for d in pair]
    if not dims:
        return dy
    return narrowed(widened(dy.reshape(pairs)).sum(tuple(range(0, 2 * len(dims), 2))), dy.dtype)
