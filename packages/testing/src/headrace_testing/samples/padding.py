"""Samples of borders."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ShapeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample

# Where values are only moved, these stand for all dtypes of their size and kind.
_MOVED = ("float64", "float32", "int8", "int64", "bool", "complex64", "string")


def _bordered(x: Any, paddings: Any, constant_values: Any = None) -> Any:
    filler = constant_values
    if filler is None:
        filler = b"" if x.dtype == object else x.dtype.type(0)
    dims = [d + int(sum(p)) for d, p in zip(x.shape, paddings, strict=True)]
    whole = np.full(dims, filler, x.dtype)
    inner = tuple(slice(p[0], p[0] + d) for d, p in zip(x.shape, paddings, strict=True))
    whole[inner] = x
    return whole


def _pairs(paddings: Any, dtype: str = "int32") -> Any:
    return array(np.array(paddings, np.int64).reshape(-1, 2), dtype)


PADDED = [
    *(
        Sample(
            "Pad",
            [uniform(shape), _pairs(paddings, dtype), uniform(()) if filled else None],
            {},
            _bordered,
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, paddings, dtype, filled in (
            ("matrix", (2, 3), ((1, 0), (2, 1)), "int32", False),
            ("filled", (3,), ((2, 2),), "int64", True),
            ("nothing", (2, 1), ((0, 0), (0, 0)), "int32", False),
            ("empty", (0, 2), ((1, 1), (0, 0)), "int32", True),
            ("scalar", (), (), "int32", False),
        )
    ),
    *(
        Sample(
            "MirrorPad",
            [uniform(shape), _pairs(paddings, dtype)],
            {"mode": mode},
            lambda x, paddings, mode: np.pad(
                x, [tuple(map(int, p)) for p in paddings] or 0, mode.lower()
            ),
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, paddings, dtype, mode in (
            ("reflect", (3, 4), ((2, 0), (1, 3)), "int32", "REFLECT"),
            ("symmetric", (2, 3), ((2, 1), (0, 3)), "int64", "SYMMETRIC"),
            ("one", (1,), ((1, 1),), "int32", "SYMMETRIC"),
            ("empty", (0, 2), ((0, 0), (1, 1)), "int32", "REFLECT"),
        )
    ),
    *(
        Sample(
            "MirrorPadGrad",
            [uniform((5,)), _pairs([(2, 1)])],
            {"mode": mode},
            lambda dy, paddings, mode, matrix=matrix: np.array(matrix).T @ dy,
            dtypes=("float64",),
            label=mode.lower(),
        )
        for mode, matrix in (("SYMMETRIC", [[0, 1.0], [1, 0], [1, 0], [0, 1], [0, 1]]),)
    ),
    Sample(
        "MirrorPadGrad",
        [uniform((6, 2)), _pairs([(2, 1), (0, 0)])],
        {"mode": "REFLECT"},
        lambda dy, paddings, mode: np.stack([dy[2], dy[1] + dy[3] + dy[5], dy[0] + dy[4]]),
        dtypes=("float32", "float64", "int32"),
        label="reflect",
    ),
    Sample(
        "MirrorPadGrad",
        [uniform((0, 2)), _pairs([(0, 0), (0, 0)])],
        {"mode": "REFLECT"},
        lambda dy, paddings, mode: dy,
        label="empty",
    ),
]

REJECTS: list[Row] = [
    Reject(
        "Pad", [integers((2,), 0, 9), _pairs([(1, -1)]), None], {}, AttributeValueError, "paddings"
    ),
    Reject(
        "Pad",
        [integers((2,), 0, 9), _pairs([(1, 1), (1, 1)]), None],
        {},
        ShapeError,
        "a pair of integers for each axis",
        label="count",
    ),
    Reject(
        "Pad",
        [integers((2,), 0, 9), _pairs([(1, 1)]), integers((2,), 0, 9)],
        {},
        ShapeError,
        "must be a scalar",
        label="filler",
    ),
    Reject(
        "MirrorPad",
        [integers((2,), 0, 9), _pairs([(2, 1)])],
        {"mode": "REFLECT"},
        ShapeError,
        "at most 1",
        label="far",
    ),
    Reject(
        "MirrorPad",
        [integers((2,), 0, 9), _pairs([(1, 1)])],
        {"mode": "EDGE"},
        AttributeValueError,
        "mode must be",
    ),
    Reject(
        "MirrorPadGrad",
        [integers((2,), 0, 9), _pairs([(2, 2)])],
        {"mode": "SYMMETRIC"},
        ShapeError,
        "do not fit",
    ),
]

SAMPLES: list[Row] = [*PADDED, *REJECTS]
