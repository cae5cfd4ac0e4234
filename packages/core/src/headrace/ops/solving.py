"""Linear equations: solutions, inverses and determinants.

References:
    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation, 2008, https://people.maths.ox.ac.uk/gilesm/files/AD2008.pdf
    G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate, SIAM Journal on Numerical Analysis 10, 1973
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import real
from headrace.errors import AttributeValueError, DTypeError, ShapeError, told
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.array import shape
from headrace.ops.cond import cond
from headrace.ops.constant import constant, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.decompositions import (
    cholesky,
    log_of_diagonal,
    permutation_matrix,
    square_shape,
    svd_op,
)
from headrace.ops.elementwise import greater, greater_equal
from headrace.ops.flops import of_decomposition
from headrace.ops.kinds import Factored, Floating, Precise
from headrace.ops.linalg import (
    choose,
    lower_part,
    matmul,
    on_diagonal,
    upper_part,
)
from headrace.ops.reduce import reduce_max, reduce_sum
from headrace.shapes import Shape, broadcast


@op("MatrixInverse", flops=of_decomposition)
def matrix_inverse(input: Factored, adjoint: bool = False) -> Spec:
    """Inverses of square matrices.

    A matrix that is not invertible raises when it runs.

    Args:
        input: [..., n, n], floating or complex.
        adjoint: Return the inverses of the conjugate transposes.

    Returns:
        The shape and dtype of ``input``.
    """
    return TensorSpec(input.dtype, square_shape(input, "input"))


@op("MatrixDeterminant", flops=of_decomposition)
def matrix_determinant(input: Precise) -> Spec:
    """Determinants of square matrices.

    The gradient takes the inverse, and so needs invertible matrices.

    Args:
        input: [..., n, n], floating or complex.

    Returns:
        [...], the dtype of ``input``; 1 for matrices without elements.
    """
    return TensorSpec(input.dtype, square_shape(input, "input")[:-2])


@op("LogMatrixDeterminant", flops=of_decomposition)
def log_matrix_determinant(input: Precise) -> tuple[Spec, Spec]:
    """Signs and logarithms of the absolute values of determinants.

    Args:
        input: [..., n, n], floating or complex.

    Returns:
        The signs, [...], complex numbers of absolute value 1 for complex matrices, 0 for singular
        matrices; and the logarithms, [...], both of the dtype of ``input``.
    """
    one = TensorSpec(input.dtype, square_shape(input, "input")[:-2])
    return one, one


def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return signs and logarithms of the absolute values of determinants.

    Args:
        input: [..., n, n], floating or complex.
        name: The name of the operation.

    Returns:
        The signs and the logarithms, [...] each, of the dtype of ``input``.

    Raises:
        ShapeError: if the matrices are not square.
    """
    return log_matrix_determinant(input, name=name)


@op("MatrixSolve", flops=of_decomposition)
def matrix_solve(matrix: Precise, rhs: Precise, adjoint: bool = False) -> Spec:
    """Solutions ``x`` of ``matrix @ x = rhs``, with square matrices.

    A matrix that is not invertible raises when it runs.

    Args:
        matrix: [..., n, n], floating or complex.
        rhs: [..., n, k], the dtype of ``matrix``; leading axes are the same.
        adjoint: Take the conjugate transpose of ``matrix`` instead.

    Returns:
        The shape and dtype of ``rhs``.
    """
    square, dims = _equations(matrix, rhs)
    if square.dims is None:
        return TensorSpec(matrix.dtype, dims)
    if dims.dims is None:
        # The leading axes are the same on both sides.
        return TensorSpec(matrix.dtype, Shape([*square[:-1], None]))
    batch = square[:-2].merge_with(dims[:-2])
    return TensorSpec(matrix.dtype, batch.concatenate(dims[-2:]))


