"""Kernels of borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_size, narrowed, widened

KERNELS = KernelTable()


def _pairs(paddings: Array, rank: int) -> list[tuple[int, int]]:
    if tuple(paddings.shape) != (rank, 2):
        raise ValueError(
            f"paddings must have shape {[rank, 2]}, a pair for each axis, got "
            f"{list(paddings.shape)}"
        )
    pairs = [(before, after) for before, after in paddings.tolist()]
    if any(min(pair) < 0 for pair in pairs):
        raise ValueError(f"paddings must be >= 0, got {pairs}")
    return pairs


@KERNELS.plain("Pad")
def pad(xp: Any, x: Array, paddings: Array, filler: Array | None = None) -> Array:
    """Put a border of one value around an array."""
    pairs = _pairs(paddings, x.ndim)
    if filler is not None and filler.ndim:
        raise ValueError(f"constant_values must be a scalar, got shape {list(filler.shape)}")
    dims = tuple(d + sum(pair) for d, pair in zip(x.shape, pairs, strict=True))
    check_size(dims)
    padded = xp.empty(dims, x.dtype)
    if filler is not None:
        padded[...] = filler
    else:
        padded[...] = b"" if x.dtype == object else 0
    inner = (slice(pair[0], pair[0] + d) for d, pair in zip(x.shape, pairs, strict=True))
    # With an ellipsis also a scalar is copied by its element.
    padded[(*inner, ...)] = x
    return padded


def _mirrored(pairs: list[tuple[int, int]], dims: Sequence[int], mode: str) -> None:
    less = int(mode == "REFLECT")
    for axis, (dim, pair) in enumerate(zip(dims, pairs, strict=True)):
        if max(pair) > max(dim - less, 0):
            raise ValueError(
                f"{mode} paddings of axis {axis}, of size {dim}, must be at most "
                f"{max(dim - less, 0)}, got {list(pair)}"
            )


def _along(axis: int, begin: int, end: int, step: int = 1) -> tuple[Any, ...]:
    """Return the index of elements ``begin`` up to ``end`` of an axis, backwards if asked."""
    part = slice(begin, end)
    if step < 0:
        part = slice(end - 1, begin - 1 if begin else None, -1)
    return (*(slice(None),) * axis, part if begin < end else slice(0, 0))


@KERNELS.plain("MirrorPad")
def mirror_pad(xp: Any, x: Array, paddings: Array, *, mode: str) -> Array:
    """Put a border around an array that mirrors it."""
    pairs = _pairs(paddings, x.ndim)
    _mirrored(pairs, x.shape, mode)
    skip = int(mode == "REFLECT")
    for axis, (before, after) in enumerate(pairs):
        size = x.shape[axis]
        if before or after:
            first = x[_along(axis, skip, skip + before, -1)]
            last = x[_along(axis, size - skip - after, size - skip, -1)]
            x = xp.concatenate([first, x, last], axis)
    return x


@KERNELS.plain("MirrorPadGrad")
def mirror_pad_grad(xp: Any, dy: Array, paddings: Array, *, mode: str) -> Array:
    """Add the border to what it mirrors."""
    pairs = _pairs(paddings, dy.ndim)
    dims = [d - sum(pair) for d, pair in zip(dy.shape, pairs, strict=True)]
    if any(d < 0 for d in dims):
        raise ValueError(f"paddings {pairs} do not fit into shape {list(dy.shape)}")
    _mirrored(pairs, dims, mode)
    skip = int(mode == "REFLECT")
    total = widened(dy)
    for axis, (before, after) in enumerate(pairs):
        size = dims[axis]
        inner = total[_along(axis, before, before + size)].copy()
        inner[_along(axis, skip, skip + before)] += total[_along(axis, 0, before, -1)]
        beyond = before + size
        end = size - skip
        inner[_along(axis, end - after, end)] += total[_along(axis, beyond, beyond + after, -1)]
        total = inner
    return narrowed(total, dy.dtype)
