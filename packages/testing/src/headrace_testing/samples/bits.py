"""Samples of bitwise ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DTypeError
from headrace_testing.inputs import array, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import INTEGERS, Oracle, binary, limits


def _shifted(op: str) -> Oracle:
    """Return a shift computed with Python's integers, of any size, cut to the dtype's."""

    def shift(x: Any, y: Any) -> Any:
        bits = 8 * x.dtype.itemsize
        wide_x, wide_y = np.broadcast_arrays(x.astype(object), y.astype(object))
        made = []
        for a, b in zip(wide_x.flat, wide_y.flat, strict=True):
            count = min(max(int(b), 0), bits - 1)
            value = (int(a) << count if op == "LeftShift" else int(a) >> count) % 2**bits
            made.append(
                value - 2**bits if x.dtype.kind == "i" and value >= 2 ** (bits - 1) else value
            )
        return np.array(made, x.dtype).reshape(wide_x.shape)

    return shift


def _counted(x: Any) -> Any:
    bits = 8 * x.dtype.itemsize
    return np.array([(int(v) % 2**bits).bit_count() for v in x.flat]).reshape(x.shape)


_LOGIC: dict[str, Oracle] = {
    "BitwiseAnd": lambda x, y: x & y,
    "BitwiseOr": lambda x, y: x | y,
    "BitwiseXor": lambda x, y: x ^ y,
}

SAMPLES: list[Row] = [
    *(row for op, oracle in _LOGIC.items() for row in binary(op, oracle, -99, 99)),
    *(
        row
        for op in ("LeftShift", "RightShift")
        for row in (
            *binary(op, _shifted(op), -3, 80),
            *limits(op, _shifted(op)),
        )
    ),
    Sample("Invert", [uniform((4, 5), -99, 99)], oracle=np.invert, dtypes=INTEGERS),
    Sample("PopulationCount", [uniform((4, 5), -99, 99)], oracle=_counted),
    Sample(
        "PopulationCount",
        [array([-1, -(2**63), 2**63 - 1, 0], "int64")],
        oracle=_counted,
        label="limits",
    ),
    Reject("BitwiseAnd", [array([1.0], "float32")] * 2, error=DTypeError, match="an integer, got"),
    Reject("Invert", [array([True], "bool")], error=DTypeError, match="an integer, got bool"),
]