@op("MatrixTriangularSolve", flops=of_decomposition)
def matrix_triangular_solve(
    matrix: Factored, rhs: Factored, lower: bool = True, adjoint: bool = False
) -> Spec:
    """Solutions ``x`` of ``matrix @ x = rhs``, with triangular matrices; leading axes broadcast.

    A matrix with a zero on its diagonal raises when it runs.

    Args:
        matrix: [..., n, n], floating or complex; the other triangle is not looked at.
        rhs: [..., n, k], the dtype of ``matrix``.
        lower: Whether the lower triangle is taken, or the upper.
        adjoint: Take the conjugate transpose of the triangle.

    Returns:
        [..., n, k], the dtype of ``rhs``.
    """
    square, dims = _equations(matrix, rhs)
    if square.dims is None or dims.dims is None:
        return TensorSpec(matrix.dtype)
    batch = broadcast(square[:-2], dims[:-2])
    return TensorSpec(matrix.dtype, batch.concatenate(dims[-2:]))


def _equations(matrix: TensorSpec, rhs: TensorSpec) -> tuple[Shape, Shape]:
    """Return the shapes of both sides, with the number of rows that either knows."""
    square = square_shape(matrix, "matrix")
    dims = matrix_shape(rhs, "rhs")
    if square.dims is None or dims.dims is None:
        return square, dims
    rows, n = dims[-2], square[-1]
    if rows is not None and n is not None and rows != n:
        raise ShapeError(
            f"matrix {matrix.shape} needs rhs of {n} rows, got {rows} of shape {rhs.shape}"
        )
    return square, Shape([*dims[:-2], n if rows is None else rows, dims[-1]])


def matrix_shape(spec: TensorSpec, label: str) -> Shape:
    """Return the shape of matrices.

    Raises:
        ShapeError: if there are fewer than 2 dimensions.
    """
    if spec.rank is not None and spec.rank < 2:
        raise ShapeError(f"{label} must have at least 2 dimensions, got shape {spec.shape}")
    return spec.shape


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solve ``A @ x = rhs``, given the Cholesky decomposition of ``A``.

    Args:
        chol: [..., n, n], lower triangular, as ``hr.cholesky(A)``; the rest is not looked at.
        rhs: [..., n, k], the dtype of ``chol``.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``rhs``.

    Raises:
        ShapeError: if the shapes do not fit each other.
    """
    with name_scope(name, "cholesky_solve"):
        triangle = convert_to_tensor(chol)
        half = matrix_triangular_solve(triangle, rhs, lower=True)
        return matrix_triangular_solve(triangle, half, lower=True, adjoint=True)


@dispatched()
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Return the logarithms of the determinants of positive definite matrices.

    Args:
        matrix: [..., n, n], symmetric (Hermitian where complex) and positive definite.
        name: The name of the operations.

    Returns:
        [...], real.

    Raises:
        ShapeError: if the matrices are not square.
    """
    with name_scope(name, "logdet"):
        return log_of_diagonal(cholesky(matrix)) * 2


