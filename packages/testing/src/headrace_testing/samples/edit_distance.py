"""Samples of distances between sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import Input, array
from headrace_testing.sample import Reject, Row, Sample


def _distance(given: list[Any], truth: list[Any]) -> int:
    """Return the number of edits, by the definition's three cases."""
    if not given or not truth:
        return len(given) + len(truth)
    return min(
        _distance(given[1:], truth) + 1,
        _distance(given, truth[1:]) + 1,
        _distance(given[1:], truth[1:]) + int(given[0] != truth[0]),
    )


def _by_place(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for index, value in zip(indices, values, strict=True):
        found.setdefault(tuple(int(i) for i in index[:-1]), []).append(value)
    return found


def _oracle(*inputs: Any, normalize: bool) -> Any:
    given, truth = _by_place(*inputs[0:2]), _by_place(*inputs[3:5])
    dims = np.maximum(inputs[2], inputs[5])[:-1]
    result = np.zeros([int(d) for d in dims])
    for place in {**given, **truth}:
        mine, theirs = given.get(place, []), truth.get(place, [])
        edits = _distance(mine, theirs)
        if normalize:
            result[place] = edits / len(theirs) if theirs else np.inf
        else:
            result[place] = edits
    return result


def _sparse(sequences: list[list[int]], length: int, dtype: str | None = None) -> list[Input]:
    """Return indices, values and shape of rows of different lengths."""
    indices = [(i, j) for i, row in enumerate(sequences) for j in range(len(row))]
    values = [v for row in sequences for v in row]
    return [
        array(np.array(indices, np.int64).reshape(-1, 2), "int64"),
        array(np.array(values, np.int64), dtype),
        array([len(sequences), length], "int64"),
    ]


_GIVEN = [[1, 2, 3], [], [4, 4], [1], []]
_TRUTH = [[1, 3], [2], [], [2, 1, 1, 3], []]

SAMPLES: list[Row] = [
    *(
        Sample(
            "EditDistance",
            [*_sparse(_GIVEN, 3), *_sparse(_TRUTH, 4)],
            {"normalize": normalize},
            _oracle,
            dtypes=("int32", "float32", "uint8"),
            label=label,
        )
        for label, normalize in (("normalized", True), ("counted", False))
    ),
    Sample(
        "EditDistance",
        [*_sparse([[], []], 3, "int32"), *_sparse([[1, 2]], 2, "int32")],
        {"normalize": True},
        _oracle,
        label="empty",
    ),
    Sample(
        "EditDistance",
        [
            array([[0], [1]], "int64"),
            array([b"a", b"b"], "string"),
            array([2], "int64"),
            array([[0]], "int64"),
            array([b"b"], "string"),
            array([1], "int64"),
        ],
        {"normalize": False},
        _oracle,
        label="scalar_strings",
    ),
    Reject(
        "EditDistance",
        [*_sparse([[1]], 1, "int32"), *_sparse([[1]], 1, "int32")[:2], array([1], "int64")],
        {},
        ShapeError,
        "must have 2 dimensions",
        label="rank",
    ),
    Reject(
        "EditDistance",
        [
            *_sparse([[1]], 1, "int32"),
            array([[3, 0]], "int64"),
            array([1], "int32"),
            array([2, 1], "int64"),
        ],
        {},
        ExecutionError,
        "must lie within",
        when="run",
        label="beyond",
    ),
    Reject(
        "EditDistance",
        [
            *_sparse([[1]], 1, "int32"),
            array([[0, 0]], "int64"),
            array([b"a"], "string"),
            array([1, 1], "int64"),
        ],
        {},
        DTypeError,
        "string",
        label="dtype",
    ),
]
