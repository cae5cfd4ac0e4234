"""Samples of counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample

_SOME = ("float32", "float64", "bfloat16", "int32", "uint8")


def _bins(values: Any, ends: Any, nbins: Any, dtype: Any = "int32") -> Any:
    """Walk through the intervals; a value is in the last one whose lower end it reaches."""
    low, high, count = float(ends[0]), float(ends[1]), int(nbins)
    lower = [low + (high - low) * i / count for i in range(1, count)]
    found = [sum(v >= bound for bound in lower) for v in values.reshape(-1)]
    return np.array(found, dtype).reshape(values.shape)


def _histogram(values: Any, ends: Any, nbins: Any, dtype: Any = "int32") -> Any:
    counts = np.zeros(int(nbins), dtype)
    for place in _bins(values, ends, nbins).reshape(-1):
        counts[place] += 1
    return counts


def _bincount(numbers: Any, least: Any, most: Any, dtype: Any = "int32") -> Any:
    size = min(max(int(numbers.max(initial=-1)) + 1, int(least)), int(most))
    return np.array([(numbers == number).sum() for number in range(size)], dtype)


def _counts(op: str, oracle: Any) -> list[Row]:
    # Quarters and the ends between them are exact in every dtype.
    values = [-9.0, 0.0, 0.25, 1.0, 1.75, 2.0, 3.0, 3.5, 4.0, 100.0]
    return [
        Sample(
            op,
            [array(values), array([0.0, 4.0]), array(4, "int32")],
            {},
            oracle,
            dtypes=_SOME[:-1],
        ),
        Sample(
            op,
            [integers((3, 4), 0, 9, "uint8"), array([1, 9], "uint8"), array(4, "int64")],
            {"dtype": "int64"},
            oracle,
            label="matrix",
        ),
        Sample(
            op,
            [array([np.inf, -np.inf, 0.5, -0.0]), array([0.0, 1.0]), array(2, "int32")],
            {},
            oracle,
            dtypes=("float32", "float16"),
            label="infinite",
        ),
        Sample(
            op,
            [uniform((0,)), array([0, 1]), array(3, "int32")],
            {},
            oracle,
            dtypes=_SOME,
            label="empty",
        ),
        Sample(
            op,
            [array(0.5, "float32"), array([0.0, 1.0], "float32"), array(1, "int32")],
            {},
            oracle,
            label="scalar",
        ),
        Reject(
            op,
            [array([np.nan], "float32"), array([0.0, 1.0], "float32"), array(3, "int32")],
            {},
            ExecutionError,
            "must not be NaN",
            when="run",
            label="nan",
        ),
        Reject(
            op,
            [array([1.0], "float32"), array([0.0, 1.0], "float32"), array(0, "int32")],
            {},
            AttributeValueError,
            "nbins must be > 0",
            label="bins",
        ),
        Reject(
            op,
            [array([1.0], "float32"), array([0.0], "float32"), array(2, "int32")],
            {},
            ShapeError,
            "value_range must be",
            label="range",
        ),
        Reject(
            op,
            [array([1.0], "float32"), array([0.0, 1.0], "float32"), array(2, "int32")],
            {"dtype": "float32"},
            DTypeError,
            "dtype must be int32 or int64",
            label="dtype",
        ),
        Reject(
            op,
            [array([1.0], "float32"), array([0.0, np.inf], "float32"), array(2, "int32")],
            {},
            ExecutionError,
            "must be finite",
            when="run",
            label="infinite",
        ),
    ]


SAMPLES: list[Row] = [
    *_counts("HistogramFixedWidth", _histogram),
    Reject(
        "HistogramFixedWidth",
        [array([1.0], "float32"), array([2.0, 1.0], "float32"), array(2, "int32")],
        {},
        ExecutionError,
        "value_range must ascend",
        when="run",
        label="descending",
    ),
    *_counts("HistogramFixedWidthBins", _bins),
    *(
        Sample(
            "BincountSize",
            [array(numbers, dtype)],
            {},
            lambda x, size=size: x.dtype.type(size),
            label=label,
        )
        for label, numbers, dtype, size in (
            ("vector", [0, 5, 2], "int32", 6),
            ("matrix", [[1, 0], [3, 3]], "int64", 4),
            ("empty", np.zeros((0, 2)), "int64", 0),
            ("scalar", 7, "int32", 8),
        )
    ),
    Reject(
        "BincountSize",
        [array([3, -1], "int32")],
        {},
        ExecutionError,
        "must not be negative, got -1",
        when="run",
        label="negative",
    ),
    Reject(
        "BincountSize",
        [array([2**31 - 1], "int32")],
        {},
        ExecutionError,
        "no number of its dtype beyond",
        when="run",
        label="limit",
    ),
    *(
        Sample(
            "Bincount",
            [array(numbers, dtype), array(least, "int32"), array(most, "int32")],
            {"dtype": counted},
            _bincount,
            label=label,
        )
        for label, numbers, dtype, least, most, counted in (
            ("free", [0, 5, 2, 5, 5, 0, 1], "int32", 0, 2**31 - 1, "int32"),
            ("padded", [[1, 0], [3, 3]], "int64", 9, 2**31 - 1, "int64"),
            ("cut", [7, 1, 2, 9, 1], "int32", 0, 3, "float32"),
            ("fixed", [7, 1, 2, 9, 1], "int64", 5, 5, "float64"),
            ("crossed", [7, 1, 2], "int32", 5, 2, "int32"),
            ("empty", np.zeros((0, 2)), "int64", 2, 4, "int32"),
            ("none", [1, 2], "int32", 0, 0, "int32"),
            ("scalar", 2, "int32", 0, 9, "int32"),
        )
    ),
    *(
        Reject(
            "Bincount",
            [array(numbers, "int32"), array(least, "int32"), array(most, "int32")],
            {"dtype": dtype},
            error,
            match,
            when=when,
            label=label,
        )
        for label, numbers, least, most, dtype, error, match, when in (
            ("negative", [3, -1], 0, 9, "int32", ExecutionError, "not be negative, got -1", "run"),
            ("limit", [2**31 - 1], 0, 9, "int32", ExecutionError, "no number of its", "run"),
            ("many", [2**30], 0, 2**31 - 1, "int32", ExecutionError, "too many", "run"),
            ("most", [3], 0, -1, "int32", AttributeValueError, "maxlength must be >= 0", "build"),
            ("vector", [3], [0], 9, "int32", ShapeError, "minlength must be a scalar", "build"),
            ("dtype", [3], 0, 9, "int8", DTypeError, "dtype must be int32, int64", "build"),
        )
    ),
    Sample(
        "ConfusionCells",
        [array([0, 2, 1, 1], "int32"), array([1, 2, 0, 1], "int64"), array(3, "int32")],
        {},
        lambda rows, columns, count: np.ravel_multi_index((rows, columns), (int(count),) * 2),
    ),
    Sample(
        "ConfusionCells",
        [integers((0,), 0, 1), integers((0,), 0, 1), array(0, "int64")],
        {},
        lambda rows, columns, count: np.zeros((0,), np.int64),
        label="empty",
    ),
    *(
        Reject(
            "ConfusionCells",
            [array(rows, "int32"), array(columns, "int32"), array(3, "int32")],
            {},
            error,
            match,
            when=when,
            label=label,
        )
        for label, rows, columns, error, match, when in (
            ("labels", [3], [0], ExecutionError, "index 3 .* labels", "run"),
            ("predictions", [0], [-1], ExecutionError, "index -1 .* predictions", "run"),
            ("lengths", [0, 1], [1], ShapeError, "must have one shape", "build"),
            ("matrix", [[0]], [[1]], ShapeError, "labels must be a vector", "build"),
        )
    ),
]