@op("PseudoInverse", public="")
def _pseudo_inverse(input: Factored, rcond: Floating) -> Spec:
    """Pseudo-inverses of matrices (Moore and Penrose).

    Args:
        input: [..., m, n], floating or complex.
        rcond: [...], singular values up to this part of the largest count as zero.

    Returns:
        [..., n, m], the dtype of ``input``.
    """
    dims = matrix_shape(input, "input")
    if rcond.dtype != input.dtype.real_dtype:
        raise DTypeError(f"rcond must be {input.dtype.real_dtype}, got {rcond.dtype}")
    if dims.dims is None:
        return TensorSpec(input.dtype)
    if rcond.rank is not None and rcond.rank > len(dims) - 2:
        raise ShapeError(f"rcond {rcond.shape} must broadcast to the leading axes of {dims}")
    broadcast(rcond.shape, dims[:-2])
    return TensorSpec(input.dtype, Shape([*dims[:-2], dims[-1], dims[-2]]))


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Return the pseudo-inverses of matrices (Moore and Penrose).

    The gradient is that of matrices whose rank does not change.

    Args:
        a: [..., m, n], floating or complex.
        rcond: [...], singular values up to this part of the largest count as zero;
            ``10 * max(m, n)`` times the spacing of numbers near 1 if None.
        validate_args: Ignored; arguments are always checked.
        name: The name of the operations.

    Returns:
        [..., n, m], the dtype of ``a``.

    Raises:
        ShapeError: if ``a`` has fewer than 2 dimensions.
    """
    with name_scope(name, "pinv"):
        matrix = convert_to_tensor(a)
        if rcond is None:
            return _pseudo_inverse(matrix, _cutoff(matrix))
        return _pseudo_inverse(matrix, cast(rcond, matrix.dtype.real_dtype))


def _cutoff(matrix: Tensor, factor: float = 10.0) -> Any:
    """Return a multiple of the larger dimension times the rounding of numbers near 1."""
    real = matrix.dtype.real_dtype
    if not real.is_floating or real is dtypes.bfloat16:
        # The op that takes the matrix says what it does not take.
        return constant(0.0)
    spacing = factor * float(np.finfo(real.numpy).eps)
    dims = matrix.spec.shape[-2:] if matrix.shape.rank not in (None, 0, 1) else Shape(None)
    if dims.is_fully_defined():
        return constant(spacing * max(dims.known), real)
    return cast(reduce_max(shape(matrix)[-2:]), real) * constant(spacing, real)


def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Count the singular values of matrices that are not negligible.

    Args:
        a: [..., m, n], floating or complex.
        tol: Singular values up to this count as zero; ``max(m, n)`` times the largest one times
            the spacing of numbers near 1 if None.
        validate_args: Ignored; arguments are always checked.
        name: The name of the operations.

    Returns:
        [...], int32.

    Raises:
        ShapeError: if ``a`` has fewer than 2 dimensions.
    """
    with name_scope(name, "matrix_rank"):
        matrix = convert_to_tensor(a)
        values, _, _ = svd_op(matrix, compute_uv=False)
        if tol is None:
            tol = reduce_max(values, -1, keepdims=True) * _cutoff(matrix, 1.0)
        return reduce_sum(cast(greater(values, tol), "int32"), -1)


