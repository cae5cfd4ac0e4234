"""Gradients of linear equations: solutions, inverses and determinants.

References:
    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation, 2008, https://people.maths.ox.ac.uk/gilesm/files/AD2008.pdf
    G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate, SIAM Journal on Numerical Analysis 10, 1973
"""

from __future__ import annotations

from headrace import (
    Operation,
    Tensor,
    conj,
    expand_dims,
    matmul,
    matrix_inverse,
    matrix_solve,
    matrix_triangular_solve,
    zeros_like,
)
from headrace.extend import GradientTable
from headrace.extend.primitives import adjoint, imaginary_part, lower_part, real_part, upper_part
from headrace_autodiff.shaping import unbroadcast

RULES = GradientTable()


def _for_matrices(x: Tensor) -> Tensor:
    """Return [..., 1, 1] for [...]."""
    return expand_dims(expand_dims(x, -1), -1)


@RULES.add("MatrixInverse")
def _matrix_inverse(op: Operation, grad: Tensor) -> Tensor:
    inverse = op.outputs[0]
    if op.attrs["adjoint"]:
        return -matmul(inverse, matmul(grad, inverse, adjoint_a=True))
    return -matmul(inverse, matmul(grad, inverse, adjoint_b=True), adjoint_a=True)


@RULES.add("MatrixDeterminant")
def _matrix_determinant(op: Operation, grad: Tensor) -> Tensor:
    inverse = matrix_inverse(op.inputs[0], adjoint=True)
    return _for_matrices(grad * conj(op.outputs[0])) * inverse


@RULES.add("LogMatrixDeterminant")
def _log_matrix_determinant(
    op: Operation, grad_sign: Tensor | None, grad_log: Tensor | None
) -> Tensor:
    x, sign = op.inputs[0], op.outputs[0]
    parts = []
    if grad_log is not None:
        # The logarithm is real, also where its dtype is complex.
        parts.append(real_part(grad_log))
    if grad_sign is not None and x.dtype.is_complex:
        # A change of the phase by t multiplies the sign by exp(i t).
        parts.append(imaginary_part(grad_sign * conj(sign)))
    if not parts:
        # The sign of a real determinant is constant wherever it has a derivative.
        return zeros_like(x)
    total = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return _for_matrices(total) * matrix_inverse(x, adjoint=True)


@RULES.add("MatrixSolve")
def _matrix_solve(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    matrix, solution = op.inputs[0], op.outputs[0]
    is_adjoint = op.attrs["adjoint"]
    grad_rhs = matrix_solve(matrix, grad, adjoint=not is_adjoint)
    if is_adjoint:
        return -matmul(solution, grad_rhs, adjoint_b=True), grad_rhs
    return -matmul(grad_rhs, solution, adjoint_b=True), grad_rhs


@RULES.add("MatrixTriangularSolve")
def _matrix_triangular_solve(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    matrix, rhs = op.inputs
    solution = op.outputs[0]
    is_adjoint, lower = op.attrs["adjoint"], op.attrs["lower"]
    grad_rhs = matrix_triangular_solve(matrix, grad, lower=lower, adjoint=not is_adjoint)
    if is_adjoint:
        grad_matrix = -matmul(solution, grad_rhs, adjoint_b=True)
    else:
        grad_matrix = -matmul(grad_rhs, solution, adjoint_b=True)
    grad_matrix = lower_part(grad_matrix) if lower else upper_part(grad_matrix)
    return (
        unbroadcast(grad_matrix, matrix, rhs.spec.shape, keep=2),
        unbroadcast(grad_rhs, rhs, matrix.spec.shape, keep=2),
    )


@RULES.add("PseudoInverse")
def _pseudo_inverse(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    x, inverse = op.inputs[0], op.outputs[0]
    adjointed, weight = adjoint(inverse), adjoint(grad)
    through = matmul(adjointed, matmul(grad, adjointed))
    left = matmul(weight, matmul(inverse, adjointed))
    left = left - matmul(x, matmul(inverse, left))
    right = matmul(matmul(adjointed, inverse), weight)
    right = right - matmul(matmul(right, inverse), x)
    return left + right - through, None
