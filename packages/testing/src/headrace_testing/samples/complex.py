"""Samples of complex numbers and their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DTypeError
from headrace_testing.inputs import array, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import COMPLEX, Oracle

_INF, _NAN = np.inf, np.nan
_EDGES = array([0, 1j, -1j, -1, complex(_INF, 1), complex(-1, -_INF), complex(_NAN, 1)])


_PLAIN = ("float32", "float64")


def _joined(real: Any, imag: Any) -> Any:
    wide = np.zeros(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    wide.real, wide.imag = real, imag
    return wide


def _parts(op: str, oracle: Oracle) -> list[Row]:
    return [
        Sample(op, [uniform((4, 5), -3, 3)], oracle=oracle),
        Sample(op, [_EDGES], oracle=oracle, dtypes=COMPLEX, label="edges"),
    ]


PARTS: list[Row] = [
    *_parts("Real", np.real),
    *_parts("Imag", np.imag),
    *_parts("Angle", np.angle),
    *_parts("ComplexAbs", np.abs),
]

WHOLE: list[Row] = [
    Sample(
        "Complex",
        [uniform((3, 4)), uniform((3, 4))],
        oracle=lambda x, y: x + 1j * y,
        dtypes=_PLAIN,
        grad=False,
    ),
    Sample(
        "Complex",
        [uniform((3, 1)), uniform((2, 1, 4))],
        oracle=lambda x, y: x + 1j * y,
        dtypes=_PLAIN,
        grad=False,
        label="broadcast",
    ),
    Sample(
        "Complex",
        [array([_INF, 0.0, _NAN]), array([0.0, _INF, 1.0])],
        oracle=_joined,
        dtypes=_PLAIN,
        grad=False,
        label="special",
    ),
]

REJECTS: list[Row] = [
    Reject(
        "Complex", [array([1.0], "float16")] * 2, error=DTypeError, match="float32 or float64, got"
    ),
    Reject("Real", [array([1.0], "float32")], error=DTypeError, match="must be complex"),
]

SAMPLES: list[Row] = [*PARTS, *WHOLE, *REJECTS]