def matrix_solve_ls(
    matrix: Any,
    rhs: Any,
    l2_regularizer: Any = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """Solve linear equations in the least-squares sense.

    Finds the ``x`` that minimizes ``|matrix @ x - rhs|**2 + l2_regularizer * |x|**2``; where
    several do without a regularizer, the shortest.

    Args:
        matrix: [..., m, n], floating or complex.
        rhs: [..., m, k], the dtype of ``matrix``.
        l2_regularizer: A number >= 0; must be 0 where ``fast`` is false.
        fast: Solve the normal equations by a Cholesky decomposition, which needs a matrix of full
            rank, far from a singular one; otherwise by the pseudo-inverse.
        name: The name of the operations.

    Returns:
        [..., n, k], the dtype of ``matrix``.

    Raises:
        AttributeValueError: if the regularizer is negative.
        ShapeError: if the shapes do not fit each other.
    """
    if as_tensor(l2_regularizer) is None:
        l2_regularizer = real(l2_regularizer, "l2_regularizer")
    if isinstance(l2_regularizer, float) and not l2_regularizer >= 0:
        raise AttributeValueError(f"lstsq: l2_regularizer must be >= 0, got {told(l2_regularizer)}")
    with name_scope(name, "matrix_solve_ls"):
        a = convert_to_tensor(matrix)
        b = convert_to_tensor(rhs, a.dtype) if as_tensor(rhs) is None else convert_to_tensor(rhs)
        _check_least_squares(a, b)
        if not fast:
            return matmul(pinv(a), b)
        known = a.spec.shape[-2:] if a.shape.rank is not None else Shape(None)
        if known.is_fully_defined():
            return _by_normal_equations(a, b, l2_regularizer, known[0] >= known[1])
        # Which of the normal equations has a solution depends on the sizes.
        sizes = shape(a)
        solved: Tensor = cond(
            greater_equal(sizes[-2], sizes[-1]),
            lambda: _by_normal_equations(a, b, l2_regularizer, True),
            lambda: _by_normal_equations(a, b, l2_regularizer, False),
        )
        return solved


def _by_normal_equations(a: Tensor, b: Tensor, l2_regularizer: Any, tall: bool) -> Tensor:
    """Solve ``a @ x = b`` by those of its columns where it is tall, or else of its rows."""
    if tall:
        gram = _regularized(matmul(a, a, adjoint_a=True), l2_regularizer)
        return cholesky_solve(cholesky(gram), matmul(a, b, adjoint_a=True))
    gram = _regularized(matmul(a, a, adjoint_b=True), l2_regularizer)
    return matmul(a, cholesky_solve(cholesky(gram), b), adjoint_a=True)


def _check_least_squares(a: Tensor, b: Tensor) -> None:
    left, right = matrix_shape(a.spec, "matrix"), matrix_shape(b.spec, "rhs")
    if left.dims is None or right.dims is None:
        return
    left[:-2].merge_with(right[:-2])
    if left[-2] is not None and right[-2] is not None and left[-2] != right[-2]:
        raise ShapeError(f"matrix {left} needs rhs of {left[-2]} rows, got shape {right}")


def _regularized(gram: Tensor, amount: Any) -> Tensor:
    if isinstance(amount, int | float) and amount == 0:
        return gram
    real = gram.dtype.real_dtype
    given = convert_to_tensor(amount, real) if as_tensor(amount) is None else amount
    added = cast(given, gram.dtype)
    return choose(on_diagonal(gram), gram + added, gram)


def lu_solve(
    lower_upper: Any,
    perm: Any,
    rhs: Any,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solve ``A @ x = rhs``, given what ``hr.linalg.lu(A)`` returned.

    Args:
        lower_upper: [..., n, n], both triangles.
        perm: [..., n], the order of the rows.
        rhs: [..., n, k], the dtype of ``lower_upper``.
        validate_args: Ignored; arguments are always checked.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``rhs``.

    Raises:
        ShapeError: if the shapes do not fit each other.
    """
    with name_scope(name, "lu_solve"):
        factors = convert_to_tensor(lower_upper)
        permuted = matmul(permutation_matrix(perm, factors), rhs)
        ones = choose(on_diagonal(factors), zeros_like(factors) + 1, factors)
        half = matrix_triangular_solve(ones, permuted, lower=True)
        return matrix_triangular_solve(factors, half, lower=False)


def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the inverse of ``A``, given what ``hr.linalg.lu(A)`` returned.

    Args:
        lower_upper: [..., n, n], both triangles.
        perm: [..., n], the order of the rows.
        validate_args: Ignored; arguments are always checked.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``lower_upper``.

    Raises:
        ShapeError: if the shapes do not fit each other.
    """
    with name_scope(name, "lu_matrix_inverse"):
        factors = convert_to_tensor(lower_upper)
        unit = choose(on_diagonal(factors), zeros_like(factors) + 1, zeros_like(factors))
        return lu_solve(factors, perm, unit)


def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the matrix whose decomposition ``hr.linalg.lu`` returned.

    Args:
        lower_upper: [..., n, n], both triangles.
        perm: [..., n], the order of the rows.
        validate_args: Ignored; arguments are always checked.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``lower_upper``.

    Raises:
        ShapeError: if the shapes do not fit each other.
    """
    with name_scope(name, "lu_reconstruct"):
        factors = convert_to_tensor(lower_upper)
        unit = choose(on_diagonal(factors), zeros_like(factors) + 1, zeros_like(factors))
        product = matmul(lower_part(factors, strictly=True) + unit, upper_part(factors))
        return matmul(permutation_matrix(perm, factors), product, transpose_a=True)
