"""Kernels of linear equations: solutions, inverses and determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.decompositions import (
    blotted,
    by_plan,
    check_square,
    failures,
    in_single,
    matrix_dims,
    planned,
    set_apart,
)
from headrace_cpu.kernels.numeric import Array, check_broadcast

KERNELS = KernelTable()

_SINGULAR = "a matrix is not invertible"


@KERNELS.plain("MatrixInverse")
@in_single
def matrix_inverse(xp: Any, x: Array, *, adjoint: bool) -> Array:
    """Invert matrices."""
    check_square(x, "input")
    if not x.size:
        return xp.zeros(x.shape, x.dtype)
    if by_plan(xp, x):
        found = planned("elimination", "inverse", (x,), x.shape[:-2], x.shape[-1], adjoint=adjoint)
        if found is not None:
            return found[0]
    return inverse_by_numpy(xp, x, adjoint=adjoint)


def inverse_by_numpy(xp: Any, x: Array, *, adjoint: bool) -> Array:
    """Invert matrices."""
    with failures(xp, _SINGULAR):
        inverse = xp.linalg.inv(x)
    return _adjoint(xp, inverse) if adjoint else inverse


def _adjoint(xp: Any, x: Array) -> Array:
    transposed = x.swapaxes(-1, -2)
    return xp.conj(transposed) if x.dtype.kind == "c" else transposed


@KERNELS.plain("MatrixDeterminant")
def matrix_determinant(xp: Any, x: Array) -> Array:
    """Compute determinants."""
    check_square(x, "input")
    if not x.size:
        return xp.ones(x.shape[:-2], x.dtype)
    if by_plan(xp, x):
        found = planned(
            "elimination", "determinant", (x,), x.shape[:-2], x.shape[-1], logarithm=False
        )
        if found is not None:
            return found[0]
    return determinant_by_numpy(xp, x)


def determinant_by_numpy(xp: Any, x: Array) -> Array:
    """Compute determinants, 0 of matrices that are not invertible."""
    return xp.asarray(xp.linalg.det(x)).astype(x.dtype, copy=False)


@KERNELS.plain("LogMatrixDeterminant")
def log_matrix_determinant(xp: Any, x: Array) -> tuple[Array, Array]:
    """Compute signs and logarithms of determinants."""
    check_square(x, "input")
    if not x.size:
        return xp.ones(x.shape[:-2], x.dtype), xp.zeros(x.shape[:-2], x.dtype)
    if by_plan(xp, x):
        found = planned(
            "elimination", "determinant", (x,), x.shape[:-2], x.shape[-1], logarithm=True
        )
        if found is not None:
            return found[0], found[1]
    return log_determinant_by_numpy(xp, x)


def log_determinant_by_numpy(xp: Any, x: Array) -> tuple[Array, Array]:
    """Compute signs and logarithms of determinants, also of matrices that are not invertible."""
    sign, logarithm = (xp.asarray(part).astype(x.dtype) for part in xp.linalg.slogdet(x))
    return xp.where(xp.isnan(logarithm), logarithm, sign), logarithm


def _check_rows(matrix: Array, rhs: Array) -> None:
    size = check_square(matrix, "matrix")
    rows, _ = matrix_dims(rhs, "rhs")
    if rows != size:
        raise ValueError(
            f"matrix {list(matrix.shape)} needs rhs of {size} rows, got shape {list(rhs.shape)}"
        )


@KERNELS.plain("MatrixSolve")
def matrix_solve(xp: Any, matrix: Array, rhs: Array, *, adjoint: bool) -> Array:
    """Solve equations with square matrices."""
    _check_rows(matrix, rhs)
    if matrix.shape[:-2] != rhs.shape[:-2]:
        raise ValueError(f"leading axes differ: matrix {list(matrix.shape)}, rhs {list(rhs.shape)}")
    if not rhs.size:
        return xp.zeros(rhs.shape, rhs.dtype)
    if by_plan(xp, matrix) and matrix.dtype == rhs.dtype:
        sizes = matrix.shape[:-2], *rhs.shape[-2:]
        found = planned("elimination", "solution", (matrix, rhs), *sizes, adjoint=adjoint)
        if found is not None:
            return found[0]
    return solution_by_numpy(xp, matrix, rhs, adjoint=adjoint)


def solution_by_numpy(xp: Any, matrix: Array, rhs: Array, *, adjoint: bool) -> Array:
    """Solve equations with square matrices."""
    with failures(xp, _SINGULAR):
        return xp.linalg.solve(_adjoint(xp, matrix) if adjoint else matrix, rhs)


@KERNELS.plain("MatrixTriangularSolve")
@in_single
def matrix_triangular_solve(
    xp: Any, matrix: Array, rhs: Array, *, lower: bool, adjoint: bool
) -> Array:
    """Solve equations with triangular matrices."""
    _check_rows(matrix, rhs)
    check_broadcast(matrix.shape[:-2], rhs.shape[:-2])
    if by_plan(xp, matrix) and by_plan(xp, rhs.swapaxes(-1, -2)) and matrix.dtype == rhs.dtype:
        shapes, how = (matrix.shape, rhs.shape), {"lower": lower, "adjoint": adjoint}
        found = planned("triangles", "triangular", (matrix, rhs), *shapes, **how)
        if found is not None:
            return found[0]
    return triangular_by_numpy(xp, matrix, rhs, lower=lower, adjoint=adjoint)


def triangular_by_numpy(xp: Any, matrix: Array, rhs: Array, *, lower: bool, adjoint: bool) -> Array:
    """Solve equations with triangular matrices, one after the other."""
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    shape = (*batch, *rhs.shape[-2:])
    size = matrix.shape[-1]
    if not np.prod(shape):
        return xp.zeros(shape, rhs.dtype)
    if bool((matrix[..., xp.arange(size), xp.arange(size)] == 0).any()):
        raise ValueError("a matrix is not invertible: it has a zero on its diagonal")
    right = xp.broadcast_to(rhs, shape)
    if xp is np:
        return _substituted(np.broadcast_to(matrix, (*batch, size, size)), right, lower, adjoint)
    distance = xp.arange(size)[:, None] - xp.arange(size)
    inside = distance >= 0 if lower else distance <= 0
    triangle = xp.where(inside, matrix, xp.zeros((), matrix.dtype))
    triangle = _adjoint(xp, triangle) if adjoint else triangle
    return xp.linalg.solve(xp.broadcast_to(triangle, (*batch, size, size)), right)


def _substituted(matrix: Array, rhs: Array, lower: bool, adjoint: bool) -> Array:
    """Solve by LAPACK, one matrix after the other."""
    from scipy.linalg import get_lapack_funcs

    solve = get_lapack_funcs("trtrs", (matrix, rhs))
    result = np.empty(rhs.shape, rhs.dtype)
    # The transpose of an array in C's order is in Fortran's: nothing needs to be copied.
    turn = 2 if adjoint else 0
    for at in np.ndindex(rhs.shape[:-2]):
        result[at], _ = solve(matrix[at], rhs[at], lower=lower, trans=turn)
    return result


@KERNELS.plain("PseudoInverse")
@in_single
def pseudo_inverse(xp: Any, x: Array, rcond: Array) -> Array:
    """Invert matrices as far as they have an inverse, by singular values."""
    m, n = matrix_dims(x, "input")
    batch = x.shape[:-2]
    check_broadcast(batch, rcond.shape)
    if rcond.ndim > len(batch):
        raise ValueError(f"rcond must have at most {len(batch)} dimensions, got {rcond.ndim}")
    limit = xp.broadcast_to(xp.asarray(rcond), batch)
    if not x.size:
        return xp.zeros((*batch, n, m), x.dtype)
    matrices, lost = set_apart(xp, x)
    with failures(xp, "the singular value decomposition did not converge"):
        u, s, vh = xp.linalg.svd(matrices, full_matrices=False)
    kept = s > limit[..., None] * s[..., :1]
    inverse = xp.where(kept, 1 / xp.where(kept, s, xp.ones((), s.dtype)), xp.zeros((), s.dtype))
    product = xp.matmul(_adjoint(xp, vh) * inverse[..., None, :].astype(s.dtype), _adjoint(xp, u))
    return blotted(xp, product.astype(x.dtype, copy=False), lost, 2)
