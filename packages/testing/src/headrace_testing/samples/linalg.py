"""Samples of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import Input, array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS


def _product(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    # Written out as sums: independent of the BLAS that kernels call.
    return np.sum(left[..., :, :, None] * right[..., None, :, :], axis=-2)


def _pair(left: tuple[int, ...], right: tuple[int, ...]) -> list[Input]:
    return [uniform(left, -2, 2), uniform(right, -2, 2)]


SAMPLES: list[Row] = [
    Sample("MatMul", _pair((3, 4), (4, 5)), {}, _product, label="matrices"),
    Sample("MatMul", _pair((1, 1), (1, 1)), {}, _product, label="ones"),
    Sample("MatMul", _pair((4, 3), (4, 5)), {"transpose_a": True}, _product, label="left"),
    Sample("MatMul", _pair((3, 4), (5, 4)), {"transpose_b": True}, _product, label="right"),
    Sample(
        "MatMul",
        _pair((4, 3), (5, 4)),
        {"transpose_a": True, "transpose_b": True},
        _product,
        label="both",
    ),
    Sample("MatMul", _pair((2, 3, 4), (2, 4, 2)), {}, _product, label="batch"),
    Sample("MatMul", _pair((2, 1, 3, 4), (3, 4, 2)), {}, _product, label="broadcast"),
    Sample(
        "MatMul",
        _pair((2, 4, 3), (5, 4)),
        {"transpose_a": True, "transpose_b": True},
        _product,
        label="batch_by_matrix",
    ),
    Sample("MatMul", _pair((0, 4), (4, 5)), {}, _product, label="no_rows"),
    Sample("MatMul", _pair((3, 0), (0, 5)), {}, _product, label="no_inner", grad=False),
    Sample(
        "MatMul",
        [array([[np.inf, 1.0], [np.nan, 0.0]]), array([[1.0, 2.0], [3.0, -np.inf]])],
        {},
        _product,
        dtypes=FLOATS,
        grad=False,
        label="special",
    ),
    Sample(
        "MatMul",
        [array([[127, 127]], "int8"), array([[2], [3]], "int8")],
        {},
        _product,
        label="wrapping",
    ),
    Reject(
        "MatMul",
        [integers((3, 4), 0, 9, "float32"), integers((5, 4), 0, 9, "float32")],
        {},
        ShapeError,
        "inner dimensions differ: 4 .* 5",
        label="inner",
    ),
    Reject(
        "MatMul",
        [integers((3,), 0, 9, "float32"), integers((3, 4), 0, 9, "float32")],
        {},
        ShapeError,
        "at least 2 dimensions",
        label="rank",
    ),
    Reject(
        "MatMul",
        [integers((3, 4), 0, 9, "float32"), integers((4, 2), 0, 9, "int64")],
        {},
        DTypeError,
        "neither holds every value",
        label="dtypes",
    ),
    Reject("MatMul", [array([[True]], "bool")] * 2, {}, DTypeError, "numeric, got bool"),
]
