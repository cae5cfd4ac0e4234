"""Kernels that count."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    check_indices,
    check_rank,
    check_shape,
    scalar,
    widened,
)

KERNELS = KernelTable()

# More intervals are a mistake, and would only fill the memory.
_MOST_INTERVALS = 1 << 28
_MOST_NUMBERS = 1 << 29


@KERNELS.plain("BincountSize")
def bincount_size(xp: Any, arr: Array) -> Array:
    """Return the largest number plus 1."""
    if not arr.size:
        return xp.zeros((), arr.dtype)
    lowest, highest = int(arr.min()), int(arr.max())
    if lowest < 0:
        raise ValueError(f"arr must not be negative, got {lowest}")
    if highest == np.iinfo(arr.dtype).max:
        raise ValueError(f"arr holds {highest}: there is no number of its dtype beyond")
    return xp.full((), highest + 1, arr.dtype)


@KERNELS.plain("Bincount")
def bincount(xp: Any, arr: Array, minlength: Array, maxlength: Array, *, dtype: DType) -> Array:
    """Count each number."""
    least, most = int(scalar(minlength, "minlength")), int(scalar(maxlength, "maxlength"))
    if most < 0:
        raise ValueError(f"maxlength must be >= 0, got {most}")
    size = min(max(int(bincount_size(xp, arr)), least), most)
    if size > _MOST_NUMBERS:
        raise ValueError(f"{size} numbers are too many to be counted")
    if not size or not arr.size:
        return xp.zeros((size,), dtype.numpy)
    # What is too large is counted at the end, and left out.
    numbers = xp.minimum(arr.reshape(-1), size).astype(np.int64)
    return xp.bincount(numbers, minlength=size)[:size].astype(dtype.numpy)


@KERNELS.plain("HistogramFixedWidth")
def histogram(xp: Any, values: Array, value_range: Array, nbins: Array, *, dtype: DType) -> Array:
    """Count the values of each interval."""
    low, high, count = _intervals(xp, values, value_range, nbins)
    if not low < high:
        raise ValueError(f"value_range must ascend, got [{low}, {high}]")
    wide = values.astype(np.float64).reshape(-1)
    step = (high - low) / count
    places = xp.clip(xp.floor((xp.maximum(wide, low) - low) / step), 0, count - 1)
    return xp.bincount(places.astype(np.int64), minlength=count).astype(dtype.numpy)


@KERNELS.plain("HistogramFixedWidthBins")
def histogram_bins(
    xp: Any, values: Array, value_range: Array, nbins: Array, *, dtype: DType
) -> Array:
    """Return the interval of each value, in the dtype of floats, as TensorFlow does."""
    low, high, count = _intervals(xp, values, value_range, nbins)
    wide = widened(values) if values.dtype.kind not in "iu" else values.astype(np.float64)
    kind = wide.dtype.type
    scaled = (wide - kind(low)) / (kind(high) - kind(low))
    places = xp.clip(xp.floor(kind(count) * scaled), 0, count - 1)
    # Only 0 / 0 is NaN here: a value at both ends of a range without width.
    return xp.where(xp.isnan(places), 0, places).astype(dtype.numpy)


def _intervals(
    xp: Any, values: Array, value_range: Array, nbins: Array
) -> tuple[float, float, int]:
    check_shape(value_range, (2,), "value_range")
    count = int(scalar(nbins, "nbins"))
    if count < 1:
        raise ValueError(f"nbins must be > 0, got {count}")
    if count > _MOST_INTERVALS:
        raise ValueError(f"nbins must be <= {_MOST_INTERVALS}, got {count}")
    low, high = (float(end) for end in value_range.astype(np.float64).tolist())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"value_range must be finite, got [{low}, {high}]")
    if values.dtype.kind not in "iu" and bool(xp.isnan(values).any()):
        raise ValueError("values must not be NaN")
    return low, high, count


@KERNELS.plain("ConfusionCells")
def confusion_cells(xp: Any, labels: Array, predictions: Array, num_classes: Array) -> Array:
    """Count the cells row by row."""
    check_rank(labels, 1, "labels")
    check_shape(predictions, labels.shape, "predictions")
    count = int(scalar(num_classes, "num_classes"))
    if not 0 <= count < 2**31:
        raise ValueError(f"num_classes must be in [0, 2**31), got {count}")
    check_indices(labels, count, f"{count} classes, in labels")
    check_indices(predictions, count, f"{count} classes, in predictions")
    return labels.astype(np.int64) * count + predictions.astype(np.int64)
