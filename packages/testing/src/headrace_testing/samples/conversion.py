"""Samples of conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import array, integers, strings, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS, NUMERIC, SPECIAL


def _converted(x: Any, dtype: Any) -> Any:
    """Convert by truncation towards zero, comparison with zero, or dropping the imaginary part."""
    kind = hr.as_dtype(dtype)
    if kind.is_bool:
        return x != 0
    if not kind.is_complex and np.iscomplexobj(x):
        x = x.real
    return np.trunc(x).astype(np.int64) if kind.is_integer and x.dtype == np.float64 else x


CAST = [
    *(
        Sample(
            "Cast",
            [uniform((3, 4), 0, 100)],
            attrs={"dtype": target},
            oracle=_converted,
            dtypes=(*NUMERIC, "bool"),
            grad=target == "float64",
            label=target,
        )
        for target in (*NUMERIC, "bool")
    ),
    Sample(
        "Cast",
        [array([-2.7, -0.5, 0.0, 0.5, 2.7])],
        attrs={"dtype": "int32"},
        oracle=_converted,
        dtypes=FLOATS,
        grad=False,
        label="fractions",
    ),
    Sample(
        "Cast",
        [SPECIAL],
        attrs={"dtype": "float32"},
        oracle=_converted,
        dtypes=FLOATS,
        grad=False,
        label="special",
    ),
    Sample(
        "Cast",
        [array([-1, 255, 256, -128], "int64")],
        attrs={"dtype": "uint8"},
        oracle=lambda x, dtype: x,
        label="wrapping",
    ),
]


def _bits(input: Any, type: str) -> Any:
    source, target = input.dtype.itemsize, np.dtype(type).itemsize
    shape = input.shape
    if target < source:
        shape = (*shape, source // target)
    elif target > source:
        shape = shape[:-1]
    return np.frombuffer(input.tobytes(), type).reshape(shape)


BITCAST = [
    Sample("Bitcast", [array([[1, -1]], "int32")], {"type": "uint8"}, _bits, label="narrower"),
    Sample(
        "Bitcast", [array([[1, 2], [3, -4]], "int16")], {"type": "uint32"}, _bits, label="wider"
    ),
    Sample("Bitcast", [integers((3, 0), 0, 9, "int64")], {"type": "uint16"}, _bits, label="none"),
    Sample("Bitcast", [array(7, "int64")], {"type": "uint32"}, _bits, label="scalar"),
    Sample(
        "Bitcast",
        [array([0, 1065353216, 2143289344], "int32")],
        {"type": "float32"},
        lambda input, type: np.array([0.0, 1.0, np.nan]),
        label="float32",
    ),
    Sample(
        "Bitcast",
        [array([1.0, -2.0], "float64")],
        {"type": "int64"},
        lambda input, type: np.array([1023 << 52, -(1 << 62)]),
        label="int64",
    ),
]

REJECTS: list[Row] = [
    Reject("Cast", [strings((2,))], {"dtype": "int32"}, DTypeError, "strings are not converted"),
    Reject("Bitcast", [strings((2,))], {"type": "int32"}, DTypeError, "bitcast reads numbers"),
    Reject(
        "Bitcast", [integers((2,), 0, 9, "uint8")], {"type": "bool"}, DTypeError, "not every byte"
    ),
    Reject(
        "Bitcast",
        [integers((2, 3), 0, 9)],
        {"type": "int64"},
        ShapeError,
        "last dimension must be 2",
        label="width",
    ),
]

SAMPLES: list[Row] = [*CAST, *BITCAST, *REJECTS]
