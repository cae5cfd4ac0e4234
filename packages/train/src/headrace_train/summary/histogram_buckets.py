"""Histograms: how many numbers fall between limits that grow by a tenth.

References:
    The limits are those of TensorFlow 1.15: 0, and 1e-12 times the powers of 1.1, of either sign.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError

_Array = np.ndarray[Any, np.dtype[Any]]

_SMALLEST = 1e-12
_LARGEST = 1e20
_GROWTH = 1.1


@functools.cache
def limits() -> _Array:
    """Return the upper ends of all buckets, the last of which is the largest float64."""
    positive = []
    value = _SMALLEST
    while value < _LARGEST:
        positive.append(value)
        value *= _GROWTH
    positive.append(np.finfo(np.float64).max)
    upper = np.array(positive)
    return np.concatenate([-upper[::-1], [0.0], upper])


def fill(proto: Any, values: _Array, what: str) -> None:
    """Fill in a ``HistogramProto``.

    Runs of empty buckets count as one, so that what is written has the size of what was found.

    Args:
        proto: The message, empty.
        values: Real numbers.
        what: What messages call the histogram.

    Raises:
        InvalidArgumentError: if a value is not finite.
    """
    numbers = np.asarray(values).astype(np.float64).ravel()
    check_finite(numbers, what)
    ends = limits()
    # Bucket i holds what lies in [ends[i - 1], ends[i]).
    places = np.searchsorted(ends, numbers, side="right")
    counts = np.bincount(np.minimum(places, ends.size - 1), minlength=ends.size)
    proto.min = numbers.min() if numbers.size else ends[-1]
    proto.max = numbers.max() if numbers.size else ends[0]
    proto.num = numbers.size
    if numbers.size:
        # In order, unlike NumPy's sums: the last bits are those of a loop.
        proto.sum = np.add.accumulate(numbers)[-1]
        proto.sum_squares = np.add.accumulate(numbers * numbers)[-1]
    filled = counts > 0
    # The last of each run of empty buckets stands for the run.
    kept = filled | np.append(filled[1:], True)
    proto.bucket_limit.extend(ends[kept].tolist())
    proto.bucket.extend(counts[kept].astype(np.float64).tolist())


def check_finite(numbers: _Array, what: str) -> None:
    """Refuse numbers of which one is NaN or infinite.

    Raises:
        InvalidArgumentError: with the first of them, and where it is.
    """
    finite = np.isfinite(numbers)
    if finite.all():
        return
    at = int(np.argmin(finite))
    kind = "Nan" if np.isnan(numbers[at]) else "Infinity"
    count = int(np.count_nonzero(~finite))
    raise InvalidArgumentError(
        f"{kind} in summary histogram for: {what}; {count} of {numbers.size} values are not "
        f"finite, the first is {numbers[at]} at index {at} of the flattened values. "
        "hr.Config(check_numerics=True) finds the operation that made it"
    )
