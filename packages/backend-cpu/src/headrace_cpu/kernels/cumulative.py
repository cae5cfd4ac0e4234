"""Kernels of cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, axis_index, check_shape, narrowed, widened

KERNELS = KernelTable()

# A vector longer than this is scanned by doubling strides rather than element by element.
LONG_RECURRENCE = 512


@KERNELS.plain("Cumsum")
def cumsum(xp: Any, x: Array, *, axis: int, exclusive: bool, reverse: bool) -> Array:
    """Add up along the axis; 16-bit floats in float32."""
    return _cumulative(xp, "cumsum", 0, x, axis, exclusive, reverse)


@KERNELS.plain("Cumprod")
def cumprod(xp: Any, x: Array, *, axis: int, exclusive: bool, reverse: bool) -> Array:
    """Multiply up along the axis; 16-bit floats in float32."""
    return _cumulative(xp, "cumprod", 1, x, axis, exclusive, reverse)


def _cumulative(
    xp: Any, fold: str, start: int, x: Array, axis: int, exclusive: bool, reverse: bool
) -> Array:
    at = axis_index(axis, x.ndim)
    if not x.size:
        return x
    wide = widened(x)
    flipped = _flipped(wide, at, reverse)
    if exclusive:
        length = x.shape[at]
        result = xp.empty(x.shape, wide.dtype)
        target = _flipped(result, at, reverse)
        target[_part(at, slice(0, 1))] = start
        folded = getattr(flipped[_part(at, slice(0, length - 1))], fold)(at, dtype=wide.dtype)
        target[_part(at, slice(1, length))] = folded
    else:
        result = _flipped(getattr(flipped, fold)(at, dtype=wide.dtype), at, reverse)
    return narrowed(result, x.dtype)


@KERNELS.plain("CumulativeLogsumexp")
def cumulative_logsumexp(xp: Any, x: Array, *, axis: int, reverse: bool) -> Array:
    """Add up along the axis in logarithms; 16-bit floats in float32."""
    at = axis_index(axis, x.ndim)
    if not x.size:
        return x
    flipped = _flipped(xp.moveaxis(widened(x), at, 0), 0, reverse)
    if xp is np:
        result = np.logaddexp.accumulate(flipped, 0)
    else:
        result = flipped
        reach = 1
        while reach < result.shape[0]:
            ahead = xp.logaddexp(result[:-reach], result[reach:])
            result = xp.concatenate((result[:reach], ahead))
            reach *= 2
    return narrowed(xp.moveaxis(_flipped(result, 0, reverse), 0, at), x.dtype)


@KERNELS.plain("LinearRecurrence")
def linear_recurrence(xp: Any, a: Array, b: Array, *, axis: int, reverse: bool) -> Array:
    """Scan along the axis; 16-bit floats in float32."""
    check_shape(b, a.shape, "b")
    at = axis_index(axis, a.ndim)
    if not a.size:
        return b
    factors = _flipped(xp.moveaxis(widened(a), at, 0), 0, reverse)
    terms = _flipped(xp.moveaxis(widened(b), at, 0), 0, reverse)
    length = a.shape[at]
    if xp is np and (length <= LONG_RECURRENCE or a.size // length >= LONG_RECURRENCE):
        scanned = np.empty(terms.shape, terms.dtype)
        scanned[0] = terms[0]
        for i in range(1, length):
            scanned[i] = factors[i] * scanned[i - 1] + terms[i]
    else:
        scanned = _doubled(xp, factors, terms)
    return narrowed(xp.moveaxis(_flipped(scanned, 0, reverse), 0, at), a.dtype)


def _doubled(xp: Any, factors: Array, terms: Array) -> Array:
    """Compose the steps with those before them, by doubling strides.

    Hillis and Steele, Data parallel algorithms, Communications of the ACM 29 (1986).
    """
    reach = 1
    while reach < terms.shape[0]:
        ahead = terms[reach:] + factors[reach:] * terms[:-reach]
        terms = xp.concatenate((terms[:reach], ahead))
        factors = xp.concatenate((factors[:reach], factors[reach:] * factors[:-reach]))
        reach *= 2
    return terms


def _flipped(x: Array, axis: int, reverse: bool) -> Array:
    return x[_part(axis, slice(None, None, -1))] if reverse else x


def _part(axis: int, part: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (part,)
