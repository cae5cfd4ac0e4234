"""Gradients of the parts of complex numbers.

They are those of TensorFlow: the gradient of a complex tensor is the conjugate of the derivative.
"""

from __future__ import annotations

from headrace import Operation, Tensor, cast, imag, real, reciprocal, sign, zeros_like
from headrace.extend import GradientTable
from headrace.extend.primitives import complex_
from headrace_autodiff.shaping import unbroadcast

RULES = GradientTable()


@RULES.add("Complex")
def _complex(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, y = op.inputs
    return unbroadcast(real(grad), x, y.spec.shape), unbroadcast(imag(grad), y, x.spec.shape)


@RULES.add("Real")
def _real(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (complex_(grad, zeros_like(grad)),)


@RULES.add("Imag")
def _imag(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (complex_(zeros_like(grad), grad),)


@RULES.add("Angle")
def _angle(op: Operation, grad: Tensor) -> tuple[Tensor]:
    (z,) = op.inputs
    # i * z / abs(z) ** 2, without the square, which could overflow.
    slope = reciprocal(complex_(imag(z), real(z)))
    return (-(complex_(grad, zeros_like(grad)) * slope),)


@RULES.add("ComplexAbs")
def _complex_abs(op: Operation, grad: Tensor) -> tuple[Tensor]:
    (z,) = op.inputs
    return (cast(grad, z.dtype) * sign(z),)
