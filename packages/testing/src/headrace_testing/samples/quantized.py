"""Samples of levels of ranges, computed in float64, of floats that are not half way between two."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from headrace import as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace_testing.inputs import Input, array
from headrace_testing.sample import Inputs, Reject, Row, Sample

_DTYPES = ("qint8", "quint8", "qint16", "quint16", "qint32")


def _ends(dtype: Any) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _wide_range(low: Any, high: Any) -> tuple[float, float]:
    """Return a range with 0 in it whose ends are apart."""
    least = max(1.0, abs(float(low)), abs(float(high))) / 100
    start = min(0.0, float(low))
    return start, max(0.0, float(high), start + least)


def _quantized(
    x: Any,
    low: Any,
    high: Any,
    T: str,  # noqa: N803 - the attribute's name
    mode: str = "MIN_COMBINED",
    round_mode: str = "",
) -> Any:
    lowest, highest = _ends(as_dtype(T).numpy)
    start, end = _wide_range(low, high)
    if mode == "SCALED":
        sides = [level / edge for level, edge in ((lowest, start), (highest, end)) if level * edge]
        scale = min(sides)
        start, end = lowest / scale, highest / scale
        levels = np.rint(np.clip(x, start, end) * scale)
    else:
        scale = (highest - lowest) / (end - start)
        first = np.rint(start * scale) if mode == "MIN_FIRST" else start * scale
        levels = np.rint(x * scale - first) + lowest
    return np.clip(levels, lowest, highest), np.array(start), np.array(end)


def _floats(x: Any, low: Any, high: Any, mode: str = "MIN_COMBINED") -> Any:
    lowest, highest = _ends(x.dtype)
    if mode == "SCALED":
        return x * (max(low / lowest, high / highest) if lowest else high / highest)
    unit = (float(high) - float(low)) / (highest - lowest)
    start = np.rint(low / unit) * unit if mode == "MIN_FIRST" else low
    return start + (x.astype(np.float64) - lowest) * unit


def _concatenated(axis: Any, values: Any, lows: Any, highs: Any) -> Any:
    dtype = values[0].dtype
    start, end = min(0.0, *(float(low) for low in lows)), max(float(high) for high in highs)
    if _ends(dtype)[0]:
        end = max(abs(start), abs(end))
        start = -end
    unit = (end - start) / (_ends(dtype)[1] - _ends(dtype)[0])
    parts = []
    for value, low, high in zip(values, lows, highs, strict=True):
        floats = _floats(value, low, high, "MIN_FIRST")
        levels = np.rint(floats / unit) - np.rint(start / unit) + _ends(dtype)[0]
        parts.append(np.clip(levels, *_ends(dtype)) if (low, high) != (start, end) else value)
    return np.concatenate(parts, int(axis)), np.array(start), np.array(end)


def _level(value: Any, low: Any, high: Any, T: str) -> Any:  # noqa: N803
    lowest, highest = _ends(as_dtype(T).numpy)
    if low == high:
        return np.array(lowest)
    scale = (highest - lowest) / (float(high) - float(low))
    return np.array(np.rint(value * scale) - np.rint(low * scale) + lowest)


_X = [[-7.3, -0.83, -0.1], [0.0, 1.27, 6.9]]


def _scalar(value: float) -> Input:
    return array(value, "float32")


def _some(dtype: str) -> Input:
    """Make the lowest and the highest level, and others that float32 holds."""
    lowest, highest = _ends(as_dtype(dtype).numpy)
    return array([[lowest, highest // 2, 0], [highest // 4, 7, highest]], dtype)


SAMPLES: list[Row] = [
    *(
        Sample(
            "Quantize",
            [array(_X, "float32"), _scalar(-6.25), _scalar(5.75)],
            {"T": dtype, "mode": mode},
            _quantized,
            label=f"{dtype} {mode}",
        )
        for dtype in ("qint8", "quint8", "qint16", "quint16")
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")
    ),
    # Of 32 bits, those levels that float32 holds.
    Sample(
        "Quantize",
        [array([-2.0, -0.5, 0.0, 0.25, 1.0, 2.0], "float32"), _scalar(-1.0), _scalar(1.0)],
        {"T": "qint32", "mode": "SCALED"},
        lambda x, *_, **__: (
            np.clip(x, -1, 1) * 2.0**31 - (x >= 1),
            np.array(-1.0),
            np.array(1.0),
        ),
        label="qint32",
    ),
    *(
        Sample(
            "Quantize",
            [array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], "float32"), _scalar(-128), _scalar(127)],
            {"T": "qint8", "mode": "SCALED", "round_mode": mode},
            lambda *_, levels=levels, **__: (
                np.array(levels),
                np.array(-128.0),
                np.array(127.0),
            ),
            label=mode,
        )
        for mode, levels in (
            ("HALF_AWAY_FROM_ZERO", [-3, -2, -1, 1, 2, 3]),
            ("HALF_TO_EVEN", [-2, -2, 0, 0, 2, 2]),
        )
    ),
    Sample(
        "Quantize",
        [array([np.nan, np.inf, -np.inf], "float32"), _scalar(-3.0), _scalar(2.0)],
        {"T": "qint8", "mode": "SCALED"},
        lambda *_, **__: (np.array([0, 127, -128]), np.array(-3.0), np.array(127 * 3 / 128)),
        label="not finite",
    ),
    *(
        Sample(
            "Quantize",
            [array([0.51, 1.52, -0.7], "float32"), _scalar(low), _scalar(high)],
            {"T": "quint8"},
            _quantized,
            label=label,
        )
        for label, low, high in (("one number", 3.0, 3.0), ("below", -3.0, -2.0), ("0", 0.0, 0.0))
    ),
    *(
        Sample(
            "Dequantize",
            [_some(dtype), _scalar(-1.5), _scalar(3.25)],
            {"mode": mode},
            _floats,
            label=f"{dtype} {mode}",
        )
        for dtype in _DTYPES
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")
    ),
    Sample(
        "Dequantize",
        [array([0, 7, 255], "quint8"), _scalar(3.0), _scalar(3.0)],
        {"mode": "MIN_FIRST"},
        lambda *_, mode: np.full(3, 3.0),
        label="one number",
    ),
    *(
        Sample(
            "QuantizedConcat",
            [
                array(axis, "int32"),
                [array([[1, 2], [60, 255]], "quint8"), array([[9, 100], [0, 31]], "quint8")],
                [_scalar(0.0), _scalar(-1.0)],
                [_scalar(3.0), _scalar(2.0)],
            ],
            {},
            _concatenated,
            label=f"axis {axis}",
        )
        for axis in (0, -1)
    ),
    Sample(
        "QuantizedConcat",
        [
            array(0, "int32"),
            [array([-128, 9, 127], "qint8"), array([[5]][0], "qint8")],
            [_scalar(-2.0), _scalar(-1.0)],
            [_scalar(1.0), _scalar(0.5)],
        ],
        {},
        _concatenated,
        label="signed",
    ),
    Sample(
        "QuantizedConcat",
        [
            array(1, "int64"),
            [array([[1], [2]], "quint8"), array([[3], [255]], "quint8")],
            [_scalar(-0.5), _scalar(-0.5)],
            [_scalar(3.0), _scalar(3.0)],
        ],
        {},
        _concatenated,
        label="one range",
    ),
    *(
        Sample(
            "QuantizedLevel",
            [_scalar(value), _scalar(-2.0), _scalar(2.5)],
            {"T": dtype},
            _level,
            label=f"{dtype} {value}",
        )
        for dtype in ("qint8", "quint8", "quint16")
        for value in (0.0, 1.3, 900.0)
    ),
    Sample(
        "QuantizedLevel",
        [_scalar(1.0), _scalar(2.0), _scalar(2.0)],
        {"T": "qint8"},
        _level,
        label="one number",
    ),
    *(
        Reject("Quantize", [array([1.0], "float32"), low, high], attrs, error, match, label=label)
        for label, low, high, attrs, error, match in (
            ("mode", _scalar(0), _scalar(1), {"T": "qint8", "mode": "MAX"}, AttributeValueError,
             "mode must be one of MIN_COMBINED"),
            ("round_mode", _scalar(0), _scalar(1), {"T": "qint8", "round_mode": "UP"},
             AttributeValueError, "round_mode must be one of HALF_AWAY_FROM_ZERO"),
            ("even", _scalar(0), _scalar(1), {"T": "qint8", "round_mode": "HALF_TO_EVEN"},
             AttributeValueError, "is there for mode 'SCALED' alone"),
            ("dtype", _scalar(0), _scalar(1), {"T": "int8"}, DTypeError, "T must be one of qint16"),
            ("range", _scalar(2), _scalar(1), {"T": "qint8"}, AttributeValueError,
             "max_range must be at least min_range"),
            ("vector", array([0.0, 1.0], "float32"), _scalar(1), {"T": "qint8"}, ShapeError,
             "min_range must be a scalar"),
        )
    ),
    Reject(
        "Quantize",
        [array([1.0], "float64"), _scalar(0), _scalar(1)],
        {"T": "qint8"},
        DTypeError,
        "input must be float32, got float64",
        label="float64",
    ),
    *(
        Reject("Dequantize", inputs, attrs, error, match, label=label)
        for label, inputs, attrs, error, match in (
            ("integers", [array([1], "int8"), _scalar(0), _scalar(1)], {}, DTypeError,
             "input must be quantized, got int8"),
            ("mode", [array([1], "qint8"), _scalar(0), _scalar(1)], {"mode": "MAX"},
             AttributeValueError, "mode must be one of MIN_COMBINED"),
            ("vector", [array([1], "qint8"), _scalar(0), array([1.0], "float32")], {}, ShapeError,
             "max_range must be a scalar"),
        )
    ),
    *(
        Reject("QuantizedConcat", cast("Inputs", inputs), {}, error, match, label=label)
        for label, inputs, error, match in (
            ("ends", [array(0, "int32"), [array([1], "qint8")] * 2, [_scalar(0)], [_scalar(1)] * 2],
             AttributeValueError, "an entry in input_mins and input_maxes, got 2, 1 and 2"),
            ("scalars", [array(0, "int32"), [array(1, "qint8")] * 2, [_scalar(0)] * 2,
                         [_scalar(1)] * 2], ShapeError, "scalars have no axis"),
            ("axis", [array(1, "int32"), [array([1], "qint8")] * 2, [_scalar(0)] * 2,
                      [_scalar(1)] * 2], ShapeError, "out of range"),
            ("ranks", [array(0, "int32"), [array([1], "qint8"), array([[1]], "qint8")],
                       [_scalar(0)] * 2, [_scalar(1)] * 2], ShapeError, "incompatible|merge|rank"),
            ("dtypes", [array(0, "int32"), [array([1], "qint8"), array([1], "quint8")],
                        [_scalar(0)] * 2, [_scalar(1)] * 2], DTypeError, "dtype|quint8"),
            ("vector", [array(0, "int32"), [array([1], "qint8")], [array([0.0], "float32")],
                        [_scalar(1)]], ShapeError, r"input_mins\[0\] must be a scalar"),
        )
    ),
    Reject(
        "QuantizedLevel",
        [_scalar(1), _scalar(0), _scalar(1)],
        {"T": "float32"},
        DTypeError,
        "T must be one of qint16, qint32",
        label="dtype",
    ),
]  # fmt: skip
