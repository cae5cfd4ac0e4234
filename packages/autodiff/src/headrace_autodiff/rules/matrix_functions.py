"""Gradients of functions of matrices.

The derivative of ``f`` at ``A`` along ``E`` is the upper right block of ``f`` of the matrix with
``A`` twice on its diagonal and ``E`` there; the gradient is the derivative at the conjugate
transpose.

References:
    R. Mathias, A chain rule for matrix functions and applications, SIAM Journal on Matrix Analysis
    and Applications 17, 1996
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import Operation, Tensor, concat, matrix_square_root, shape, zeros_like
from headrace.extend import GradientTable
from headrace.extend.primitives import adjoint, matrix_exponential, matrix_logarithm

RULES = GradientTable()


def _through_blocks(function: Callable[..., Tensor], op: Operation, grad: Tensor) -> Tensor:
    adjointed = adjoint(op.inputs[0])
    upper = concat([adjointed, grad], -1)
    lower = concat([zeros_like(adjointed), adjointed], -1)
    whole = function(concat([upper, lower], -2))
    size: Any = adjointed.spec.shape[-1] if adjointed.shape.rank is not None else None
    if size is None:
        size = shape(adjointed)[-1]
    return whole[..., :size, size:]


@RULES.add("MatrixExponential")
def _matrix_exponential(op: Operation, grad: Tensor) -> Tensor:
    return _through_blocks(matrix_exponential, op, grad)


@RULES.add("MatrixLogarithm")
def _matrix_logarithm(op: Operation, grad: Tensor) -> Tensor:
    return _through_blocks(matrix_logarithm, op, grad)


@RULES.add("MatrixSquareRoot")
def _matrix_square_root(op: Operation, grad: Tensor) -> Tensor:
    return _through_blocks(matrix_square_root, op, grad)
