"""Samples of crosses; the hashes are those that TensorFlow 1.15 gives for the same features."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import Input, array
from headrace_testing.sample import Reject, Row, Sample


def _text(items: Any) -> Input:
    return array(np.array(items, object), "string")


_PLACES = array([[0, 0], [1, 0], [1, 1]], "int64")
_TWO = array([2, 2], "int64")
_LETTERS = _text([b"a", b"b", b"c"])
_NUMBERS = array([1, -2, 3], "int64")
_DENSE = _text([[b"f"], [b"g"]])
_FIRST: list[Any] = [[_PLACES], [_LETTERS], [_TWO]]
_BOTH: list[Any] = [[_PLACES, _PLACES], [_LETTERS, _NUMBERS], [_TWO, _TWO], []]
_FIVE = np.array([[0, 0], [1, 0], [1, 1], [1, 2], [1, 3]])


def _found(places: Any, values: Any, most: int) -> Any:
    return np.array(places), values, np.array([2, most])


def _of_no_rows(*_: Any) -> Any:
    return np.zeros((0, 2), np.int64), np.empty(0, object), np.array([0, 0])


SAMPLES: list[Row] = [
    Sample(
        "SparseCross",
        [*_FIRST, [_DENSE]],
        {},
        lambda *_: _found(_FIVE[:3], np.array([b"a_X_f", b"b_X_g", b"c_X_g"], object), 2),
        exact_shape=False,
    ),
    Sample(
        "SparseCross",
        _BOTH,
        {},
        lambda *_: _found(
            _FIVE, np.array([b"a_X_1", b"b_X_-2", b"b_X_3", b"c_X_-2", b"c_X_3"], object), 4
        ),
        exact_shape=False,
        label="numbers",
    ),
    Sample(
        "SparseCross",
        [[], [], [], [array([[5, 6], [7, 8]], "int64"), _DENSE]],
        {},
        lambda *_: _found(
            [[0, 0], [0, 1], [1, 0], [1, 1]],
            np.array([b"5_X_f", b"6_X_f", b"7_X_g", b"8_X_g"], object),
            2,
        ),
        exact_shape=False,
        label="dense",
    ),
    Sample("SparseCross", [[], [], [], []], {}, _of_no_rows, exact_shape=False, label="nothing"),
    Sample(
        "SparseCross",
        [*_FIRST, [array(np.zeros((2, 0)), "int64")]],
        {},
        lambda *_: _found(np.zeros((0, 2), np.int64), np.empty(0, object), 0),
        exact_shape=False,
        label="no columns",
    ),
    *(
        Sample(
            "SparseCross",
            _BOTH,
            {"hashed_output": True, **options},
            lambda *_, words=words, **options: _found(_FIVE, np.array(words), 4),
            exact_shape=False,
            label=label,
        )
        for label, options, words in (
            (
                "hashed",
                {"hash_key": 7},
                [
                    *(7182250513110948477, 2323645070117978479, 7204383125417085275),
                    *(6827296616277792341, 6430925145652085205),
                ],
            ),
            (
                "negative key",
                {"hash_key": -1},
                [
                    *(7209933908339442788, 566219016135653497, 5548846182171133925),
                    *(4593049830377942789, 4679674406782350082),
                ],
            ),
            ("one bucket", {"num_buckets": 1}, [0, 0, 0, 0, 0]),
        )
    ),
    Sample(
        "SparseCross",
        [*_FIRST, []],
        {"hashed_output": True},
        lambda *_, hashed_output: _found(
            _FIVE[:3],
            np.array([3550520439517529108, 5701958020731327761, 5287514571041673476]),
            2,
        ),
        exact_shape=False,
        label="one alone",
    ),
    *(
        Reject("SparseCross", inputs, attrs, error, match, label=label)
        for label, inputs, attrs, error, match in (
            ("buckets", _BOTH, {"num_buckets": -1}, AttributeValueError, "num_buckets must be at"),
            ("key", _BOTH, {"hash_key": 2**64}, AttributeValueError, "hash_key must be an integer"),
            (
                "parts",
                [[_PLACES], [], [_TWO], []],
                {},
                AttributeValueError,
                "indices, values and a shape",
            ),
            (
                "dtype",
                [[], [], [], [array([[1.0]], "float32")]],
                {},
                DTypeError,
                "dense tensor 0 must be string or int64, got float32",
            ),
            (
                "vector",
                [[], [], [], [_text([b"f"])]],
                {},
                ShapeError,
                "dense tensor 0 must have 2 dimensions",
            ),
            (
                "indices",
                [[array([[0]], "int64")], [_text([b"a"])], [array([1], "int64")], []],
                {},
                ShapeError,
                "sparse tensor 0 must have 2 dimensions, got indices",
            ),
            (
                "shape",
                [[_PLACES], [_LETTERS], [array([1], "int64")], []],
                {},
                ShapeError,
                "sparse tensor 0 must have 2 dimensions, got a shape",
            ),
            (
                "values",
                [[_PLACES], [_text([b"a"])], [_TWO], []],
                {},
                ShapeError,
                "must have one value for each",
            ),
            (
                "rows",
                [[], [], [], [_DENSE, _text([[b"f"]])]],
                {},
                ShapeError,
                "same number of rows, got 2, and 1 in dense tensor 1",
            ),
        )
    ),
    *(
        Reject(
            "SparseCross",
            [[array(places, "int64")], [_text([b"a", b"b"])], [array(shape, "int64")], []],
            {},
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, places, shape, match in (
            ("order", [[1, 0], [0, 0]], [2, 2], "sparse tensor 0 are not in order of their rows"),
            ("outside", [[0, 0], [5, 0]], [2, 2], "must be from 0 to 1"),
            ("negative", [[0, 0], [0, 1]], [-1, 2], "cannot have -1 rows"),
            ("many rows", [[0, 0], [1, 0]], [2**40, 2], "at most 1000000000 are crossed"),
        )
    ),
    Reject(
        "SparseCross",
        [[], [], [], [_text([[b"a"] * 4000]), _text([[b"a"] * 4000]), _text([[b"a"] * 4000])]],
        {},
        ExecutionError,
        "64000000000 crosses of the features",
        when="run",
        label="many",
    ),
]
