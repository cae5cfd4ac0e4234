"""Calls of functions of matrices with linear operators among their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.dispatch import KINDS, Callee
from headrace.ops.linalg import adjoint as adjoint_of


def is_operator(value: Any) -> bool:
    """Whether a value is a linear operator."""
    return KINDS.get(type(value)) is call_with_operator


def call_with_operator(callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a function of matrices yields for operators.

    Returns:
        NotImplemented where the function takes none.
    """
    function = FUNCTIONS.get(callee.name)
    return NotImplemented if function is None else function(*args, **kwargs)


def _adjoint(matrix: Any, name: str | None = None) -> Any:
    return matrix.adjoint(name or "adjoint")


def _cholesky(input: Any, name: str | None = None) -> Any:
    return input.cholesky(name or "cholesky")


def _diag_part(
    input: Any, name: str | None = "diag_part", k: Any = 0, padding_value: Any = 0
) -> Any:
    del k, padding_value
    return input.diag_part(name or "diag_part")


def _determinant(input: Any, name: str | None = None) -> Any:
    return input.determinant(name or "det")


def _inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Any:
    found = input.inverse(name or "inverse")
    return found.adjoint() if adjoint else found


def _logdet(matrix: Any, name: str | None = None) -> Any:
    if matrix.is_positive_definite and matrix.is_self_adjoint:
        return matrix.log_abs_determinant(name or "log_abs_det")
    raise AttributeValueError("Expected matrix to be self-adjoint positive definite.")


def _matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    if transpose_a or transpose_b:
        raise AttributeValueError("Transposing not supported at this time.")
    if a_is_sparse or b_is_sparse:
        raise AttributeValueError("Sparse methods not supported at this time.")
    chosen = name or "matmul"
    if is_operator(a):
        return a.matmul(b, adjoint=adjoint_a, adjoint_arg=adjoint_b, name=chosen)
    made = b.matmul(a, adjoint=not adjoint_b, adjoint_arg=not adjoint_a, name=chosen)
    return adjoint_of(made)


def _solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    if not is_operator(matrix):
        raise AttributeValueError(
            "Passing in `matrix` as a Tensor and `rhs` as a LinearOperator is not supported."
        )
    return matrix.solve(rhs, adjoint=adjoint, name=name or "solve")


def _trace(x: Any, name: str | None = None) -> Any:
    return x.trace(name or "trace")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Cholesky": _cholesky,
    "MatrixDeterminant": _determinant,
    "MatrixInverse": _inverse,
    "MatrixSolve": _solve,
    "adjoint": _adjoint,
    "logdet": _logdet,
    "matmul": _matmul,
    "matrix_diag_part": _diag_part,
    "trace": _trace,
}
