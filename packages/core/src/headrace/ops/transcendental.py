"""Roots, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

from headrace.ops.declare import Spec
from headrace.ops.kinds import Floating, Inexact
from headrace.ops.pointwise import joined, like, pointwise

# -- roots, exponentials and logarithms


@pointwise("Sqrt", exact=True, expression=lambda s, x: s.sqrt(x), sparse=True)
def sqrt(x: Inexact) -> Spec:
    """Square root; NaN for negative real numbers."""
    return like(x)


@pointwise("Rsqrt", expression=lambda s, x: 1 / s.sqrt(x))
def rsqrt(x: Inexact) -> Spec:
    """``1 / sqrt(x)``; infinite where ``x`` is 0."""
    return like(x)


@pointwise("Exp", nonnegative=True, expression=lambda s, x: s.exp(x))
def exp(x: Inexact) -> Spec:
    """Exponential ``e ** x``."""
    return like(x)


@pointwise("Expm1", expression=lambda s, x: s.expm1(x))
def expm1(x: Inexact) -> Spec:
    """``exp(x) - 1``, exact for small ``x``."""
    return like(x)


@pointwise("Log", expression=lambda s, x: s.log(x))
def log(x: Inexact) -> Spec:
    """Natural logarithm; minus infinity at 0 and NaN for negative real numbers."""
    return like(x)


@pointwise("Log1p", expression=lambda s, x: s.log1p(x))
def log1p(x: Inexact) -> Spec:
    """``log(1 + x)``, exact for small ``x``."""
    return like(x)


@pointwise("Xlogy", expression=lambda s, x, y: s.where(x == 0, 0, x * s.log(y)))
def xlogy(x: Inexact, y: Inexact) -> Spec:
    """``x * log(y)`` that is 0 wherever ``x`` is 0, whatever ``y`` is."""
    return joined(x, y)


@pointwise("Xdivy", expression=lambda s, x, y: s.where(x == 0, 0, x / y))
def xdivy(x: Inexact, y: Inexact) -> Spec:
    """``x / y`` that is 0 wherever ``x`` is 0, whatever ``y`` is."""
    return joined(x, y)


# -- trigonometric functions


@pointwise("Sin", expression=lambda s, x: s.sin(x))
def sin(x: Inexact) -> Spec:
    """Sine of ``x`` radians."""
    return like(x)


@pointwise("Cos", expression=lambda s, x: s.cos(x))
def cos(x: Inexact) -> Spec:
    """Cosine of ``x`` radians."""
    return like(x)


@pointwise("Tan", expression=lambda s, x: s.tan(x))
def tan(x: Inexact) -> Spec:
    """Tangent of ``x`` radians."""
    return like(x)


@pointwise("Asin", expression=lambda s, x: s.asin(x))
def asin(x: Inexact) -> Spec:
    """Inverse sine in radians; NaN for real numbers outside [-1, 1]."""
    return like(x)


@pointwise("Acos", expression=lambda s, x: s.acos(x))
def acos(x: Inexact) -> Spec:
    """Inverse cosine in radians; NaN for real numbers outside [-1, 1]."""
    return like(x)


@pointwise("Atan", expression=lambda s, x: s.atan(x))
def atan(x: Inexact) -> Spec:
    """Inverse tangent in radians."""
    return like(x)


@pointwise("Atan2", expression=lambda s, y, x: s.atan2(y, x))
def atan2(y: Floating, x: Floating) -> Spec:
    """The angle of the point (x, y) in radians, in [-pi, pi], elementwise with broadcasting."""
    return joined(y, x)


# -- hyperbolic functions


@pointwise("Sinh", expression=lambda s, x: s.sinh(x))
def sinh(x: Inexact) -> Spec:
    """Hyperbolic sine."""
    return like(x)


@pointwise("Cosh", nonnegative=True, expression=lambda s, x: s.cosh(x))
def cosh(x: Inexact) -> Spec:
    """Hyperbolic cosine."""
    return like(x)


@pointwise("Tanh", expression=lambda s, x: s.tanh(x), sparse=True)
def tanh(x: Inexact) -> Spec:
    """Hyperbolic tangent."""
    return like(x)


@pointwise("Asinh", expression=lambda s, x: s.asinh(x))
def asinh(x: Inexact) -> Spec:
    """Inverse hyperbolic sine."""
    return like(x)


@pointwise("Acosh", expression=lambda s, x: s.acosh(x))
def acosh(x: Inexact) -> Spec:
    """Inverse hyperbolic cosine; NaN for real numbers below 1."""
    return like(x)


@pointwise("Atanh", expression=lambda s, x: s.atanh(x))
def atanh(x: Inexact) -> Spec:
    """Inverse hyperbolic tangent; NaN for real numbers outside [-1, 1]."""
    return like(x)


@pointwise("Sigmoid", nonnegative=True, expression=lambda s, x: s.sigmoid(x))
def sigmoid(x: Inexact) -> Spec:
    """Logistic function ``1 / (1 + exp(-x))``, without overflow."""
    return like(x)
