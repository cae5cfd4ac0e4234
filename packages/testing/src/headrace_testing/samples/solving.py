"""Samples of linear equations: the oracles are sums over permutations, and what follows of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from headrace.errors import DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import NDArray, array, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.decompositions import each, matrices


def _determinant(a: NDArray) -> Any:
    """Sum the signed products of one element of each row and column."""
    total = np.zeros((), a.dtype)
    for order in itertools.permutations(range(len(a))):
        swaps = sum(i > j for i, j in itertools.combinations(order, 2))
        total = total + (-1) ** swaps * np.prod([a[i, j] for i, j in enumerate(order)])
    return total


def _inverse(a: NDArray) -> Any:
    """Divide the determinants of minors by that of the matrix (Cramer's rule)."""
    n = len(a)
    inverse = np.zeros_like(a)
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(a, j, 0), i, 1)
            inverse[i, j] = (-1) ** (i + j) * _determinant(minor)
    return inverse / _determinant(a)


def _adjointed(x: NDArray) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _inverses(x: NDArray, adjoint: bool = False) -> Any:
    inverses = each(_inverse, x)
    return _adjointed(inverses) if adjoint else inverses


def _logarithms(x: NDArray) -> tuple[NDArray, NDArray]:
    found = each(_determinant, x)
    return found / np.abs(found), np.log(np.abs(found)).astype(x.dtype)


def _solution(matrix: NDArray, rhs: NDArray, adjoint: bool = False) -> Any:
    inverses = _inverses(matrix, adjoint)
    return np.sum(inverses[..., :, :, None] * rhs[..., None, :, :], -2)


def _triangular(matrix: NDArray, rhs: NDArray, lower: bool = True, adjoint: bool = False) -> Any:
    return _solution(np.tril(matrix) if lower else np.triu(matrix), rhs, adjoint)


def _pseudo_inverse(x: NDArray, rcond: NDArray) -> Any:
    """Solve the normal equations of matrices of full rank."""
    adjointed = _adjointed(x)
    if x.shape[-2] >= x.shape[-1]:
        return each(_inverse, adjointed @ x) @ adjointed
    return adjointed @ each(_inverse, x @ adjointed)


_SINGULAR = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]]

