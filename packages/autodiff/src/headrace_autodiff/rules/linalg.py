"""Gradients of linear algebra."""

from __future__ import annotations

from headrace import Operation, Tensor, conj, matmul
from headrace.extend import GradientTable
from headrace_autodiff.shaping import unbroadcast

RULES = GradientTable()


@RULES.add("MatMul")
def _matmul(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    a, b = (conj(t) for t in op.inputs)
    swap_a, swap_b = op.attrs["transpose_a"], op.attrs["transpose_b"]
    if swap_a:
        grad_a = matmul(b, grad, transpose_a=swap_b, transpose_b=True)
    else:
        grad_a = matmul(grad, b, transpose_b=not swap_b)
    if swap_b:
        grad_b = matmul(grad, a, transpose_a=True, transpose_b=swap_a)
    else:
        grad_b = matmul(a, grad, transpose_a=not swap_a)
    x, y = op.inputs
    grad_x = unbroadcast(grad_a, x, y.spec.shape, keep=2)
    return grad_x, unbroadcast(grad_b, y, x.spec.shape, keep=2)
