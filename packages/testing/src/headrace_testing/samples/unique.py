"""Samples of sets of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import array, distinct, integers, strings, uniform, whole
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS

_SOME = ("float32", "bfloat16", "int64", "uint8", "bool", "complex64", "string")


def _unique(x: Any, out_idx: Any = "int32") -> tuple[Any, Any, Any]:
    found: list[Any] = []
    places = []
    for item in x:
        matches = [i for i, other in enumerate(found) if other == item]
        places.append(matches[0] if matches else len(found))
        if not matches:
            found.append(item)
    counts = [places.count(i) for i in range(len(found))]
    result = np.empty(len(found), x.dtype)
    result[:] = found
    return result, np.array(places, out_idx), np.array(counts, out_idx)


def _list_diff(x: Any, y: Any, out_idx: Any = "int32") -> tuple[Any, Any]:
    left = [i for i, item in enumerate(x) if not any(item == other for other in y)]
    return x[np.array(left, np.int64)], np.array(left, out_idx)


SAMPLES: list[Row] = [
    # Where elements are equal, what moves one of them makes them different.
    Sample(
        "Unique", [whole((12,), -2, 3)], {}, _unique, grad=False, dtypes=_SOME, exact_shape=False
    ),
    Sample(
        "Unique",
        [distinct((6,))],
        {},
        _unique,
        grad_outputs=[0],
        dtypes=("float32", "float64"),
        exact_shape=False,
        label="distinct",
    ),
    Sample(
        "Unique",
        [whole((9,), -2, 3)],
        {"out_idx": "int64"},
        _unique,
        dtypes=("int32", "string"),
        exact_shape=False,
        label="int64",
    ),
    Sample("Unique", [uniform((0,))], {}, _unique, grad=False, dtypes=_SOME, label="empty"),
    Sample(
        "Unique",
        [array([np.nan, 1.0, -0.0, np.nan, np.inf, 0.0, np.inf, -np.inf])],
        {},
        _unique,
        grad=False,
        dtypes=FLOATS,
        exact_shape=False,
        label="special",
    ),
    Reject("Unique", [integers((2, 3), 0, 9)], {}, ShapeError, "must be a vector", label="matrix"),
    Reject(
        "Unique", [integers((3,), 0, 9)], {"out_idx": "int8"}, DTypeError, "out_idx", label="idx"
    ),
    Sample(
        "ListDiff",
        [whole((9,), -2, 3), whole((4,), 0, 2)],
        {},
        _list_diff,
        grad=False,
        dtypes=_SOME,
        exact_shape=False,
    ),
    Sample(
        "ListDiff",
        [strings((9,)), strings((2,))],
        {"out_idx": "int64"},
        _list_diff,
        exact_shape=False,
        label="strings",
    ),
    Sample(
        "ListDiff",
        [array([np.nan, 1.0, -0.0, np.inf]), array([np.nan, 0.0, np.inf])],
        {},
        _list_diff,
        grad=False,
        dtypes=FLOATS,
        exact_shape=False,
        label="special",
    ),
    Sample(
        "ListDiff",
        [uniform((0,)), uniform((3,))],
        {},
        _list_diff,
        grad=False,
        dtypes=_SOME,
        label="empty",
    ),
    Sample(
        "ListDiff",
        [uniform((3,)), uniform((0,))],
        {},
        _list_diff,
        grad=["x"],
        grad_outputs=[0],
        dtypes=_SOME,
        exact_shape=False,
        label="all_left",
    ),
    Reject(
        "ListDiff",
        [integers((3,), 0, 9), array(1, "int32")],
        {},
        ShapeError,
        "y must be a vector",
        label="scalar",
    ),
    Reject(
        "ListDiff",
        [integers((3,), 0, 9), integers((3,), 0, 9)],
        {"out_idx": "float32"},
        DTypeError,
        "index_dtype must be int32 or int64",
        label="idx",
    ),
]
