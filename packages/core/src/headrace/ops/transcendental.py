"""Roots, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

from typing import Any

from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec
from headrace.ops.elementwise import negative
from headrace.ops.kinds import Floating, Inexact
from headrace.ops.pointwise import joined, like, pointwise

# -- roots, exponentials and logarithms


@pointwise("Sqrt", sparse=True, in_place=[(0, 0)])
def sqrt(x: Inexact) -> Spec:
    """Square root; NaN for negative real numbers."""
    return like(x)


@pointwise("Rsqrt", in_place=[(0, 0)])
def rsqrt(x: Inexact) -> Spec:
    """``1 / sqrt(x)``; infinite where ``x`` is 0."""
    return like(x)


@pointwise("Exp", in_place=[(0, 0)])
def exp(x: Inexact) -> Spec:
    """Exponential ``e ** x``."""
    return like(x)


@pointwise("Expm1", in_place=[(0, 0)])
def expm1(x: Inexact) -> Spec:
    """``exp(x) - 1``, exact for small ``x``."""
    return like(x)


@pointwise("Log", in_place=[(0, 0)])
def log(x: Inexact) -> Spec:
    """Natural logarithm; minus infinity at 0 and NaN for negative real numbers."""
    return like(x)


@pointwise("Log1p", in_place=[(0, 0)])
def log1p(x: Inexact) -> Spec:
    """``log(1 + x)``, exact for small ``x``."""
    return like(x)


@pointwise("Xlogy")
def xlogy(x: Inexact, y: Inexact) -> Spec:
    """``x * log(y)`` that is 0 wherever ``x`` is 0, whatever ``y`` is."""
    return joined(x, y)


@pointwise("Xdivy")
def xdivy(x: Inexact, y: Inexact) -> Spec:
    """``x / y`` that is 0 wherever ``x`` is 0, whatever ``y`` is."""
    return joined(x, y)


# -- trigonometric functions


@pointwise("Sin", in_place=[(0, 0)])
def sin(x: Inexact) -> Spec:
    """Sine of ``x`` radians."""
    return like(x)


@pointwise("Cos", in_place=[(0, 0)])
def cos(x: Inexact) -> Spec:
    """Cosine of ``x`` radians."""
    return like(x)


@pointwise("Tan", in_place=[(0, 0)])
def tan(x: Inexact) -> Spec:
    """Tangent of ``x`` radians."""
    return like(x)


@pointwise("Asin", in_place=[(0, 0)])
def asin(x: Inexact) -> Spec:
    """Inverse sine in radians; NaN for real numbers outside [-1, 1]."""
    return like(x)


@pointwise("Acos", in_place=[(0, 0)])
def acos(x: Inexact) -> Spec:
    """Inverse cosine in radians; NaN for real numbers outside [-1, 1]."""
    return like(x)


@pointwise("Atan", in_place=[(0, 0)])
def atan(x: Inexact) -> Spec:
    """Inverse tangent in radians."""
    return like(x)


@pointwise("Atan2")
def atan2(y: Floating, x: Floating) -> Spec:
    """The angle of the point (x, y) in radians, in [-pi, pi], elementwise with broadcasting."""
    return joined(y, x)


# -- hyperbolic functions


@pointwise("Sinh", in_place=[(0, 0)])
def sinh(x: Inexact) -> Spec:
    """Hyperbolic sine."""
    return like(x)


@pointwise("Cosh", in_place=[(0, 0)])
def cosh(x: Inexact) -> Spec:
    """Hyperbolic cosine."""
    return like(x)


@pointwise("Tanh", sparse=True, in_place=[(0, 0)])
def tanh(x: Inexact) -> Spec:
    """Hyperbolic tangent."""
    return like(x)


@pointwise("Asinh", in_place=[(0, 0)])
def asinh(x: Inexact) -> Spec:
    """Inverse hyperbolic sine."""
    return like(x)


@pointwise("Acosh", in_place=[(0, 0)])
def acosh(x: Inexact) -> Spec:
    """Inverse hyperbolic cosine; NaN for real numbers below 1."""
    return like(x)


@pointwise("Atanh", in_place=[(0, 0)])
def atanh(x: Inexact) -> Spec:
    """Inverse hyperbolic tangent; NaN for real numbers outside [-1, 1]."""
    return like(x)


@pointwise("Sigmoid", in_place=[(0, 0)])
def sigmoid(x: Inexact) -> Spec:
    """Logistic function ``1 / (1 + exp(-x))``, without overflow."""
    return like(x)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """``log(sigmoid(x))``, without overflow.

    Args:
        x: [...], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``x``.
    """
    # It is used by functions that softplus needs not know of.
    from headrace.ops.activation import softplus

    with name_scope(name, "LogSigmoid"):
        return negative(softplus(negative(x)))
