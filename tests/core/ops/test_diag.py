"""Diagonals and bands of matrices."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError
from tests.core.ops.values import evaluate, fed, same

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(12.0).reshape(3, 4)


VALUES = {
    "diag": (lambda: hr.diag([1, 2]), np.int32([[1, 0], [0, 2]])),
    "diag of a matrix": (lambda: hr.diag_part(hr.diag(X)), X),
    "matrix_diag": (lambda: hr.matrix_diag(X)[1], np.diag(X[1])),
    "matrix_diag above": (lambda: hr.matrix_diag([1.0, 2], k=1), np.diag([1.0, 2], 1)),
    "matrix_diag size": (
        lambda: hr.matrix_diag([1, 2], num_rows=3, num_cols=2, padding_value=7),
        np.int32([[1, 7], [7, 2], [7, 7]]),
    ),
    "matrix_diag band": (
        lambda: hr.matrix_diag([[1, 2, 0], [3, 4, 5]], k=(0, 1)),
        np.int32([[3, 1, 0], [0, 4, 2], [0, 0, 5]]),
    ),
    "matrix_diag right": (
        lambda: hr.matrix_diag([[0, 1, 2], [3, 4, 5]], k=(0, 1), align="RIGHT_LEFT"),
        np.int32([[3, 1, 0], [0, 4, 2], [0, 0, 5]]),
    ),
    "part": (lambda: hr.matrix_diag_part(fed(X, [None, None])), np.diag(X)),
    "part below": (lambda: hr.matrix_diag_part(X, k=-2), np.array([8.0])),
    "part band": (
        lambda: hr.matrix_diag_part(X, k=(-1, 2), padding_value=9),
        np.array([[2.0, 7, 9], [1, 6, 11], [0, 5, 10], [4, 9, 9]]),
    ),
    "part band fed": (
        lambda: hr.matrix_diag_part(
            fed(X, [None, None]), k=(-1, 2), padding_value=9, align="RIGHT_RIGHT"
        ),
        np.array([[9.0, 2, 7], [1, 6, 11], [0, 5, 10], [9, 4, 9]]),
    ),
    "set": (lambda: hr.matrix_set_diag(X, [7.0, 8, 9])[1], np.array([4.0, 8, 6, 7])),
    "set band": (
        lambda: hr.matrix_set_diag(X, [[1.0, 2, 3], [4, 5, 6]], k=(0, 1))[0],
        np.array([4.0, 1, 2, 3]),
    ),
    "band": (lambda: hr.matrix_band_part(X, 1, 0), np.tril(np.triu(X, -1))),
    "band all": (lambda: hr.matrix_band_part(X, -1, fed(np.int64(0), [])), np.tril(X)),
    "band of special values": (
        lambda: hr.matrix_band_part([[np.nan, np.inf], [np.inf, 1.0]], 0, 0),
        np.array([[np.nan, 0], [0, 1]]),
    ),
    "linalg": (
        lambda: [hr.linalg.diag([1, 2]), hr.linalg.diag_part(X), hr.linalg.band_part(X, 0, 0)[0]],
        [np.int32([[1, 0], [0, 2]]), np.diag(X), np.array([0.0, 0, 0, 0])],
    ),
    "transpose": (
        lambda: hr.matrix_transpose([[[1j, 2]]], conjugate=True),
        np.array([[[-1j], [2]]]),
    ),
    "transpose of any rank": (lambda: hr.linalg.transpose(fed(X)), X.T),
    "empty": (lambda: hr.matrix_diag(np.zeros((2, 0))), np.zeros((2, 0, 0))),
}

ERRORS = {
    "diag": (lambda: hr.diag(5), ShapeError, "above 0"),
    "part": (lambda: hr.diag_part(X), ShapeError, "incompatible"),
    "k": (lambda: hr.matrix_diag_part(X, k=4), ShapeError, "no diagonals"),
    "band order": (lambda: hr.matrix_diag_part(X, k=(1, 0)), AttributeValueError, "rising pair"),
    "align": (lambda: hr.matrix_diag_part(X, align="LEFT"), AttributeValueError, "align must be"),
    "rank": (lambda: hr.matrix_diag_part([1, 2]), ShapeError, "2 axes at least"),
    "set": (lambda: hr.matrix_set_diag(X, [7.0, 8, 9, 1]), ShapeError, "incompatible"),
    "band": (lambda: hr.matrix_band_part(X, 4, 0), ShapeError, "at most 3"),
    "size": (lambda: hr.matrix_diag([1, 2], num_rows=1), ShapeError, "do not have 2 elements"),
}

SHAPES = {
    "part": (lambda: hr.matrix_diag_part(hr.placeholder(hr.float32, [None, 3, 4]), k=1), [None, 3]),
    "diag": (lambda: hr.matrix_diag(hr.placeholder(hr.float32, [None, 3])), [None, 3, 3]),
    "set": (
        lambda: hr.matrix_set_diag(
            hr.placeholder(hr.float32, [None, 3, 4]), hr.placeholder(hr.float32, [None, 3])
        ),
        [None, 3, 4],
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    build, expected = VALUES[name]
    same(evaluate(build)[1], expected)


@pytest.mark.parametrize("name", ERRORS)
def test_refused(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        evaluate(build)


@pytest.mark.parametrize("name", SHAPES)
def test_static_shape(name):
    build, expected = SHAPES[name]
    with hr.Graph().as_default():
        assert build().shape == expected
