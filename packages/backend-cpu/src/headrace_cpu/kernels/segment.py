"""Kernels that fold rows by segment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace import as_dtype
from headrace.extend import KernelTable
from headrace.extend.kernels import check_sorted_ids
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    check_indices,
    check_rank,
    narrowed,
    scalar,
    widened,
)

KERNELS = KernelTable()

# A result of more elements is a mistake, and would only fill the memory.
_MOST_ELEMENTS = 1 << 29


@KERNELS.plain("SegmentCount")
def segment_count(xp: Any, segment_ids: Array, num_segments: Array | None = None) -> Array:
    """Return the last of sorted ids plus 1, or what it was said to be."""
    check_rank(segment_ids, 1, "segment_ids")
    check_sorted_ids(segment_ids)
    last = int(segment_ids[-1]) if segment_ids.size else -1
    count = last + 1 if num_segments is None else int(scalar(num_segments, "num_segments"))
    if not last < count <= np.iinfo(segment_ids.dtype).max:
        raise ValueError(f"num_segments is {count}, the last of segment_ids {last}")
    return xp.full((), count, segment_ids.dtype)


@KERNELS.plain("UnsortedSegmentSum")
def unsorted_segment_sum(xp: Any, data: Array, segment_ids: Array, num_segments: Array) -> Array:
    """Add up the rows with the same id; rows with negative ids are dropped."""
    ids, rows, shape = _flat(data, segment_ids, num_segments)
    total = xp.zeros((shape[0], rows.shape[1]), rows.dtype)
    add_rows(xp, total, ids, rows)
    return narrowed(total.reshape(shape), data.dtype)


@KERNELS.plain("UnsortedSegmentProd")
def unsorted_segment_prod(xp: Any, data: Array, segment_ids: Array, num_segments: Array) -> Array:
    """Multiply the rows with the same id."""
    return _folded(xp, xp.multiply, data, segment_ids, num_segments, 1)


@KERNELS.plain("UnsortedSegmentMax")
def unsorted_segment_max(xp: Any, data: Array, segment_ids: Array, num_segments: Array) -> Array:
    """Take the largest of the rows with the same id."""
    return _folded(xp, xp.maximum, data, segment_ids, num_segments, as_dtype(data.dtype).min)


@KERNELS.plain("UnsortedSegmentMin")
def unsorted_segment_min(xp: Any, data: Array, segment_ids: Array, num_segments: Array) -> Array:
    """Take the smallest of the rows with the same id."""
    return _folded(xp, xp.minimum, data, segment_ids, num_segments, as_dtype(data.dtype).max)


def _flat(
    data: Array, segment_ids: Array, num_segments: Array
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return ids as a vector, a matrix of their rows, and the shape of the result."""
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
    if count * max(math.prod(row_shape), 1) > _MOST_ELEMENTS:
        raise ValueError(f"{count} segments of shape {list(row_shape)} are too many")
    ids = segment_ids.reshape(-1)
    rows = widened(data).reshape((ids.size, math.prod(row_shape)))
    if ids.size and int(ids.min()) < 0:
        kept = ids >= 0
        ids, rows = ids[kept], rows[kept]
    check_indices(ids, count, f"{count} segments")
    return ids, rows, (count, *row_shape)


def _folded(
    xp: Any, fold: Any, data: Array, segment_ids: Array, num_segments: Array, start: Any
) -> Array:
    """Fold the rows with the same id by a ufunc; ``start`` where there are none."""
    ids, rows, shape = _flat(data, segment_ids, num_segments)
    result = xp.full((shape[0], rows.shape[1]), data.dtype.type(start), data.dtype)
    if ids.size and rows.shape[1]:
        order = ids.argsort(kind="stable")
        ids, rows = ids[order], rows[order]
        last = xp.concatenate((ids[1:] != ids[:-1], xp.ones((1,), bool)))
        if xp is np:
            starts = np.flatnonzero(np.concatenate((last[-1:], last[:-1])))
            result[ids[last]] = narrowed(fold.reduceat(rows, starts, axis=0), data.dtype)
        else:
            result[ids[last]] = narrowed(_scanned(xp, fold, ids, rows)[last], data.dtype)
    return result.reshape(shape)


def _scanned(xp: Any, fold: Any, ids: Array, rows: Array) -> Array:
    """Fold each row of sorted ids with those of its id before it, by doubling strides.

    Hillis and Steele, Data parallel algorithms, Communications of the ACM 29 (1986).
    """
    reach = 1
    while reach < ids.size:
        same = ids[reach:] == ids[:-reach]
        if not bool(same.any()):
            break
        behind = xp.where(same[:, None], fold(rows[:-reach], rows[reach:]), rows[reach:])
        rows = xp.concatenate((rows[:reach], behind))
        reach *= 2
    return rows
