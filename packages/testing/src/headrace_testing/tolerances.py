"""How close is close enough: one table by dtype, and the comparison that uses it."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType
from headrace_testing.inputs import NDArray

# Largest absolute and largest relative error of a result whose dtype this is, against an oracle
# in float64. Never scaled by the size of an array. Other dtypes are exact.
FORWARD: dict[str, float] = {
    "float64": 1e-11,
    "float32": 5e-6,
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "complex128": 1e-11,
    "complex64": 1e-5,
}

# Central differences in float64: the step, and the largest absolute and relative error. The
# truncation error is of the order of STEP ** 2, the rounding error of 1e-16 / STEP.
STEP = 1e-5
GRADIENT = 1e-7
SECOND_ORDER = 1e-6


def difference(got: Any, expected: Any, dtype: DType, tolerance: float | None) -> str:
    """Return what is wrong with ``got``, with the largest error; empty if it is close enough.

    Args:
        got: The array to judge.
        expected: What it should be, in any dtype wide enough.
        dtype: The dtype in which it was computed; the expectation is rounded to it.
        tolerance: In place of the table's.
    """
    mine, wanted = np.asarray(got), np.asarray(expected)
    if mine.shape != wanted.shape:
        return f"expected shape {list(wanted.shape)}, got {list(mine.shape)}"
    if dtype.kind == "string":
        wrong = np.array([a != b for a, b in zip(mine.flat, wanted.flat, strict=True)], bool)
        return _first_wrong(mine, wanted, wrong.reshape(mine.shape))
    with np.errstate(all="ignore"):
        wanted = wanted.astype(dtype.numpy)
    if not (dtype.is_floating or dtype.is_complex):
        return _first_wrong(mine, wanted, mine != wanted)
    wide = np.complex128 if dtype.is_complex else np.float64
    limit = FORWARD[dtype.name] if tolerance is None else tolerance
    return _apart(mine.astype(wide), wanted.astype(wide), limit)


def _apart(got: NDArray, expected: NDArray, limit: float) -> str:
    with np.errstate(all="ignore"):
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        error = np.where(same, 0.0, np.abs(got - expected))
        ratio = error / (limit + limit * np.abs(expected))
    # What is infinite or NaN on one side only is as wrong as can be.
    ratio = np.where(same, 0.0, np.where(np.isfinite(ratio), ratio, np.inf))
    if not ratio.size or ratio.max() <= 1.0:
        return ""
    at = np.unravel_index(int(ratio.argmax()), ratio.shape)
    return (
        f"{int((ratio > 1).sum())} of {ratio.size} elements are off; the worst is "
        f"{_place(at)}expected {expected[at]:.9g}, got {got[at]:.9g}, error {error[at]:.3g} "
        f"(tolerance {limit:g})"
    )


def _first_wrong(got: NDArray, expected: NDArray, wrong: NDArray) -> str:
    if not wrong.any():
        return ""
    at = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return (
        f"{int(wrong.sum())} of {wrong.size} elements are wrong; the first is "
        f"{_place(at)}expected {expected[at]!r}, got {got[at]!r}"
    )


def _place(at: tuple[Any, ...]) -> str:
    return f"at {[int(i) for i in at]}: " if at else ""
