"""Functions of matrices: exponential, logarithm, square root; and tridiagonal matrices.

References:
    N. J. Higham, The scaling and squaring method for the matrix exponential revisited, SIAM
    Journal on Matrix Analysis and Applications 26, 2005, https://doi.org/10.1137/04061101X
    R. Mathias, A chain rule for matrix functions and applications, SIAM Journal on Matrix Analysis
    and Applications 17, 1996 (the derivative as a block of a larger matrix)
"""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, expand_dims, squeeze
from headrace.ops.array import shape as shape_of
from headrace.ops.constant import zeros_like
from headrace.ops.declare import Spec, op
from headrace.ops.decompositions import square_shape
from headrace.ops.kinds import ComplexNumber, Precise
from headrace.ops.linalg import conjugated, diagonal_matrix, matmul, swap_last_axes
from headrace.ops.solving import matrix_solve


@op("MatrixExponential", public="linalg.expm")
def matrix_exponential(input: Precise) -> Spec:
    """Exponentials of square matrices: the sum of ``input**k / k!``.

    Args:
        input: [..., n, n], floating or complex.

    Returns:
        The shape and dtype of ``input``.
    """
    return TensorSpec(input.dtype, square_shape(input, "input"))


@op("MatrixLogarithm", public="linalg.logm")
def matrix_logarithm(input: ComplexNumber) -> Spec:
    """Principal logarithms of square matrices, whose exponential is ``input``.

    Args:
        input: [..., n, n], complex, invertible.

    Returns:
        The shape and dtype of ``input``.
    """
    return TensorSpec(input.dtype, square_shape(input, "input"))


@op("MatrixSquareRoot")
def matrix_square_root(input: Precise) -> Spec:
    """Principal square roots of square matrices, whose product with itself is ``input``.

    Args:
        input: [..., n, n], floating or complex; NaN where a real matrix has no real root.

    Returns:
        The shape and dtype of ``input``.
    """
    return TensorSpec(input.dtype, square_shape(input, "input"))


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """Solve linear equations whose matrices have three diagonals.

    Args:
        diagonals: The matrices: for "compact" [..., 3, n], the diagonal above the main one (its
            last element ignored), the main one, and the one below (its first ignored); for
            "sequence" a list of the three, [..., n] each, or shorter by one; for "matrix"
            [..., n, n].
        rhs: [..., n], or [..., n, k] for several right-hand sides.
        diagonals_format: "compact", "sequence" or "matrix".
        transpose_rhs: Whether ``rhs`` and the result are [..., k, n] instead of [..., n, k].
        conjugate_rhs: Conjugate ``rhs`` first.
        name: The name of the operations.
        partial_pivoting: Ignored: rows are always exchanged where that is more accurate.

    Returns:
        [..., n] or [..., n, k], the dtype of ``diagonals``.

    Raises:
        AttributeValueError: for another format.
        ShapeError: if the shapes do not fit each other.
    """
    with name_scope(name, "tridiagonal_solve"):
        matrix = _tridiagonal(diagonals, diagonals_format, "tridiagonal_solve")
        right = (
            convert_to_tensor(rhs)
            if as_tensor(rhs) is not None
            else convert_to_tensor(rhs, matrix.dtype)
        )
        if matrix.shape.rank is None or right.shape.rank is None:
            raise ShapeError("tridiagonal_solve: the ranks of diagonals and rhs must be known")
        right = conjugated(right) if conjugate_rhs else right
        if right.shape.rank == matrix.shape.rank - 1:
            return squeeze(matrix_solve(matrix, expand_dims(right, -1)), -1)
        if transpose_rhs:
            return swap_last_axes(matrix_solve(matrix, swap_last_axes(right)))
        return matrix_solve(matrix, right)


def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Multiply matrices that have three diagonals with matrices.

    Args:
        diagonals: As ``hr.linalg.tridiagonal_solve`` takes them.
        rhs: [..., n, k], the dtype of ``diagonals``.
        diagonals_format: "compact", "sequence" or "matrix".
        name: The name of the operations.

    Returns:
        [..., n, k], the dtype of ``diagonals``.

    Raises:
        AttributeValueError: for another format.
        ShapeError: if the shapes do not fit each other.
    """
    with name_scope(name, "tridiagonal_matmul"):
        return matmul(_tridiagonal(diagonals, diagonals_format, "tridiagonal_matmul"), rhs)


def _tridiagonal(diagonals: Any, form: str, label: str) -> Tensor:
    """Return [..., n, n]: dense matrices with three diagonals."""
    if form == "matrix":
        return convert_to_tensor(diagonals)
    if form == "sequence":
        if not isinstance(diagonals, list | tuple) or len(diagonals) != 3:
            raise ShapeError(f"{label}: diagonals must be a list of three vectors")
        above, main, below = (convert_to_tensor(part) for part in diagonals)
        if any(part.shape.rank == 0 for part in (above, main, below)):
            raise ShapeError(f"{label}: diagonals must be vectors, got a scalar")
        if any(part.shape.rank is None for part in (above, main, below)):
            raise ShapeError(f"{label}: the ranks of diagonals must be known")
        above = concat([above, _lacking(above, main)], -1)
        below = concat([_lacking(below, main), below], -1)
    elif form == "compact":
        whole = convert_to_tensor(diagonals)
        if whole.shape.rank is not None and (
            whole.shape.rank < 2 or whole.spec.shape[-2] not in (3, None)
        ):
            raise ShapeError(
                f"{label}: diagonals must be [..., 3, n], got shape {whole.spec.shape}"
            )
        above, main, below = (whole[..., i, :] for i in range(3))
    else:
        raise AttributeValueError(
            f"{label}: diagonals_format must be compact, sequence or matrix, got {shown(form)}"
        )
    return _shifted(above, 1) + diagonal_matrix(main) + _shifted(below, -1)


def _lacking(part: Tensor, main: Tensor) -> Tensor:
    """Return zeros for what a vector beside the main diagonal is shorter: one element, or none."""
    known = part.spec.shape[-1], main.spec.shape[-1]
    if None not in known:
        return zeros_like(main[..., : int(known[0] != known[1])])
    return zeros_like(main[..., : shape_of(main)[-1] - shape_of(part)[-1]])


def _shifted(x: Tensor, by: int) -> Tensor:
    """Return the matrices that have ``x`` beside the main diagonal: above, or below."""
    square = diagonal_matrix(x)
    nothing = zeros_like(square[..., :1])
    # Row i has x[i] in column i; the columns move by one.
    if by > 0:
        return concat([nothing, square[..., :-1]], -1)
    return concat([square[..., 1:], nothing], -1)
