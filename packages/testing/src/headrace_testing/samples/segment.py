"""Samples of reductions by segment."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ExecutionError, ShapeError
from headrace_testing.inputs import array, distinct, integers, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS

_NARROW = ("float16", "float32", "float64", "bfloat16", "int8", "int64", "uint16")


def _fold(fold: Callable[[Any], Any], start: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return an oracle that gathers each segment's elements in a list and folds that."""

    def oracle(data: Any, ids: Any, count: Any) -> Any:
        members: list[list[Any]] = [[] for _ in range(int(count))]
        for at in np.ndindex(*ids.shape):
            if ids[at] >= 0:
                members[int(ids[at])].append(data[at])
        shape = data.shape[ids.ndim :]
        rows = [
            fold(np.stack(rows)) if rows else np.full(shape, start(data.dtype)) for rows in members
        ]
        return np.stack(rows) if rows else np.zeros((0, *shape))

    return oracle


_sum = _fold(lambda rows: rows.sum(0), lambda dtype: 0)
_prod = _fold(lambda rows: rows.prod(0), lambda dtype: 1)
_IDS = array([2, 0, 2, -1, 2, 0], "int32")

SUMS: list[Row] = [
    row
    for op, oracle, values in (
        ("UnsortedSegmentSum", _sum, (-2, 2)),
        ("UnsortedSegmentProd", _prod, (0.5, 1.5)),
    )
    for row in (
        Sample(op, [uniform((6, 2), *values), _IDS, array(4, "int32")], {}, oracle),
        Sample(
            op,
            [uniform((2, 3, 2), *values), integers((2, 3), 0, 4, "int64"), array(4, "int64")],
            {},
            oracle,
            label="matrix_of_ids",
        ),
        Sample(
            op,
            [uniform((0, 3)), integers((0,), 0, 1), array(2, "int32")],
            {},
            oracle,
            grad=False,
            label="empty",
        ),
        Sample(
            op,
            [uniform((2, 3), *values), array([-1, -2], "int32"), array(0, "int32")],
            {},
            oracle,
            dtypes=("float64", "int32"),
            label="no_segments",
        ),
        Sample(
            op,
            [uniform((3,), *values), array(1, "int32"), array(2, "int32")],
            {},
            oracle,
            label="scalar_id",
        ),
        Reject(
            op,
            [integers((3, 2), 0, 9), integers((4,), 0, 2), array(2, "int32")],
            {},
            ShapeError,
            "leading axes",
            label="ids",
        ),
        Reject(
            op,
            [integers((3, 2), 0, 9), array([0, 1, 2], "int32"), array(2, "int32")],
            {},
            ExecutionError,
            "2",
            when="run",
            label="beyond",
        ),
        Reject(
            op,
            [integers((3, 2), 0, 9), array([0, 1, 2], "int32"), array(2**40, "int64")],
            {},
            ExecutionError,
            "are too many",
            when="run",
            label="many",
        ),
        Reject(
            op,
            [integers((3, 2), 0, 9), array([0, 1, 2], "int32"), array(-1, "int32")],
            {},
            AttributeValueError,
            "num_segments must be >= 0",
            label="negative",
        ),
    )
] + [
    Sample(
        "UnsortedSegmentProd",
        [
            array([[2.0, 0.0], [0.5, 7.0], [0.0, 3.0], [4.0, -1.5], [0.0, 5.0], [0.0, 0.0]]),
            array([1, -1, 1, 1, 0, 1], "int64"),
            array(2, "int32"),
        ],
        {},
        _prod,
        dtypes=FLOATS,
        label="zeros",
    )
]


def _always(value: Any, dtype: Any) -> Any:
    return value


def _limit(name: str, high: bool) -> Any:
    limits = {"float16": 65504.0, "bfloat16": 255 * 2.0**120}
    bound = limits.get(name)
    if bound is None:
        info = np.finfo(name) if name.startswith("float") else np.iinfo(name)
        return info.max if high else info.min
    return bound if high else -bound


def _extrema(op: str, fold: Callable[[Any], Any], high: bool) -> list[Row]:
    rows: list[Row] = []
    for name in _NARROW:
        limit = _limit(name, high)
        oracle = _fold(fold, functools.partial(_always, limit))
        rows += [
            Sample(
                op,
                [distinct((6, 2)), _IDS, array(4, "int32")],
                {},
                oracle,
                dtypes=(name,),
                grad=False,
                label=f"of_{name}",
            )
        ]
    return [
        *rows,
        Sample(
            op,
            [distinct((2, 3)), array([-1, -2], "int32"), array(0, "int32")],
            {},
            _fold(fold, lambda dtype: 0),
            dtypes=("float64",),
            label="no_segments",
        ),
        Sample(
            op,
            [distinct((2, 3, 2)), array([[0, 1, 1], [2, 0, 2]], "int64"), array(3, "int64")],
            {},
            _fold(fold, lambda dtype: 0),
            dtypes=("float64", "int32"),
            label="matrix_of_ids",
        ),
        Sample(
            op,
            [
                array([np.nan, 1.0, np.inf, -np.inf, 0.0, np.nan]),
                array([0, 0, 1, 1, 2, 3], "int32"),
                array(4, "int32"),
            ],
            {},
            _fold(fold, lambda dtype: 0),
            dtypes=FLOATS,
            grad=False,
            label="special",
        ),
    ]


EXTREMA = [
    *_extrema("UnsortedSegmentMax", lambda rows: rows.max(0), high=False),
    *_extrema("UnsortedSegmentMin", lambda rows: rows.min(0), high=True),
]

COUNTS: list[Row] = [
    *(
        Sample(
            "SegmentCount",
            [array(ids, dtype), None if given is None else array(given, "int64")],
            {},
            lambda ids, given=None, count=count: ids.dtype.type(count),
            label=label,
        )
        for label, ids, dtype, given, count in (
            ("typical", [0, 0, 1, 5, 5], "int32", None, 6),
            ("one", [3], "int64", None, 4),
            ("empty", [], "int32", None, 0),
            ("given", [0, 2], "int32", 7, 7),
            ("empty_given", [], "int64", 2, 2),
        )
    ),
    *(
        Reject(
            "SegmentCount",
            [array([0, 2], "int32"), array(given, "int32")],
            {},
            AttributeValueError,
            match,
            label=f"given_{given}",
        )
        for given, match in ((2, "num_segments is 2"), (-1, "must be >= 0"))
    ),
    *(
        Reject("SegmentCount", [array(ids, "int32"), None], {}, error, match, label=label)
        for label, ids, error, match in (
            ("descending", [0, 2, 1], AttributeValueError, "ascending order"),
            ("negative", [-1, 2], AttributeValueError, "must be >= 0, got -1"),
            ("matrix", [[0, 1]], ShapeError, "must be a vector"),
        )
    ),
]

SAMPLES: list[Row] = [*SUMS, *EXTREMA, *COUNTS]
