"""Samples of cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS

_MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "last": {"axis": -1, "exclusive": True},
    "reverse": {"axis": 1, "reverse": True},
    "both": {"axis": 1, "exclusive": True, "reverse": True},
}


def _folded(fold: Any) -> Any:
    """Return an oracle that folds every prefix by itself."""

    def oracle(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Any:
        rows = np.moveaxis(x, axis, 0)
        count = len(rows)
        result = np.empty(rows.shape, rows.dtype)
        for i in range(count):
            if reverse:
                part = rows[i + 1 :] if exclusive else rows[i:]
            else:
                part = rows[:i] if exclusive else rows[: i + 1]
            result[i] = fold(part, axis=0, dtype=rows.dtype)
        return np.moveaxis(result, 0, axis)

    return oracle


def _recurrence(a: Any, b: Any, axis: int = 0, reverse: bool = False) -> Any:
    factors, terms = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    result = np.zeros(terms.shape, terms.dtype)
    places = range(len(terms))
    last: Any = 0
    for i in reversed(places) if reverse else places:
        last = result[i] = factors[i] * last + terms[i]
    return np.moveaxis(result, 0, axis)


def _rows(op: str, fold: Any, low: float, high: float) -> list[Row]:
    oracle = _folded(fold)
    return [
        *(
            Sample(op, [uniform((3, 4, 2), low, high)], attrs, oracle, label=label)
            for label, attrs in _MODES.items()
        ),
        Sample(op, [uniform((2, 0))], {"axis": 1}, oracle, grad=False, label="empty"),
        Sample(op, [uniform((3, 0))], {"exclusive": True}, oracle, grad=False, label="no_columns"),
        Sample(op, [uniform((1,))], {"exclusive": True}, oracle, label="one"),
        *(
            Sample(
                op,
                [array([0.0, np.nan, 2.0, np.inf, -np.inf, -0.0])],
                {"reverse": reverse, "exclusive": True},
                oracle,
                dtypes=FLOATS,
                grad=False,
                label=f"special_{reverse}",
            )
            for reverse in (False, True)
        ),
        Reject(op, [array(1.0, "float32")], {}, ShapeError, "axis 0 is out of range"),
        Reject(op, [integers((2, 3), 0, 9)], {"axis": -3}, ShapeError, "axis -3", label="axis"),
    ]


def _logsumexp(x: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Take the largest element out of each sum of a prefix."""
    rows = np.moveaxis(x, axis, 0)
    result = np.empty(rows.shape)
    for i in range(len(rows)):
        part = rows[i:] if reverse else rows[: i + 1]
        largest = part.max(0)
        shift = np.where(np.isfinite(largest), largest, 0)
        result[i] = np.log(np.exp(part - shift).sum(0)) + shift
    return np.moveaxis(result, 0, axis)


_ZEROS = array([[1.5, 0.0, 2.0, 0.5], [0.0, -1.0, 3.0, 0.0], [2.0, 1.0, -0.5, 0.0]])

SAMPLES: list[Row] = [
    *_rows("Cumsum", np.sum, -2, 2),
    Sample("Cumsum", [array([127, 1, 127, 1], "int8")], {}, _folded(np.sum), label="wrapping"),
    *_rows("Cumprod", np.prod, 0.6, 1.5),
    *(
        Sample(
            "Cumprod",
            [_ZEROS],
            {"axis": 1, **mode},
            _folded(np.prod),
            dtypes=FLOATS,
            label=f"zeros_{label}",
        )
        for label, mode in _MODES.items()
        if label != "last"
    ),
    Sample("CumulativeLogsumexp", [uniform((4, 3), -2, 2)], {}, _logsumexp),
    Sample(
        "CumulativeLogsumexp",
        [uniform((2, 5, 2), -2, 2)],
        {"axis": -2, "reverse": True},
        _logsumexp,
        label="reverse",
    ),
    Sample(
        "CumulativeLogsumexp",
        [
            array(
                [
                    [-np.inf, -np.inf, 1.0, 500.0, 501.0],
                    [-500.0, -501.0, np.inf, 1.0, -np.inf],
                    [0.0, np.nan, 1.0, np.inf, 2.0],
                ]
            )
        ],
        {"axis": 1},
        _logsumexp,
        grad=False,
        label="special",
    ),
    Sample(
        "CumulativeLogsumexp",
        [array([[-400.0, 0.0, 400.0, 399.0], [300.0, -300.0, 299.0, 301.0]])],
        {"axis": 1},
        _logsumexp,
        dtypes=("float64",),
        label="far_apart",
    ),
    Sample(
        "CumulativeLogsumexp",
        [uniform((2, 0))],
        {"axis": 1},
        lambda x, axis: np.zeros((2, 0)),
        grad=False,
        label="empty",
    ),
    Reject(
        "CumulativeLogsumexp",
        [array(1.0, "float32")],
        {},
        ShapeError,
        "axis 0 is out of range",
        label="scalar",
    ),
    Sample(
        "LinearRecurrence",
        [uniform((4, 3), -2, 2), uniform((4, 3), -2, 2)],
        {},
        _recurrence,
    ),
    Sample(
        "LinearRecurrence",
        [uniform((2, 3, 2), -2, 2), uniform((2, 3, 2), -2, 2)],
        {"axis": -2, "reverse": True},
        _recurrence,
        label="reverse",
    ),
    Sample(
        "LinearRecurrence",
        [uniform((700,), -0.9, 0.9), uniform((700,), -2, 2)],
        {},
        _recurrence,
        dtypes=("float64", "int64"),
        second_order=False,
        label="long",
    ),
    Sample(
        "LinearRecurrence",
        [uniform((0, 3)), uniform((0, 3))],
        {},
        _recurrence,
        grad=False,
        label="empty",
    ),
    Reject(
        "LinearRecurrence",
        [integers((2, 3), 0, 9), integers((3, 2), 0, 9)],
        {},
        ShapeError,
        "must have one shape",
    ),
]
