"""Kernels of picking parts of arrays by indices, and of putting them back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu import rows as native_rows
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    axis_index,
    check_indices,
    check_shape,
    check_size,
    dimensions,
    narrowed,
    widened,
)

KERNELS = KernelTable()


@KERNELS.plain("Gather")
def gather(xp: Any, params: Array, indices: Array, *, axis: int, batch_dims: int) -> Array:
    """Pick slices along an axis."""
    at = axis_index(axis, params.ndim)
    check_indices(indices, params.shape[at], f"axis {at} of shape {list(params.shape)}")
    if batch_dims:
        return _gather_batch(xp, params, indices, at, batch_dims)
    if indices.ndim and indices.size and params.size:
        if xp is np and not at and params.flags.c_contiguous:
            picked = native_rows.pick(params.reshape((params.shape[0], -1)), indices.reshape(-1))
            if picked is not None:
                return picked.reshape((*indices.shape, *params.shape[1:]))
        return xp.take(params, indices, axis=at)
    # Unlike `take`, this yields an array where one element is picked, and takes empty arrays.
    return params[(slice(None),) * at + (indices, ...)]


def _gather_batch(xp: Any, params: Array, indices: Array, axis: int, shared: int) -> Array:
    """Pick from each element of the shared leading axes with the indices of that element."""
    lead = tuple(params.shape[:shared])
    if indices.ndim < shared or axis < shared or tuple(indices.shape[:shared]) != lead:
        raise ValueError(
            f"indices of shape {list(indices.shape)} must share the first {shared} axes of shape "
            f"{list(params.shape)}, before axis {axis}"
        )
    between = tuple(params.shape[shared:axis])
    after = tuple(params.shape[axis + 1 :])
    rest = tuple(indices.shape[shared:])
    batches, rows = math.prod(lead), math.prod(between)
    blocks = params.reshape((batches, rows, params.shape[axis], *after))
    batch = xp.arange(batches).reshape((batches, 1, 1))
    row = xp.arange(rows).reshape((1, rows, 1))
    picked = blocks[batch, row, indices.reshape((batches, 1, math.prod(rest)))]
    return picked.reshape((*lead, *between, *rest, *after))


def _flat_rows(xp: Any, indices: Array, dims: tuple[int, ...]) -> tuple[Array, int]:
    """Return tuples of indices as row numbers of a matrix of slices, and the slices' size.

    Raises:
        ValueError: if the tuples are longer than there are axes.
        IndexError: if one is out of range.
    """
    if not indices.ndim:
        raise ValueError("indices must have one axis at least: that of the tuples")
    depth = indices.shape[-1]
    if depth > len(dims):
        raise ValueError(f"tuples of {depth} indices for shape {list(dims)}")
    rows = xp.zeros(indices.shape[:-1], np.int64)
    for axis in range(depth):
        part = indices[..., axis]
        check_indices(part, dims[axis], f"axis {axis} of shape {list(dims)}")
        rows = rows * dims[axis] + part.astype(np.int64)
    return rows.reshape(-1), math.prod(dims[depth:])


@KERNELS.plain("GatherNd")
def gather_nd(xp: Any, params: Array, indices: Array) -> Array:
    """Pick slices by tuples of indices."""
    dims = tuple(params.shape)
    rows, width = _flat_rows(xp, indices, dims)
    depth = indices.shape[-1]
    shape = (*indices.shape[:-1], *dims[depth:])
    if not rows.size or not width:
        return xp.empty(shape, params.dtype)
    matrix = params.reshape((math.prod(dims[:depth]), width))
    return xp.take(matrix, rows, axis=0).reshape(shape)


def _check_updates(indices: Array, updates: Array, dims: tuple[int, ...]) -> None:
    depth = indices.shape[-1] if indices.ndim else 0
    check_shape(updates, (*indices.shape[:-1], *dims[depth:]), "updates")


@KERNELS.plain("ScatterNd")
def scatter_nd(xp: Any, indices: Array, updates: Array, shape: Array) -> Array:
    """Add slices to zeros."""
    dims = dimensions(shape)
    rows, width = _flat_rows(xp, indices, dims)
    _check_updates(indices, updates, dims)
    count = math.prod(dims[: indices.shape[-1]])
    if updates.dtype == object:
        return _join_strings(rows, updates.reshape((rows.size, width)), count).reshape(dims)
    values = widened(updates.reshape((rows.size, width)))
    if updates.dtype == np.bool_:
        values = values.astype(np.int32)
    total = xp.zeros((count, width), values.dtype)
    add_rows(xp, total, rows, values)
    if updates.dtype == np.bool_:
        return (total != 0).reshape(dims)
    return narrowed(total, updates.dtype).reshape(dims)


def _join_strings(rows: Array, values: Array, count: int) -> Array:
    total = np.full((count, values.shape[1]), b"", object)
    for row, value in zip(rows, values, strict=True):
        total[row] = total[row] + value
    return total


@KERNELS.plain("TensorScatter")
def tensor_scatter(xp: Any, x: Array, indices: Array, updates: Array, *, mode: str) -> Array:
    """Replace, add or subtract slices."""
    dims = tuple(x.shape)
    rows, width = _flat_rows(xp, indices, dims)
    _check_updates(indices, updates, dims)
    count = math.prod(dims[: indices.shape[-1]])
    values = updates.reshape((rows.size, width))
    if mode == "update":
        result = x.reshape((count, width)).copy()
        chosen = last_of_each(xp, rows, count)
        if chosen is None:
            result[rows] = values
        else:
            result[rows[chosen]] = values[chosen]
        return result.reshape(dims)
    total = xp.array(widened(x.reshape((count, width))), order="C")
    values = widened(values)
    add_rows(xp, total, rows, values if mode == "add" else -values)
    return narrowed(total, x.dtype).reshape(dims)


def last_of_each(xp: Any, rows: Array, count: int) -> Array | None:
    """Return which of equal rows come last; None where the array module sees to that itself.

    NumPy assigns in order, a GPU in any order.
    """
    if xp is np or not rows.size:
        return None
    places = xp.arange(rows.size, dtype=np.int32)
    last = xp.full((count,), -1, np.int32)
    xp.maximum.at(last, rows, places)
    return xp.nonzero(last[rows] == places)[0]


@KERNELS.plain("Where")
def where_indices(xp: Any, condition: Array) -> Array:
    """Return the indices of what holds."""
    if not condition.ndim:
        return xp.zeros((int(bool(condition)), 0), np.int64)
    return xp.stack(xp.nonzero(condition), 1).astype(np.int64)


@KERNELS.plain("DynamicPartition")
def dynamic_partition(
    xp: Any, data: Array, partitions: Array, *, num_partitions: int
) -> list[Array]:
    """Sort slices into parts."""
    lead = partitions.ndim
    check_shape(partitions, data.shape[:lead], "partitions")
    check_indices(partitions, num_partitions, f"{num_partitions} partitions")
    rest = tuple(data.shape[lead:])
    rows = data.reshape((partitions.size, *rest))
    numbers = partitions.reshape(-1)
    return [rows[numbers == i] for i in range(num_partitions)]


@KERNELS.plain("DynamicStitch")
def dynamic_stitch(xp: Any, indices: list[Array], data: list[Array]) -> Array:
    """Put slices together by index."""
    rest = None
    for at, part in zip(indices, data, strict=True):
        if tuple(part.shape[: at.ndim]) != tuple(at.shape):
            raise ValueError(
                f"indices {list(at.shape)} must be the leading axes of data {list(part.shape)}"
            )
        if rest is not None and tuple(part.shape[at.ndim :]) != rest:
            raise ValueError(
                f"data must have slices of one shape, got {list(rest)} and "
                f"{list(part.shape[at.ndim :])}"
            )
        rest = tuple(part.shape[at.ndim :])
    assert rest is not None
    flat = xp.concatenate([at.reshape(-1).astype(np.int64) for at in indices])
    rows = xp.concatenate(
        [part.reshape((at.size, *rest)) for at, part in zip(indices, data, strict=True)]
    )
    count = int(flat.max()) + 1 if flat.size else 0
    if flat.size and int(flat.min()) < 0:
        raise IndexError(f"indices must be >= 0, got {int(flat.min())}")
    check_size((count, *rest))
    result = xp.zeros((count, *rest), rows.dtype)
    if rows.dtype == object:
        result[...] = b""
    chosen = last_of_each(xp, flat, count)
    if chosen is None:
        result[flat] = rows
    else:
        result[flat[chosen]] = rows[chosen]
    return result
