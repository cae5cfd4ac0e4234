"""Samples of sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace_testing.inputs import array, distinct, integers, uniform, whole
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS

_SOME = ("float16", "bfloat16", "float64", "int8", "uint8", "int64")


def _key(item: tuple[int, Any]) -> tuple[bool, Any]:
    """Order NaN behind all else."""
    value = item[1]
    nan = value != value
    return (bool(nan), 0 if nan else value)


def _sort(values: Any, descending: bool = False) -> tuple[Any, Any]:
    """Sort each row by Python's sort, which is stable in reverse, too."""
    indices = np.zeros(values.shape, np.int32)
    for at in np.ndindex(*values.shape[:-1]):
        row = values[at].tolist()
        order = sorted(enumerate(row), key=_key, reverse=descending)
        indices[at] = [i for i, _ in order]
    return np.take_along_axis(values, indices.astype(np.int64), -1), indices


def _top_k(x: Any, k: Any, sorted: bool = True) -> tuple[Any, Any]:
    values, indices = _sort(x, True)
    return values[..., : int(k)], indices[..., : int(k)]


def _in_top_k(predictions: Any, targets: Any, k: Any) -> Any:
    result = []
    for row, target in zip(predictions, targets, strict=True):
        inside = 0 <= target < len(row) and bool(np.all(np.isfinite(row)))
        result.append(inside and sum(p > row[target] for p in row) < k)
    return np.array(result, bool).reshape(targets.shape)


def _search(sequence: Any, values: Any, side: str = "left", out_type: Any = "int32") -> Any:
    result = np.zeros(values.shape, out_type)
    for at in np.ndindex(*values.shape[:-1]):
        for i, value in enumerate(values[at]):
            row = sequence[at]
            result[(*at, i)] = (row < value).sum() if side == "left" else (row <= value).sum()
    return result


_SPECIAL = array([[np.nan, 1.0, -np.inf, np.nan, np.inf, -1.0], [0.0, -0.0, 2.0, 2.0, 0.0, -0.0]])

SORTS: list[Row] = [
    Sample("Sort", [distinct((3, 4))], {}, _sort, grad_outputs=[0], dtypes=_SOME),
    Sample(
        "Sort",
        [distinct((2, 3, 4))],
        {"descending": True},
        _sort,
        grad_outputs=[0],
        label="descending",
    ),
    *(
        Sample(
            "Sort",
            [whole((3, 7), 0, 3)],
            {"descending": descending},
            _sort,
            grad=False,
            dtypes=("float32", "int32", "uint64"),
            label=f"ties_{descending}",
        )
        for descending in (False, True)
    ),
    *(
        Sample(
            "Sort",
            [_SPECIAL],
            {"descending": descending},
            _sort,
            grad=False,
            dtypes=FLOATS,
            label=f"special_{descending}",
        )
        for descending in (False, True)
    ),
    Sample("Sort", [uniform((2, 0))], {}, _sort, grad=False, dtypes=_SOME[:2], label="empty"),
    Sample("Sort", [uniform((0, 2))], {}, _sort, grad=False, dtypes=_SOME[:2], label="no_rows"),
    Reject("Sort", [array(1.0, "float32")], {}, ShapeError, "at least 1 dimension"),
]

