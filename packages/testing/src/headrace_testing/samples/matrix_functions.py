"""Samples of functions of matrices: the oracles are power series, and functions of eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import NDArray, array
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.decompositions import each, matrices


def _exponential(x: NDArray) -> Any:
    term = total = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    for k in range(1, 60):
        term = term @ x / k
        total = total + term
    return total


def _of_eigenvalues(function: Callable[[Any], Any]) -> Callable[[NDArray], NDArray]:
    """Return the function of matrices with eigenvectors."""

    def one(a: NDArray) -> Any:
        e, v = np.linalg.eig(a.astype(np.complex128))
        whole = (v * function(e)) @ np.linalg.inv(v)
        return whole if a.dtype.kind == "c" else whole.real

    return lambda x: each(one, x)


_ROTATION = [[0.0, -np.pi], [np.pi, 0.0]]

SAMPLES: list[Row] = [
    Sample("MatrixExponential", [matrices((2, 3, 3))], oracle=_exponential, label="batch"),
    Sample(
        "MatrixExponential",
        [array([[-40.0, 0.0], [0.0, 9.0]])],
        oracle=lambda x: np.diag(np.exp([-40.0, 9.0])),
        tolerance=1e-6,
        grad=False,
        label="scaled",
    ),
    Sample(
        "MatrixExponential",
        [array(_ROTATION)],
        oracle=lambda x: -np.eye(2),
        grad=False,
        label="rotation",
    ),
    Sample(
        "MatrixExponential",
        [array([[[np.nan, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]])],
        oracle=lambda x: np.array([np.full((2, 2), np.nan), [[1, 1], [0, 1]]]),
        dtypes=["float32", "float64"],
        grad=False,
        label="nan",
    ),
    Sample("MatrixExponential", [array(np.zeros((2, 0, 0)))], oracle=np.copy, label="empty"),
    Sample(
        "MatrixLogarithm",
        [matrices((2, 3, 3), 3)],
        oracle=_of_eigenvalues(np.log),
        label="batch",
    ),
    Sample("MatrixLogarithm", [array(np.zeros((0, 2, 2)))], oracle=np.copy, label="empty"),
    Sample(
        "MatrixSquareRoot",
        [matrices((2, 3, 3), 3)],
        oracle=_of_eigenvalues(np.sqrt),
        label="batch",
    ),
    Sample(
        "MatrixSquareRoot",
        [array([[[-1.0]], [[4.0]], [[np.nan]], [[np.inf]]])],
        oracle=lambda x: np.array(
            [[[1j if x.dtype.kind == "c" else np.nan]], [[2.0]], [[np.nan]], [[np.nan]]]
        ),
        grad=False,
        label="no_root",
    ),
    Sample("MatrixSquareRoot", [array(np.zeros((0, 0)))], oracle=np.copy, label="empty"),
    *(
        Reject(op, [array(np.ones(shape), "complex64")], {}, ShapeError, match, label=label)
        for op in ("MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot")
        for label, shape, match in (
            ("square", (2, 3), "must be square matrices"),
            ("rank", (2,), "at least 2 dimensions"),
        )
    ),
    *(
        Reject(op, [array([[1]], "int32")], {}, DTypeError, "must be", label="dtype")
        for op in ("MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot")
    ),
]
