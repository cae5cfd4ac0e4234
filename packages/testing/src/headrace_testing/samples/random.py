"""Samples of random ops: their shapes, dtypes and ranges. What they draw has no oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import array
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS, INTEGERS

_SEEDS = (7, 3)


def spread(results: list[Any], low: float, high: float) -> bool:
    """Whether numbers lie in [low, high], and fill most of it."""
    values = np.asarray(results[0]).astype(np.float64)
    inside = bool(((values >= low) & (values <= high)).all())
    reach = values.min() < low * 0.8 + high * 0.2 and values.max() > low * 0.2 + high * 0.8
    return inside and bool(reach)


def standard(results: list[Any]) -> bool:
    """Whether mean and variance are near 0 and 1: within five of their standard errors."""
    values = np.asarray(results[0]).astype(np.float64)
    error = 5 / np.sqrt(values.size)
    return bool(abs(values.mean()) < error and abs(values.var() - 1) < 3 * error)


def of_shape(*shape: int) -> Callable[[list[Any]], bool]:
    """Check the shape."""
    return lambda results: np.shape(results[0]) == shape


def _full_range(name: str) -> Callable[[list[Any]], bool]:
    info = np.iinfo(name)
    return lambda results: spread(results, float(info.min), float(info.max))


def truncated(results: list[Any]) -> bool:
    """Whether numbers are within two standard deviations, and fill them."""
    values = np.asarray(results[0]).astype(np.float64)
    return bool(np.abs(values).max() <= 2 and 0.6 < values.std() < 1 and abs(values.mean()) < 0.1)


SAMPLES: list[Row] = [
    *(
        Sample(
            op,
            [array([50, 40], dtype_of_shape)],
            {"dtype": dtype, "seeds": _SEEDS},
            holds=holds,
            label=dtype,
        )
        for op, holds in (
            ("RandomUniform", lambda results: spread(results, 0, 1)),
            ("RandomStandardNormal", standard),
            ("TruncatedNormal", truncated),
        )
        for dtype, dtype_of_shape in zip(FLOATS, ("int32", "int64", "int32", "int64"), strict=True)
    ),
    *(
        Sample(
            op,
            [array(np.array(shape, np.int64), "int32")],
            {"dtype": "float32", "seeds": None},
            holds=of_shape(*shape),
            label=label,
        )
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
        for label, shape in (("scalar", []), ("empty", [0, 3]), ("odd", [3, 5]))
    ),
    Sample(
        "RandomUniformInt",
        [array([40, 10], "int32"), array(3), array(9)],
        {"seeds": _SEEDS},
        holds=lambda results: set(np.unique(results[0]).tolist()) == {3, 4, 5, 6, 7, 8},
        label="range",
    ),
    *(
        Sample(
            "RandomUniformInt",
            [
                array([200], "int32"),
                array(np.iinfo(name).min, name),
                array(np.iinfo(name).max, name),
            ],
            {"seeds": _SEEDS},
            holds=_full_range(name),
            label=f"limits_{name}",
        )
        for name in INTEGERS
    ),
    *(
        Sample(
            "RandomPermutation",
            [array(size, "int64")],
            {"seeds": _SEEDS},
            holds=lambda results: sorted(results[0].tolist()) == list(range(len(results[0]))),
            label=str(size),
        )
        for size in (0, 1, 50)
    ),
    Reject(
        "RandomUniformInt",
        [array([2], "int32"), array([5, 6], "int32"), array(7, "int32")],
        {"seeds": None},
        ShapeError,
        "minval must be a scalar",
    ),
    Reject(
        "RandomPermutation",
        [array([2], "int32")],
        {"seeds": None},
        ShapeError,
        "size must be a scalar",
    ),
    Reject(
        "RandomUniform",
        [array([2], "int32")],
        {"dtype": "int32", "seeds": None},
        DTypeError,
        "dtype must be floating",
    ),
]