TOPS: list[Row] = [
    Sample(
        "TopK",
        [distinct((3, 5)), array(2, "int32")],
        {},
        _top_k,
        grad_outputs=[0],
        dtypes=_SOME,
    ),
    Sample(
        "TopK",
        [whole((2, 3, 5), 0, 2), array(4, "int64")],
        {"sorted": False},
        _top_k,
        grad=False,
        dtypes=("float32", "int32"),
        label="ties",
    ),
    *(
        Sample(
            "TopK",
            [_SPECIAL, array(k, "int32")],
            {},
            _top_k,
            grad=False,
            dtypes=FLOATS,
            label=f"special_{k}",
        )
        for k in (1, 5)
    ),
    Sample(
        "TopK",
        [whole((3, 90), 0, 20), array(11, "int32")],
        {},
        _top_k,
        grad=False,
        dtypes=("float32", "bfloat16", "int8", "uint64"),
        label="long_ties",
    ),
    Sample(
        "TopK",
        [array([np.nan, np.inf, 3.0, np.nan, -np.inf, 0.0, -0.0, 2.0] * 9), array(18, "int32")],
        {},
        _top_k,
        grad=False,
        dtypes=FLOATS,
        label="long_special",
    ),
    Sample("TopK", [distinct((4,)), array(1, "int32")], {}, _top_k, grad_outputs=[0], label="one"),
    Sample(
        "TopK",
        [uniform((2, 3)), array(0, "int32")],
        {},
        _top_k,
        grad=False,
        dtypes=("float32",),
        label="none",
    ),
    Sample(
        "TopK",
        [uniform((2, 0)), array(0, "int32")],
        {},
        _top_k,
        grad=False,
        dtypes=("float32",),
        label="empty",
    ),
    Reject(
        "TopK",
        [integers((2, 3), 0, 9), array(4, "int32")],
        {},
        ShapeError,
        "at least k columns, got 3 for k = 4",
        label="columns",
    ),
    Reject(
        "TopK",
        [integers((2, 3), 0, 9), array(-1, "int32")],
        {},
        AttributeValueError,
        "k must be >= 0",
        label="negative",
    ),
    Reject(
        "TopK", [array(1, "int32"), array(1, "int32")], {}, ShapeError, "got a scalar", label="0d"
    ),
    Sample(
        "InTopK",
        [
            array([[0.1, 0.8, 0.3, 0.8], [0.5, 0.5, 0.1, 0.0], [0.2, np.inf, 0.1, 0.0]]),
            array([2, 1, 0], "int32"),
            array(2, "int32"),
        ],
        {},
        _in_top_k,
    ),
    Sample(
        "InTopK",
        [
            array([[0.1, 0.8], [0.5, 0.5], [0.1, 0.3], [np.nan, 0.1], [0.3, 0.2]]),
            array([-1, 2, 0, 1, 0], "int64"),
            array(1, "int64"),
        ],
        {},
        _in_top_k,
        label="outside",
    ),
    Sample(
        "InTopK",
        [uniform((0, 3)), integers((0,), 0, 1), array(1, "int32")],
        {},
        _in_top_k,
        label="empty",
    ),
    Reject(
        "InTopK",
        [uniform_32 := array([[0.5, 1.0]], "float32"), array([0, 1], "int32"), array(1, "int32")],
        {},
        ShapeError,
        "one class for each row",
        label="rows",
    ),
    Reject(
        "InTopK",
        [uniform_32, array([[0]], "int32"), array(1, "int32")],
        {},
        ShapeError,
        r"targets must be \[n\]",
        label="matrix",
    ),
]

_ROWS = array([[-1.0, 0.0, 0.0, 2.0, 5.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
_WANTED = array([[-3.0, 0.0, 1.0], [0.0, 1.0, 7.0]])

SEARCHES: list[Row] = [
    *(
        Sample(
            "SearchSorted",
            [_ROWS, _WANTED],
            {"side": side, "out_type": out_type},
            _search,
            dtypes=("float16", "bfloat16", "float64", "int8", "int64"),
            label=side,
        )
        for side, out_type in (("left", "int32"), ("right", "int64"))
    ),
    Sample(
        "SearchSorted",
        [array([1.0, 2.0, np.inf]), array([-np.inf, np.inf, 2.0])],
        {"side": "right"},
        _search,
        dtypes=FLOATS,
        label="vector",
    ),
    Sample(
        "SearchSorted",
        [uniform((2, 0)), uniform((2, 3))],
        {},
        _search,
        dtypes=("float32",),
        label="empty",
    ),
    Reject(
        "SearchSorted",
        [integers((2, 3), 0, 9), integers((3, 3), 0, 9)],
        {},
        ShapeError,
        "same leading dimensions",
        label="rows",
    ),
    Reject(
        "SearchSorted",
        [integers((3,), 0, 9), integers((3,), 0, 9)],
        {"side": "middle"},
        AttributeValueError,
        "'left' or 'right'",
        label="side",
    ),
    Reject(
        "SearchSorted",
        [integers((3,), 0, 9), integers((3,), 0, 9)],
        {"out_type": "float32"},
        DTypeError,
        "out_type must be int32 or int64",
        label="out_type",
    ),
]

SAMPLES: list[Row] = [*SORTS, *TOPS, *SEARCHES]
