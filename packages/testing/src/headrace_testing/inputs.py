"""Makers of sample inputs: named, seeded, and each able to yield any dtype.

A maker without a dtype of its own follows the sweep: the harness makes its values once for each
dtype that the op takes. Floats and complex numbers then keep their fractions, integers are whole
numbers in the same range, and unsigned ones start at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace import DType, as_dtype

NDArray = np.ndarray[Any, np.dtype[Any]]
Fill = Callable[[np.random.Generator, DType], Any]

_WORDS = (b"", b"a", b"head", b"race", b"headrace", "größer".encode(), b"\x00\xff")


@dataclass(frozen=True, slots=True)
class Input:
    """A recipe for one input array.

    Attributes:
        text: How messages show it.
        fill: Makes the values for a dtype, from a generator of random numbers.
        dtype: The dtype that it always has; None to follow the sweep.
    """

    text: str
    fill: Fill
    dtype: DType | None = None

    def make(self, dtype: DType | None, seed: Sequence[int]) -> NDArray:
        """Return the array for a dtype of the sweep; the same for the same seed."""
        chosen = self.dtype if self.dtype is not None else dtype
        if chosen is None:
            raise ValueError(f"{self.text} follows the sweep, which has no dtype here")
        values = self.fill(np.random.default_rng(list(seed)), chosen)
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(
                chosen.as_numpy_dtype if chosen.is_quantized else chosen.numpy
            )

    def __str__(self) -> str:
        return self.text


def uniform(
    shape: Sequence[int] | int,
    low: float = -1.0,
    high: float = 1.0,
    *,
    away_from: float | None = None,
    margin: float = 0.1,
) -> Input:
    """Make numbers uniform between two bounds, of the sweep's dtype.

    Args:
        shape: The shape.
        low: The lower bound; 0 for unsigned integers if it is below.
        high: The upper bound.
        away_from: A point that values keep a distance from: a kink of the function under test.
        margin: The distance.
    """

    def fill(rng: np.random.Generator, dtype: DType) -> Any:
        if dtype.is_bool:
            return rng.random(shape) < 0.5
        if dtype.kind == "string":
            return _words(rng, shape)
        if dtype.is_integer:
            return _whole(rng, dtype, shape, low, high, away_from)
        values = _away(rng.uniform(low, high, shape), away_from, margin)
        if dtype.is_complex:
            return values + 1j * _away(rng.uniform(low, high, shape), away_from, margin)
        return values

    tail = "" if away_from is None else f", away_from={away_from:g}"
    return Input(f"uniform({_listed(shape)}, {low:g}, {high:g}{tail})", fill)


def whole(shape: Sequence[int] | int, low: int, high: int) -> Input:
    """Make whole numbers from ``low`` to ``high``, both included, of the sweep's dtype.

    Few different values: what comparisons, counts and ties are tested on.
    """

    def fill(rng: np.random.Generator, dtype: DType) -> Any:
        if dtype.is_bool:
            return rng.random(shape) < 0.5
        if dtype.kind == "string":
            return _words(rng, shape)
        return _whole(rng, dtype, shape, low, high, None)

    return Input(f"whole({_listed(shape)}, {low}, {high})", fill)


def distinct(shape: Sequence[int] | int, low: float = -2.0, high: float = 2.0) -> Input:
    """Make numbers of which no two are close, in random order, of the sweep's dtype.

    For functions with kinks at ties, as maxima have. Integers are consecutive.
    """

    def fill(rng: np.random.Generator, dtype: DType) -> Any:
        count = int(np.prod(shape))
        if dtype.is_integer:
            start = 0 if dtype.kind == "uint" else -(count // 2)
            return (rng.permutation(count) + start).reshape(shape)
        return rng.permutation(np.linspace(low, high, count)).reshape(shape)

    return Input(f"distinct({_listed(shape)}, {low:g}, {high:g})", fill)


def array(values: Any, dtype: Any = None) -> Input:
    """Take values as they stand, of ``dtype`` or else of the sweep's."""
    fixed = None if dtype is None else as_dtype(dtype)

    def fill(rng: np.random.Generator, wanted: DType) -> Any:
        if wanted.kind == "string":
            return np.array(values, object)
        return np.array(values)

    text = np.array2string(np.asarray(values), separator=", ", threshold=8, edgeitems=2)
    tail = "" if fixed is None else f", {fixed}"
    return Input(f"array({' '.join(text.split())}{tail})", fill, fixed)


def integers(shape: Sequence[int] | int, low: int, high: int, dtype: Any = "int32") -> Input:
    """Make integers from ``low`` up to but without ``high``, of a dtype of their own."""

    def fill(rng: np.random.Generator, wanted: DType) -> Any:
        return rng.integers(low, high, shape)

    fixed = as_dtype(dtype)
    return Input(f"integers({_listed(shape)}, {low}, {high}, {fixed})", fill, fixed)


def booleans(shape: Sequence[int] | int) -> Input:
    """Make truth values."""

    def fill(rng: np.random.Generator, wanted: DType) -> Any:
        return rng.random(shape) < 0.5

    return Input(f"booleans({_listed(shape)})", fill, as_dtype("bool"))


def strings(shape: Sequence[int] | int) -> Input:
    """Make byte strings: empty, plain, beyond ASCII, and with zero bytes."""

    def fill(rng: np.random.Generator, wanted: DType) -> Any:
        return _words(rng, shape)

    return Input(f"strings({_listed(shape)})", fill, as_dtype("string"))


def _whole(
    rng: np.random.Generator,
    dtype: DType,
    shape: Sequence[int] | int,
    low: float,
    high: float,
    away_from: float | None,
) -> NDArray:
    first, last = math.ceil(low), math.floor(high)
    if dtype.kind == "uint":
        first, last = max(0, first), max(0, last)
    values = rng.integers(first, max(first, last) + 1, shape)
    if away_from is None:
        return np.asarray(values)
    return np.where(values == away_from, values + 1, values)


def _away(values: NDArray, point: float | None, margin: float) -> NDArray:
    if point is None:
        return values
    offset = values - point
    return np.where(np.abs(offset) < margin, point + np.copysign(margin, offset) + offset, values)


def _words(rng: np.random.Generator, shape: Sequence[int] | int) -> NDArray:
    made = np.empty(shape, object)
    flat = made.reshape(-1)
    for i, pick in enumerate(rng.integers(0, len(_WORDS), flat.size)):
        flat[i] = _WORDS[pick]
    return made


def _listed(shape: Sequence[int] | int) -> str:
    return str([shape] if isinstance(shape, int) else list(shape))
