"""Samples of softmax and cross-entropies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS


def _log_softmax(logits: Any, axis: int | None = None) -> Any:
    at = -1 if axis is None else axis
    shifted = logits - np.max(logits, axis=at, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=at, keepdims=True))


def _softmax(logits: Any, axis: int | None = None) -> Any:
    return np.exp(_log_softmax(logits, axis))


def _cross_entropy(features: Any, labels: Any) -> tuple[Any, Any]:
    logs = _log_softmax(features)
    return -np.sum(labels * logs, axis=-1), np.exp(logs) - labels


def _sparse_cross_entropy(features: Any, labels: Any) -> tuple[Any, Any]:
    logs = _log_softmax(features)
    rows = np.arange(len(labels))
    gradient = np.exp(logs)
    gradient[rows, labels] -= 1
    return -logs[rows, labels], gradient


_SHAPES: dict[str, tuple[tuple[int, ...], int | None]] = {
    "matrix": ((3, 4), None),
    "vector": ((5,), None),
    "first_axis": ((3, 2), 0),
    "middle": ((2, 3, 4), -2),
    "one_class": ((3, 1), None),
    "no_rows": ((0, 4), None),
}


def _softmax_rows(op: str, oracle: Callable[..., Any]) -> list[Row]:
    """Return the rows of softmax or of its logarithm."""
    return [
        *(
            Sample(op, [uniform(shape, -3, 3)], {"axis": axis}, oracle, label=label)
            for label, (shape, axis) in _SHAPES.items()
        ),
        Sample(
            op,
            [array([[1000.0, 1001.0, 999.0], [-1000.0, -1001.0, -999.0]])],
            {},
            oracle,
            dtypes=("float32", "float64"),
            grad=False,
            label="large",
        ),
        Sample(
            op,
            [array([[0.0, -np.inf], [1.0, np.nan]])],
            {},
            oracle,
            dtypes=FLOATS,
            grad=False,
            label="special",
        ),
        Reject(op, [array(1.0, "float32")], {}, ShapeError, "at least 1 dimension"),
        Reject(op, [integers((2, 3), 0, 9)], {}, DTypeError, "floating, got int32", label="dtype"),
    ]


SOFTMAX = [*_softmax_rows("Softmax", _softmax), *_softmax_rows("LogSoftmax", _log_softmax)]

# The second output is the gradient that the first one's rule uses; nothing else reads it.
CROSS_ENTROPY = [
    Sample(
        "SoftmaxCrossEntropyWithLogits",
        [
            uniform((4, 3), -3, 3),
            array([[0.25, 0.25, 0.5], [1, 0, 0], [0.125, 0.5, 0.375], [0.5, 0, 0.5]]),
        ],
        {},
        _cross_entropy,
        grad_outputs=(0,),
    ),
    Sample(
        "SoftmaxCrossEntropyWithLogits",
        [
            array([[1000.0, 0.0], [-1000.0, 1000.0], [0.0, 0.0]]),
            array([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]]),
        ],
        {},
        _cross_entropy,
        dtypes=("float32", "float64"),
        grad=False,
        label="large",
    ),
    Sample(
        "SoftmaxCrossEntropyWithLogits",
        [uniform((0, 3)), uniform((0, 3))],
        {},
        _cross_entropy,
        grad_outputs=(0,),
        label="empty",
    ),
    *(
        Sample(
            "SparseSoftmaxCrossEntropyWithLogits",
            [uniform((4, 3), -3, 3), array([2, 0, 1, 2], dtype)],
            {},
            _sparse_cross_entropy,
            grad_outputs=(0,),
            label=dtype,
        )
        for dtype in ("int32", "int64")
    ),
    Sample(
        "SparseSoftmaxCrossEntropyWithLogits",
        [array([[1000.0, 0.0], [1000.0, 0.0]]), array([0, 1], "int32")],
        {},
        _sparse_cross_entropy,
        dtypes=("float32", "float64"),
        grad=False,
        label="large",
    ),
    Sample(
        "SparseSoftmaxCrossEntropyWithLogits",
        [uniform((0, 3)), integers((0,), 0, 3)],
        {},
        _sparse_cross_entropy,
        grad_outputs=(0,),
        label="empty",
    ),
]

_FLOATS = integers((2, 3), 0, 9, "float32")
REJECTS: list[Row] = [
    Reject(
        "SoftmaxCrossEntropyWithLogits",
        [_FLOATS, integers((2, 4), 0, 9, "float32")],
        {},
        ShapeError,
        "must have one shape",
        label="shapes",
    ),
    Reject(
        "SoftmaxCrossEntropyWithLogits",
        [integers((2,), 0, 9, "float32")] * 2,
        {},
        ShapeError,
        r"must be \[n, classes\]",
        label="rank",
    ),
    Reject(
        "SparseSoftmaxCrossEntropyWithLogits",
        [_FLOATS, integers((3,), 0, 3)],
        {},
        ShapeError,
        "one entry per row",
        label="rows",
    ),
    Reject(
        "SparseSoftmaxCrossEntropyWithLogits",
        [_FLOATS, integers((2,), 0, 3, "float32")],
        {},
        DTypeError,
        "int32 or int64, got float32",
        label="dtype",
    ),
    Reject(
        "SparseSoftmaxCrossEntropyWithLogits",
        [_FLOATS, array([0, 3], "int32")],
        {},
        ExecutionError,
        "3",
        when="run",
        label="class",
    ),
]

LOSSES: list[Row] = [
    Sample("L2Loss", [uniform((3, 4), -2, 2)], {}, lambda t: np.sum(t * t) / 2),
    Sample("L2Loss", [uniform(())], {}, lambda t: t * t / 2, label="scalar"),
    Sample("L2Loss", [uniform((0, 2))], {}, lambda t: np.sum(t * t) / 2, label="empty"),
]

SAMPLES: list[Row] = [*SOFTMAX, *CROSS_ENTROPY, *LOSSES, *REJECTS]
