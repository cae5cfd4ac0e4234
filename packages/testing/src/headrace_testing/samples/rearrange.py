"""Samples of reversing, rolling, and counting in another way."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ExecutionError, ShapeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample

# Where values are only moved, these stand for all dtypes of their size and kind.
_MOVED = ("float64", "float32", "int8", "int64", "bool", "complex64", "string")


def _ints(values: Any, dtype: str = "int32") -> Any:
    return array(np.array(values, np.int64), dtype)


def _sequences(input: Any, seq_lengths: Any, seq_axis: int, batch_axis: int) -> Any:
    whole = np.moveaxis(input, (batch_axis, seq_axis), (0, 1)).copy()
    for row, length in zip(whole, seq_lengths, strict=True):
        row[: int(length)] = row[: int(length)][::-1].copy()
    return np.moveaxis(whole, (0, 1), (batch_axis, seq_axis))


MOVED = [
    *(
        Sample(
            "Reverse",
            [uniform(shape), _ints(axis, dtype)],
            {},
            lambda x, axis: np.flip(x, tuple(int(a) for a in axis)),
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, axis, dtype in (
            ("both", (2, 3), [0, -1], "int32"),
            ("middle", (2, 3, 2), [1], "int64"),
            ("none", (3,), [], "int32"),
            ("scalar", (), [], "int32"),
            ("empty", (0, 2), [0], "int32"),
        )
    ),
    *(
        Sample(
            "ReverseSequence",
            [uniform(shape), _ints(lengths, dtype)],
            {"seq_axis": seq, "batch_axis": batch},
            _sequences,
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, lengths, dtype, seq, batch in (
            ("rows", (3, 4), [0, 3, 4], "int32", 1, 0),
            ("columns", (4, 2, 2), [2, 3], "int64", 0, 1),
            ("last", (2, 2, 3), [2, 3], "int32", -1, 1),
            ("empty", (2, 0), [0, 0], "int32", 1, 0),
        )
    ),
    *(
        Sample(
            "Roll",
            [uniform(shape), _ints(shift, dtype), _ints(axis)],
            {},
            lambda x, shift, axis: np.roll(
                x, tuple(np.ravel(shift).tolist()), tuple(np.ravel(axis).tolist())
            ),
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, shift, axis, dtype in (
            ("one", (5,), 2, 0, "int32"),
            ("both", (3, 4), [1, -6], [0, -1], "int64"),
            ("twice", (5, 2), [1, 3], [0, 0], "int32"),
            ("none", (3,), [], [], "int32"),
            ("empty", (0, 2), [1], [0], "int32"),
        )
    ),
]

COUNTED = [
    *(
        Sample("InvertPermutation", [_ints(x, dtype)], {}, lambda x: np.argsort(x), label=label)
        for label, x, dtype in (
            ("five", [3, 4, 0, 2, 1], "int32"),
            ("wide", [1, 0], "int64"),
            ("empty", [], "int32"),
        )
    ),
    *(
        Sample(
            "UnravelIndex",
            [_ints(indices, dtype), _ints(dims, dtype)],
            {},
            lambda indices, dims: np.array(
                np.unravel_index(indices.astype(np.int64), [int(d) for d in dims]), np.int64
            ),
            label=label,
        )
        for label, indices, dims, dtype in (
            ("cube", [0, 7, 23, 11], [2, 3, 4], "int32"),
            ("one", 5, [2, 3], "int64"),
            ("empty", [], [3, 2], "int32"),
        )
    ),
]

REJECTS: list[Row] = [
    Reject(
        "Reverse", [integers((2, 3), 0, 9), _ints([0, -2])], {}, ShapeError, "names an axis twice"
    ),
    Reject(
        "Reverse",
        [integers((2, 3), 0, 9), _ints([2])],
        {},
        ShapeError,
        "out of range",
        label="axis",
    ),
    Reject(
        "ReverseSequence",
        [integers((2, 3), 0, 9), _ints([1, 4])],
        {"seq_axis": 1},
        ExecutionError,
        "out of range",
        when="run",
        label="long",
    ),
    Reject(
        "ReverseSequence",
        [integers((2, 3), 0, 9), _ints([1, 1])],
        {"seq_axis": 0},
        ShapeError,
        "must differ",
    ),
    Reject(
        "Roll", [integers((2, 3), 0, 9), _ints([1, 1]), _ints([1])], {}, ShapeError, "one shape"
    ),
    Reject(
        "Roll", [integers((2,), 0, 9), _ints(1), _ints(1)], {}, ShapeError, "range", label="axis"
    ),
    Reject("InvertPermutation", [_ints([0, 0])], {}, ShapeError, "no permutation"),
    Reject(
        "UnravelIndex",
        [_ints([6]), _ints([2, 3])],
        {},
        ExecutionError,
        "index 6 is out of range",
        when="run",
    ),
]

SAMPLES: list[Row] = [*MOVED, *COUNTED, *REJECTS]
