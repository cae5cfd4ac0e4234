"""Samples of array ops: shapes and the same elements in another arrangement."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample


def _number(value: Any) -> Any:
    return np.asarray(value, np.int64)


SHAPES = [
    row
    for label, shape in (("matrix", (3, 4)), ("scalar", ()), ("empty", (2, 0)))
    for row in (
        Sample("Shape", [uniform(shape)], {}, lambda x: _number(x.shape), label=label),
        Sample("Size", [uniform(shape)], {}, lambda x: _number(x.size), label=label),
        Sample("Rank", [uniform(shape)], {}, lambda x: _number(x.ndim), label=label),
    )
] + [
    Sample(
        op,
        [uniform((3, 4))],
        {"out_type": "int64"},
        lambda x, out_type, of=of: _number(of(x)),
        dtypes=("float32",),
        label="int64",
    )
    for op, of in (("Shape", np.shape), ("Size", np.size))
]

ARRANGED = [
    *(
        Sample(
            "Reshape",
            [uniform(source), array(np.array(target, np.int64), dtype)],
            {},
            lambda x, shape: np.reshape(x, [int(d) for d in shape]),
            label=label,
        )
        for label, source, target, dtype in (
            ("matrix", (3, 4), [2, 6], "int32"),
            ("free", (3, 4), [2, -1, 2], "int64"),
            ("scalar", (1, 1), [], "int32"),
            ("from_scalar", (), [1, -1], "int32"),
            ("empty", (0, 4), [2, 0, 3], "int32"),
        )
    ),
    *(
        Sample(
            "Transpose",
            [uniform(shape)],
            {"perm": perm},
            lambda a, perm: np.transpose(a, perm),
            label=label,
        )
        for label, shape, perm in (
            ("default", (2, 3, 4), None),
            ("cycle", (2, 3, 4), (1, 2, 0)),
            ("negative", (2, 3, 4), (0, -1, 1)),
            ("scalar", (), ()),
            ("empty", (0, 3), (1, 0)),
        )
    ),
    *(
        Sample(
            "ExpandDims",
            [uniform(shape)],
            {"axis": axis},
            lambda x, axis: np.expand_dims(x, axis),
            label=label,
        )
        for label, shape, axis in (
            ("front", (2, 3), 0),
            ("last", (2, 3), -1),
            ("scalar", (), 0),
            ("empty", (0,), 1),
        )
    ),
    *(
        Sample(
            "Squeeze",
            [uniform(shape)],
            {"axis": axis},
            lambda x, axis: np.squeeze(x, axis),
            label=label,
        )
        for label, shape, axis in (
            ("all", (1, 3, 1), None),
            ("one", (1, 3, 1), -1),
            ("two", (1, 3, 1), (0, 2)),
            ("scalar", (), None),
            ("empty", (1, 0), 0),
        )
    ),
    *(
        Sample(
            "BroadcastTo",
            [uniform(source), array(np.array(target, np.int64), dtype)],
            {},
            lambda x, shape: np.broadcast_to(x, [int(d) for d in shape]),
            label=label,
        )
        for label, source, target, dtype in (
            ("rows", (3,), [2, 3], "int32"),
            ("column", (3, 1), [2, 3, 4], "int64"),
            ("scalar", (), [2, 2], "int32"),
            ("same", (2, 3), [2, 3], "int32"),
            ("empty", (1, 3), [0, 3], "int32"),
        )
    ),
    *(
        Sample(
            "TransposeBy",
            [uniform(shape), array(np.array(perm, np.int64), dtype)],
            {},
            lambda a, perm: np.transpose(a, [int(p) for p in perm]),
            label=label,
        )
        for label, shape, perm, dtype in (
            ("cycle", (2, 3, 4), [1, 2, 0], "int32"),
            ("negative", (2, 3, 4), [0, -1, 1], "int64"),
            ("scalar", (), [], "int32"),
            ("empty", (0, 3), [1, 0], "int32"),
        )
    ),
    *(
        Sample(
            "BroadcastShape",
            [array(np.array(x, np.int64), "int32"), array(np.array(y, np.int64), dtype)],
            {},
            lambda x, y: np.array(np.broadcast_shapes(tuple(x), tuple(y)), np.int64),
            label=label,
        )
        for label, x, y, dtype in (
            ("both", [2, 1, 3], [4, 1], "int32"),
            ("scalar", [], [4, 1], "int64"),
            ("empty", [0, 1], [5], "int32"),
        )
    ),
]

REJECTS: list[Row] = [
    Reject(
        "Reshape",
        [integers((3, 4), 0, 9), array([5, -1], "int32")],
        {},
        ShapeError,
        "12 elements",
        label="count",
    ),
    Reject(
        "Reshape",
        [integers((3, 4), 0, 9), array([-1, -1], "int32")],
        {},
        ShapeError,
        "one -1",
        label="free",
    ),
    Reject("Transpose", [integers((2, 3), 0, 9)], {"perm": (0, 0)}, ShapeError, "no permutation"),
    Reject("ExpandDims", [integers((2, 3), 0, 9)], {"axis": 4}, ShapeError, "axis"),
    Reject("Squeeze", [integers((2, 3), 0, 9)], {"axis": 0}, ShapeError, "has size 2, not 1"),
    Reject(
        "BroadcastTo",
        [integers((2, 3), 0, 9), array([4, 3], "int32")],
        {},
        ShapeError,
        "not broadcast",
    ),
    Reject(
        "TransposeBy",
        [integers((2, 3), 0, 9), array([0, 0], "int32")],
        {},
        ShapeError,
        "no permutation",
    ),
    Reject(
        "BroadcastShape",
        [array([2, 3], "int32"), array([2], "int32")],
        {},
        ShapeError,
        "do not broadcast",
    ),
    Reject("Shape", [integers((2,), 0, 9)], {"out_type": "float32"}, DTypeError, "int32 or int64"),
    Reject("Size", [integers((2,), 0, 9)], {"out_type": "int8"}, DTypeError, "int32 or int64"),
]

SAMPLES: list[Row] = [*SHAPES, *ARRANGED, *REJECTS]
