"""Samples of ops that make tensors of plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError
from headrace.extend.ops import ALL_DTYPES
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample


def _constant(name: str) -> Sample:
    dtype = hr.as_dtype(name)
    if dtype.kind == "string":
        value = np.array([[b"", b"\x00\xff"], ["ü".encode(), b"x"]], object)
    else:
        value = np.array([[0, 1], [1, 0]]).astype(dtype.numpy)
    value.flags.writeable = False
    return Sample("Const", [], {"value": value}, lambda value: value, label=name)


CONSTANTS = [
    *(_constant(d.name) for d in ALL_DTYPES if d.kind not in ("resource", "list", "quantized")),
    Sample("Const", [], {"value": np.array(2.5, np.float32)}, lambda value: value, label="scalar"),
    Sample("Const", [], {"value": np.zeros((0, 3), np.int64)}, lambda value: value, label="empty"),
    Sample(
        "Const",
        [],
        {"value": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])},
        lambda value: value,
        label="special",
    ),
]

FILLS = [
    Sample(
        "Fill",
        [array(np.array(dims, np.int64), dtype), uniform(())],
        {},
        lambda dims, value: np.full([int(d) for d in dims], value),
        label=label,
    )
    for label, dims, dtype in (
        ("matrix", [2, 3], "int32"),
        ("scalar", [], "int64"),
        ("empty", [0, 2], "int32"),
    )
]


def _range(start: float, limit: float, delta: float, label: str, *names: str) -> Sample:
    def oracle(first: Any, last: Any, step: Any) -> Any:
        count = max(0, int(np.ceil((float(last) - float(first)) / float(step))))
        return float(first) + np.arange(count) * float(step)

    inputs = [array(start), array(limit), array(delta)]
    return Sample("Range", inputs, {}, oracle, dtypes=names or None, label=label)


RANGES = [
    _range(1, 7, 2, "odd"),
    _range(0, 0, 1, "empty"),
    _range(5, -2, -3, "falling", "int8", "int32", "int64", "float16", "float32", "float64"),
    _range(0.0, 1.0, 0.25, "fractions", "float16", "bfloat16", "float32", "float64"),
]


def _one_hot(indices: Any, on_value: Any, off_value: Any, depth: Any, axis: int) -> Any:
    last = np.where(np.expand_dims(indices, -1) == np.arange(int(depth)), on_value, off_value)
    return np.moveaxis(last, -1, axis)


ONE_HOT = [
    Sample(
        "OneHot",
        [indices, uniform((), 2, 9), uniform((), -9, -2), array(depth, "int32")],
        {"axis": axis},
        _one_hot,
        label=label,
    )
    for label, indices, depth, axis in (
        ("last", integers((5,), 0, 4), 4, -1),
        ("first", integers((2, 3), 0, 4, "int64"), 4, 0),
        ("outside", array([-1, 0, 3, 7], "int32"), 3, -1),
        ("bytes", integers((3,), 0, 3, "uint8"), 3, 1),
        ("scalar", array(1, "int32"), 3, 0),
        ("empty", integers((0,), 0, 1), 3, -1),
        ("no_depth", integers((2,), 0, 1), 0, -1),
    )
]

LIN_SPACE = [
    Sample(
        "LinSpace",
        [array(first), array(last), array(num, "int32")],
        {},
        lambda start, stop, num: np.linspace(start, stop, int(num)),
        label=label,
    )
    for label, first, last, num in (
        ("rising", -1.0, 2.0, 7),
        ("falling", 3.0, -1.0, 2),
        ("one", 3.0, 5.0, 1),
    )
]

REJECTS: list[Row] = [
    Reject(
        "Range",
        [array(3, "int32"), array(1, "int32"), array(1, "int32")],
        {},
        AttributeValueError,
        "another step",
        label="away",
    ),
    Reject(
        "LinSpace",
        [array(3.0, "float32"), array(1.0, "float32"), array(0, "int32")],
        {},
        AttributeValueError,
        "num must be >= 1",
    ),
    Reject("Fill", [array([2], "int32"), integers((2,), 0, 9)], {}, ShapeError, "must be a scalar"),
    Reject(
        "Range",
        [array(0, "int32"), array(3, "int32"), array(0, "int32")],
        {},
        AttributeValueError,
        "delta must not be 0",
    ),
    Reject(
        "Range",
        [integers((2,), 0, 9), array(3, "int32"), array(1, "int32")],
        {},
        ShapeError,
        "start must be a scalar",
        label="vector",
    ),
    Reject(
        "OneHot",
        [integers((2,), 0, 9), array(1.0, "float32"), array(0.0, "float32"), array(-1, "int32")],
        {"axis": -1},
        AttributeValueError,
        "depth must be >= 0",
    ),
]

SAMPLES: list[Row] = [*CONSTANTS, *FILLS, *RANGES, *ONE_HOT, *LIN_SPACE, *REJECTS]