SAMPLES: list[Row] = [
    Sample("MatrixInverse", [matrices((2, 3, 3), 3)], oracle=_inverses, label="batch"),
    Sample(
        "MatrixInverse", [matrices((3, 3), 3)], {"adjoint": True}, oracle=_inverses, label="adjoint"
    ),
    Sample("MatrixInverse", [array(np.zeros((2, 0, 0)))], oracle=np.copy, label="empty"),
    Sample(
        "MatrixDeterminant",
        [matrices((2, 3, 3), 1)],
        oracle=lambda x: each(_determinant, x),
        label="batch",
    ),
    Sample(
        "MatrixDeterminant",
        [array(_SINGULAR)],
        oracle=lambda x: each(_determinant, x),
        grad=False,
        label="singular",
    ),
    Sample(
        "MatrixDeterminant",
        [array([[np.nan, 1.0], [1.0, 2.0]])],
        oracle=lambda x: np.array(np.nan),
        dtypes=["float32", "float64"],
        grad=False,
        label="nan",
    ),
    Sample(
        "MatrixDeterminant",
        [array(np.zeros((2, 0, 0)))],
        oracle=lambda x: np.ones(2),
        label="empty",
    ),
    Sample("LogMatrixDeterminant", [matrices((2, 3, 3), 1)], oracle=_logarithms, label="batch"),
    Sample(
        "LogMatrixDeterminant",
        [array(_SINGULAR)],
        oracle=lambda x: (np.array([1, 0]), np.array([0, -np.inf])),
        dtypes=["float32", "float64"],
        grad=False,
        label="singular",
    ),
    Sample(
        "LogMatrixDeterminant",
        [array(np.zeros((0, 0)))],
        oracle=lambda x: (np.array(1), np.array(0)),
        label="empty",
    ),
    *(
        Sample(
            "MatrixSolve",
            [matrices((2, 3, 3), 3), uniform((2, 3, 2))],
            {"adjoint": adjoint},
            _solution,
            label="adjoint" if adjoint else "batch",
        )
        for adjoint in (False, True)
    ),
    Sample(
        "MatrixSolve",
        [array(np.zeros((0, 0))), array(np.zeros((0, 2)))],
        oracle=lambda a, b: b,
        label="empty",
    ),
    *(
        Sample(
            "MatrixTriangularSolve",
            [matrices((2, 3, 3), 3), uniform((2, 3, 2))],
            {"lower": lower, "adjoint": adjoint},
            _triangular,
            label=f"{'lower' if lower else 'upper'}{'_adjoint' if adjoint else ''}",
        )
        for lower in (False, True)
        for adjoint in (False, True)
    ),
    Sample(
        "MatrixTriangularSolve",
        [matrices((3, 3), 3), uniform((2, 3, 2))],
        {},
        _triangular,
        label="broadcast",
    ),
    Sample(
        "MatrixTriangularSolve",
        [array(np.zeros((2, 3, 3))), array(np.zeros((2, 3, 0)))],
        oracle=lambda a, b: b,
        grad=False,
        label="empty",
    ),
    *(
        Sample(
            "PseudoInverse",
            [matrices(shape, 1), array(1e-10, "float64")],
            {},
            _pseudo_inverse,
            dtypes=["float64", "complex128"],
            grad=["input"],
            label=label,
        )
        for label, shape in (("square", (2, 2, 2)), ("deep", (4, 2)), ("wide", (2, 3)))
    ),
    Sample(
        "PseudoInverse",
        [array(_SINGULAR, "float32"), array([1e-5, 1e-5], "float32")],
        oracle=lambda x, r: np.array([np.eye(2), [[0.04, 0.08], [0.08, 0.16]]]),
        label="singular",
    ),
    Sample(
        "PseudoInverse",
        [array(np.zeros((2, 0, 3)), "float32"), array(0.0, "float32")],
        oracle=lambda x, r: np.zeros((2, 3, 0)),
        label="empty",
    ),
    *(
        Reject(op, [array(np.ones(shape), "float32")], {}, ShapeError, match, label=label)
        for op in ("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant")
        for label, shape, match in (
            ("square", (2, 3), "must be square matrices"),
            ("rank", (2,), "at least 2 dimensions"),
        )
    ),
    *(
        Reject(op, [array([[1]], "int32")], {}, DTypeError, "must be .*float32", label="dtype")
        for op in ("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant")
    ),
    Reject(
        "MatrixInverse",
        [array(_SINGULAR, "float32")],
        {},
        ExecutionError,
        "not invertible",
        when="run",
        label="singular",
    ),
    Reject(
        "MatrixSolve",
        [array(_SINGULAR, "float32"), array(_SINGULAR, "float32")],
        {},
        ExecutionError,
        "not invertible",
        when="run",
        label="singular",
    ),
    Reject(
        "MatrixTriangularSolve",
        [array([[0.0]], "float32"), array([[1.0]], "float32")],
        {},
        ExecutionError,
        "not invertible",
        when="run",
        label="singular",
    ),
    *(
        Reject(
            op,
            [array(np.ones(left), "float32"), array(np.ones(right), "float32")],
            {},
            ShapeError,
            match,
            label=label,
        )
        for op in ("MatrixSolve", "MatrixTriangularSolve")
        for label, left, right, match in (
            ("square", (2, 3), (3, 1), "must be square matrices"),
            ("rows", (2, 2), (3, 1), "needs rhs of 2 rows, got 3"),
            ("rank", (2, 2), (2,), "at least 2 dimensions"),
        )
    ),
    Reject(
        "MatrixSolve",
        [array(np.ones((1, 2, 2)), "float32"), array(np.ones((3, 2, 1)), "float32")],
        {},
        ShapeError,
        "incompatible",
        label="batch",
    ),
    Reject(
        "PseudoInverse",
        [array([1.0], "float32"), array(0.0, "float32")],
        {},
        ShapeError,
        "at least 2 dimensions",
        label="rank",
    ),
    Reject(
        "PseudoInverse",
        [array([[1.0]], "float64"), array(0.0, "float32")],
        {},
        DTypeError,
        "rcond must be float64",
        label="dtype",
    ),
    Reject(
        "PseudoInverse",
        [array([[1.0]], "float32"), array([0.0], "float32")],
        {},
        ShapeError,
        "rcond .* must broadcast",
        label="rcond",
    ),
]
