"""Kernels that sort and search."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_rank, check_shape, scalar, widened

KERNELS = KernelTable()

# Of rows as long as this, few elements are found by partition.
_LONG = 64


@KERNELS.plain("Sort")
def sort(xp: Any, values: Array, *, descending: bool) -> tuple[Array, Array]:
    """Sort the rows, stably, NaN as the largest."""
    _check_columns(values)
    order = _order(xp, values, descending)
    return xp.take_along_axis(values, order, -1), order.astype(np.int32)


@KERNELS.plain("TopK")
def top_k(xp: Any, x: Array, k: Array, *, sorted: bool) -> tuple[Array, Array]:
    """Take the first of the rows in descending order."""
    _check_columns(x)
    count = int(scalar(k, "k"))
    if not 0 <= count <= x.shape[-1]:
        raise ValueError(f"k must be in [0, {x.shape[-1]}], the number of columns, got {count}")
    if count == 1 and xp is np:
        # NumPy's search finds NaN first, and the first of equals.
        order = np.expand_dims(np.asarray(widened(x).argmax(-1)), -1)
    elif xp is np and x.shape[-1] >= _LONG and x.shape[-1] >= 4 * count > 0:
        order = _top_of_long(widened(x), count)
    else:
        order = _order(xp, x, descending=True)[..., :count]
    return xp.take_along_axis(x, order, -1), order.astype(np.int32)


def _top_of_long(x: Array, count: int) -> Array:
    """Find the smallest that is taken by partition, and sort only what is taken."""
    length = x.shape[-1]
    least = np.partition(x, length - count, -1)[..., length - count, None]
    larger, equal = x > least, x == least
    if x.dtype.kind not in "iu":
        nan, least_nan = np.isnan(x), np.isnan(least)
        larger, equal = larger | (nan & ~least_nan), equal | (nan & least_nan)
    # Of those equal to the smallest, the first ones.
    wanted = count - larger.sum(-1, keepdims=True)
    taken = larger | (equal & (equal.cumsum(-1) <= wanted))
    places = np.nonzero(taken)[-1].reshape(*x.shape[:-1], count)
    order = _order(np, np.take_along_axis(x, places, -1), descending=True)
    return np.take_along_axis(places, order, -1)


def _check_columns(x: Array) -> None:
    if not x.ndim:
        raise ValueError("expected at least 1 dimension, got a scalar")


def _order(xp: Any, values: Array, descending: bool) -> Array:
    """Return the indices that sort the rows."""
    wide = widened(values)
    if not descending:
        return wide.argsort(-1, kind="stable")
    # Read from the end, the order of the rows read from the end is the descending one.
    last = wide.shape[-1] - 1
    return last - wide[..., ::-1].argsort(-1, kind="stable")[..., ::-1]


@KERNELS.plain("InTopK")
def in_top_k(xp: Any, predictions: Array, targets: Array, k: Array) -> Array:
    """Count the larger predictions of each row."""
    check_rank(predictions, 2, "predictions")
    check_shape(targets, predictions.shape[:1], "targets")
    rows, classes = predictions.shape
    if not classes:
        return xp.zeros((rows,), bool)
    known = (targets >= 0) & (targets < classes)
    at = xp.where(known, targets, 0)
    target = xp.take_along_axis(predictions, at[:, None], 1)
    larger = (predictions > target).sum(1)
    return known & xp.isfinite(predictions).all(1) & (larger < int(scalar(k, "k")))


@KERNELS.plain("SearchSorted")
def search_sorted(
    xp: Any, sorted_sequence: Array, values: Array, *, side: str, out_type: DType
) -> Array:
    """Bisect all rows at once."""
    _check_columns(sorted_sequence)
    _check_columns(values)
    check_shape(values, (*sorted_sequence.shape[:-1], values.shape[-1]), "values")
    length = sorted_sequence.shape[-1]
    low = xp.zeros(values.shape, np.int64)
    if not length or not values.size:
        return low.astype(out_type.numpy)
    high = xp.full(values.shape, length, np.int64)
    for _ in range(length.bit_length()):
        middle = (low + high) // 2
        found = xp.take_along_axis(sorted_sequence, xp.minimum(middle, length - 1), -1)
        behind = found < values if side == "left" else ~(values < found)
        behind &= middle < high
        low = xp.where(behind, middle + 1, low)
        high = xp.where(behind, high, middle)
    return low.astype(out_type.numpy)
