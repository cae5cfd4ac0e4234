"""Samples of roundings to the values of integers of a few bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace_testing.inputs import array, uniform
from headrace_testing.sample import Reject, Row, Sample


def _grid(low: float, high: float, num_bits: int, narrow_range: bool) -> Any:
    """Return all values of a range, one after the other."""
    least, most = int(narrow_range), 2**num_bits - 1
    scale = (high - low) / (most - least)
    zero = min(max(least - low / scale, least), most)
    zero = int(np.floor(zero + 0.5))
    return np.array([(i - zero) * scale for i in range(least, most + 1)])


def _rounded(x: Any, low: Any, high: Any, num_bits: int = 8, narrow_range: bool = False) -> Any:
    """Take the nearest value of the range, in each channel."""
    ends = np.broadcast_to(low, x.shape).ravel(), np.broadcast_to(high, x.shape).ravel()
    found = []
    for value, a, b in zip(x.ravel(), *ends, strict=True):
        grid = _grid(a, b, num_bits, narrow_range) if (a, b) != (0, 0) else np.zeros(1)
        found.append(grid[np.abs(grid - value).argmin()])
    return np.array(found).reshape(x.shape)


def _gradients(
    g: Any, x: Any, low: Any, high: Any, num_bits: int = 8, narrow_range: bool = False
) -> Any:
    grids = [
        _grid(a, b, num_bits, narrow_range)
        for a, b in zip(np.atleast_1d(low), np.atleast_1d(high), strict=True)
    ]
    first, last = (np.array([grid[i] for grid in grids]) for i in (0, -1))
    below, above = x < first, x > last
    axes = tuple(range(x.ndim - low.ndim))
    return g * ~(below | above), (g * below).sum(axes), (g * above).sum(axes)


# Beside the values, and not half way between two of them.
_X = [[-7.3, -0.1, 0.0, 0.52], [1.26, 2.01, 5.9, 6.7]]
_ARRIVING = array([[1.0, -2.0, 0.5, 3.0], [0.25, 4.0, -1.0, 2.0]], "float32")
_RANGE = [array(-6.0, "float32"), array(6.0, "float32")]
_RANGES = [array([-6.0, -1.0, 0.5, 0.0], "float32"), array([6.0, -0.5, 3.0, 0.3], "float32")]

SAMPLES: list[Row] = [
    Sample("FakeQuant", [array(_X, "float32"), *_RANGE], {}, _rounded, grad=False),
    Sample(
        "FakeQuant",
        [array(_X, "float32"), *_RANGES],
        {"num_bits": 4, "narrow_range": True},
        _rounded,
        grad=False,
        label="channels",
    ),
    Sample(
        "FakeQuant",
        [array(_X, "float32"), array(0.0, "float32"), array(0.0, "float32")],
        {},
        lambda x, low, high: np.zeros_like(x),
        grad=False,
        label="nothing",
    ),
    Sample(
        "FakeQuant",
        [array(np.zeros((0, 3)), "float32"), *_RANGE],
        {},
        lambda x, *_: x,
        grad=False,
        label="empty",
    ),
    Sample(
        "FakeQuantGradient",
        [_ARRIVING, array(_X, "float32"), *_RANGE],
        {},
        _gradients,
    ),
    Sample(
        "FakeQuantGradient",
        [_ARRIVING, array(_X, "float32"), *_RANGES],
        {"num_bits": 6, "narrow_range": True},
        _gradients,
        label="channels",
    ),
    *(
        Reject("FakeQuant", inputs, attrs, error, match, label=label)
        for label, inputs, attrs, error, match in (
            (
                "bits",
                [array(_X, "float32"), *_RANGE],
                {"num_bits": 17},
                AttributeValueError,
                "num_bits",
            ),
            (
                "dtype",
                [array(_X, "float64"), array(-6.0, "float64"), array(6.0, "float64")],
                {},
                DTypeError,
                "float32",
            ),
            ("channels", [array([0.0] * 3, "float32"), *_RANGES], {}, ShapeError, "3"),
        )
    ),
    Sample(
        "QuantizeAndDequantize",
        [array([-1.0, -0.5, 0.0, 0.3, 0.8, 0.555, 0.50390625]), array(0.0), array(0.0)],
        {},
        # The unit is 1 / 128.
        lambda x, low, high: np.array([-128, -64, 0, 38, 102, 71, 64]) / 128,
        dtypes=("float32", "float64"),
        grad=False,
        label="own range",
    ),
    Sample(
        "QuantizeAndDequantize",
        [array([-1.0, -0.5, 0.0, 0.3, 0.8]), array(0.0), array(1.0)],
        {"signed_input": False, "range_given": True, "num_bits": 8},
        lambda x, low, high, **_: np.array([0, 0, 0, 76, 204]) / 255,
        dtypes=("float32", "float64"),
        grad=False,
        label="given range",
    ),
    Sample(
        "QuantizeAndDequantize",
        [array([-3.0, -0.5, 0.0, 0.3, 0.8]), array(-1.0), array(0.5)],
        {"range_given": True, "narrow_range": True, "round_mode": "HALF_UP", "num_bits": 2},
        lambda x, low, high, **_: np.array([-1.0, 0.0, 0.0, 0.0, 1.0]),
        dtypes=("float32", "float64"),
        grad=False,
        label="few bits",
    ),
    Sample(
        "QuantizeAndDequantize",
        [uniform((0,)), array(0.0), array(0.0)],
        {},
        lambda x, *_: x,
        dtypes=("float32",),
        grad=False,
        label="empty",
    ),
    Reject(
        "QuantizeAndDequantize",
        [array([1.0], "float32"), array(2.0, "float32"), array(1.0, "float32")],
        {"range_given": True},
        AttributeValueError,
        "Invalid range",
        label="range",
    ),
    Reject(
        "QuantizeAndDequantize",
        [array([1.0], "float32"), array(0.0, "float32"), array(1.0, "float32")],
        {"round_mode": "DOWN"},
        AttributeValueError,
        "round_mode",
        label="mode",
    ),
    Reject(
        "QuantizeAndDequantize",
        [array([1.0], "float32"), array([0.0], "float32"), array(1.0, "float32")],
        {},
        ShapeError,
        "scalar",
        label="scalar",
    ),
]
