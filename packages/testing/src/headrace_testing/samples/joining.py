"""Samples of joining and splitting, and of repeating."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array, integers, strings, uniform
from headrace_testing.sample import Reject, Row, Sample

# Where values are only moved, these stand for all dtypes of their size and kind.
_MOVED = ("float64", "float32", "int8", "int64", "bool", "complex64", "string")


JOINED = [
    *(
        Sample(
            "Concat",
            [[uniform(shape) for shape in shapes]],
            {"axis": axis},
            lambda values, axis: np.concatenate(values, axis),
            label=label,
        )
        for label, shapes, axis in (
            ("rows", [(2, 3), (1, 3), (4, 3)], 0),
            ("columns", [(2, 3), (2, 1)], -1),
            ("one", [(2, 3)], 1),
            ("empty", [(2, 0), (2, 3)], 1),
        )
    ),
    *(
        Sample(
            "Stack",
            [[uniform(shape)] * count],
            {"axis": axis},
            lambda values, axis: np.stack(values, axis),
            label=label,
        )
        for label, shape, count, axis in (
            ("first", (2, 3), 3, 0),
            ("last", (2, 3), 2, -1),
            ("scalars", (), 3, 0),
            ("empty", (0, 2), 2, 1),
        )
    ),
    *(
        Sample(
            "Unstack",
            [uniform(shape)],
            {"num": shape[axis], "axis": axis},
            lambda value, num, axis: tuple(np.moveaxis(value, axis, 0)),
            label=label,
        )
        for label, shape, axis in (
            ("rows", (3, 2), 0),
            ("columns", (3, 2), -1),
            ("vector", (2,), 0),
            ("empty", (2, 0), 0),
        )
    ),
    *(
        Sample(
            "Split",
            [uniform(shape)],
            {"sizes": sizes, "axis": axis},
            lambda value, sizes, axis: tuple(np.split(value, np.cumsum(sizes)[:-1], axis)),
            label=label,
        )
        for label, shape, sizes, axis in (
            ("rows", (5, 2), (2, 3), 0),
            ("columns", (2, 6), (1, 4, 1), -1),
            ("whole", (3,), (3,), 0),
            ("empty", (3, 2), (0, 3), 0),
        )
    ),
    *(
        Sample(
            "SplitBy",
            [uniform(shape), array(np.array(sizes, np.int64), dtype)],
            {"num": len(sizes), "axis": axis},
            lambda value, sizes, num, axis: tuple(
                np.split(value, np.cumsum(sizes)[:-1] if -1 not in sizes else [2, 4], axis)
            ),
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, sizes, dtype, axis in (
            ("rows", (5, 2), [2, 3], "int32", 0),
            ("rest", (2, 5), [2, -1, 1], "int64", -1),
            ("empty", (3, 0), [0, 3], "int32", 0),
        )
    ),
]


def _tiled(total: Any, multiples: Any, shape: Any) -> Any:
    pairs = [int(d) for pair in zip(multiples, shape, strict=True) for d in pair]
    return total.reshape(pairs).sum(tuple(range(0, len(pairs), 2)))


REPEATED = [
    *(
        Sample(
            "Tile",
            [uniform(shape), array(np.array(multiples, np.int64), dtype)],
            {},
            lambda x, multiples: np.tile(x, [int(m) for m in multiples]),
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, multiples, dtype in (
            ("matrix", (2, 3), (2, 1), "int32"),
            ("both", (1, 3), (3, 2), "int64"),
            ("none", (2, 3), (0, 1), "int32"),
            ("empty", (0, 3), (2, 2), "int32"),
            ("scalar", (), (), "int32"),
        )
    ),
    *(
        Sample(
            "TileGrad",
            [
                uniform([m * d for m, d in zip(multiples, shape, strict=True)]),
                array(np.array(multiples, np.int64), "int32"),
                array(np.array(shape, np.int64), "int32"),
            ],
            {},
            _tiled,
            dtypes=("float16", "float32", "float64", "int32", "complex64"),
            label=label,
        )
        for label, shape, multiples in (
            ("matrix", (2, 3), (2, 1)),
            ("none", (2, 3), (0, 1)),
            ("empty", (0, 3), (2, 2)),
            ("scalar", (), ()),
        )
    ),
]


REJECTS: list[Row] = [
    Reject(
        "Concat",
        [[integers((2, 3), 0, 9), integers((3, 2), 0, 9)]],
        {"axis": 0},
        ShapeError,
        "differ in axis 1",
        label="shapes",
    ),
    Reject(
        "Concat",
        [[integers((2,), 0, 9), strings((2,))]],
        {"axis": 0},
        DTypeError,
        "string",
        label="dtypes",
    ),
    Reject("Concat", [[integers((), 0, 9)] * 2], {"axis": 0}, ShapeError, "use stack"),
    Reject("Stack", [[integers((2,), 0, 9), integers((3,), 0, 9)]], {}, ShapeError, "incompatible"),
    Reject("Unstack", [integers((2, 3), 0, 9)], {"num": 3}, ShapeError, "has size 2, not 3"),
    Reject("Split", [integers((5,), 0, 9)], {"sizes": (2, 2)}, ShapeError, "add up to 4"),
    Reject(
        "SplitBy",
        [integers((5,), 0, 9), array([2, 2], "int32")],
        {"num": 2},
        ShapeError,
        "do not divide",
    ),
    Reject(
        "Tile",
        [integers((2, 3), 0, 9), array([2], "int32")],
        {},
        ShapeError,
        "1 multiples",
        label="few",
    ),
    Reject("Tile", [integers((2,), 0, 9), array([-1], "int32")], {}, AttributeValueError, ">= 0"),
    Reject(
        "TileGrad",
        [integers((5,), 0, 9), array([2], "int32"), array([2], "int32")],
        {},
        ExecutionError,
        "must have shape",
        when="run",
    ),
]

SAMPLES: list[Row] = [*JOINED, *REPEATED, *REJECTS]
