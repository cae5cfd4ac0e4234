"""Gradients of roots, exponentials, logarithms, trigonometric and hyperbolic functions.

For complex tensors the gradient is that of TensorFlow: the conjugate of the derivative.
"""

from __future__ import annotations

from headrace import (
    Operation,
    Tensor,
    cast,
    conj,
    cos,
    cosh,
    exp,
    multiply_no_nan,
    not_equal,
    rsqrt,
    sin,
    sinh,
    square,
    xdivy,
    xlogy,
)
from headrace.extend import GradientTable
from headrace_autodiff.shaping import unbroadcast

RULES = GradientTable()

One = tuple[Tensor]
Pair = tuple[Tensor, Tensor]


def _input(op: Operation) -> Tensor:
    return conj(op.inputs[0])


def _output(op: Operation) -> Tensor:
    return conj(op.outputs[0])


def _fit(op: Operation, grad_x: Tensor, grad_y: Tensor) -> Pair:
    """Sum both gradients to the shapes of the operands that were broadcast against each other."""
    x, y = op.inputs
    return unbroadcast(grad_x, x, y.spec.shape), unbroadcast(grad_y, y, x.spec.shape)


# -- roots, exponentials and logarithms


@RULES.add("Sqrt")
def _sqrt(op: Operation, grad: Tensor) -> One:
    # Where no gradient arrives, none leaves, though the derivative is infinite at 0.
    return (multiply_no_nan(0.5 / _output(op), grad),)


@RULES.add("Rsqrt")
def _rsqrt(op: Operation, grad: Tensor) -> One:
    y = _output(op)
    return (multiply_no_nan(-0.5 * (y * y * y), grad),)


@RULES.add("Exp")
def _exp(op: Operation, grad: Tensor) -> One:
    return (grad * _output(op),)


@RULES.add("Expm1")
def _expm1(op: Operation, grad: Tensor) -> One:
    return (grad * exp(_input(op)),)


@RULES.add("Log")
def _log(op: Operation, grad: Tensor) -> One:
    return (grad / _input(op),)


@RULES.add("Log1p")
def _log1p(op: Operation, grad: Tensor) -> One:
    return (grad / (1 + _input(op)),)


@RULES.add("Xlogy")
def _xlogy(op: Operation, grad: Tensor) -> Pair:
    x, y = (conj(t) for t in op.inputs)
    return _fit(op, grad * xlogy(cast(not_equal(x, 0), x.dtype), y), grad * xdivy(x, y))


@RULES.add("Xdivy")
def _xdivy(op: Operation, grad: Tensor) -> Pair:
    x, y = (conj(t) for t in op.inputs)
    slope = xdivy(cast(not_equal(x, 0), x.dtype), y)
    return _fit(op, grad * slope, grad * xdivy(-x, square(y)))


# -- trigonometric functions


@RULES.add("Sin")
def _sin(op: Operation, grad: Tensor) -> One:
    return (grad * cos(_input(op)),)


@RULES.add("Cos")
def _cos(op: Operation, grad: Tensor) -> One:
    return (-(grad * sin(_input(op))),)


@RULES.add("Tan")
def _tan(op: Operation, grad: Tensor) -> One:
    return (grad * (1 + square(_output(op))),)


@RULES.add("Asin")
def _asin(op: Operation, grad: Tensor) -> One:
    return (grad * rsqrt(1 - square(_input(op))),)


@RULES.add("Acos")
def _acos(op: Operation, grad: Tensor) -> One:
    return (-(grad * rsqrt(1 - square(_input(op)))),)


@RULES.add("Atan")
def _atan(op: Operation, grad: Tensor) -> One:
    return (grad / (1 + square(_input(op))),)


@RULES.add("Atan2")
def _atan2(op: Operation, grad: Tensor) -> Pair:
    y, x = op.inputs
    scaled = grad / (square(x) + square(y))
    return _fit(op, x * scaled, -(y * scaled))


# -- hyperbolic functions


@RULES.add("Sinh")
def _sinh(op: Operation, grad: Tensor) -> One:
    return (grad * cosh(_input(op)),)


@RULES.add("Cosh")
def _cosh(op: Operation, grad: Tensor) -> One:
    return (grad * sinh(_input(op)),)


@RULES.add("Tanh")
def _tanh(op: Operation, grad: Tensor) -> One:
    y = _output(op)
    return (grad * (1 - y * y),)


@RULES.add("Asinh")
def _asinh(op: Operation, grad: Tensor) -> One:
    return (grad / cosh(_output(op)),)


@RULES.add("Acosh")
def _acosh(op: Operation, grad: Tensor) -> One:
    return (grad / sinh(_output(op)),)


@RULES.add("Atanh")
def _atanh(op: Operation, grad: Tensor) -> One:
    return (grad / (1 - square(_input(op))),)


@RULES.add("Sigmoid")
def _sigmoid(op: Operation, grad: Tensor) -> One:
    y = _output(op)
    return (grad * (y * (1 - y)),)
