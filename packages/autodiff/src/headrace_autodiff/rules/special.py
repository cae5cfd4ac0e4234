"""Gradients of special functions.

The incomplete beta function has one for its bound only, and zeta and polygamma for their second
argument only, as in TensorFlow.
"""

from __future__ import annotations

import math

from headrace import (
    Operation,
    Tensor,
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    digamma,
    exp,
    less_equal,
    lgamma,
    log,
    negative,
    polygamma,
    square,
    xlogy,
    zeta,
)
from headrace.errors import NoGradientError
from headrace.extend import GradientTable
from headrace.extend.primitives import igamma_grad_a, real_abs, real_sign, select
from headrace_autodiff.shaping import unbroadcast

RULES = GradientTable()

One = tuple[Tensor]

# -- errors and the normal distribution


@RULES.add("Erf")
def _erf(op: Operation, grad: Tensor) -> One:
    return (grad * (exp(-square(op.inputs[0])) * (2 / math.sqrt(math.pi))),)


@RULES.add("Erfc")
def _erfc(op: Operation, grad: Tensor) -> One:
    return (grad * (exp(-square(op.inputs[0])) * (-2 / math.sqrt(math.pi))),)


@RULES.add("Erfinv")
def _erfinv(op: Operation, grad: Tensor) -> One:
    return (grad * (exp(square(op.outputs[0])) * (math.sqrt(math.pi) / 2)),)


@RULES.add("Ndtri")
def _ndtri(op: Operation, grad: Tensor) -> One:
    return (grad * (exp(square(op.outputs[0]) * 0.5) * math.sqrt(2 * math.pi)),)


# -- gamma and beta


@RULES.add("Lgamma")
def _lgamma(op: Operation, grad: Tensor) -> One:
    return (grad * digamma(op.inputs[0]),)


@RULES.add("Digamma")
def _digamma(op: Operation, grad: Tensor) -> One:
    return (grad * polygamma(1, op.inputs[0]),)


@RULES.add("Polygamma")
def _polygamma(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    order, x = op.inputs
    return None, unbroadcast(grad * polygamma(order + 1, x), x, order.spec.shape)


@RULES.add("Zeta")
def _zeta(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    x, q = op.inputs
    return None, unbroadcast(grad * -x * zeta(x + 1, q), q, x.spec.shape)


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of the incomplete gamma function with respect to its bound."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


@RULES.add("Igamma")
def _igamma(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    a, x = op.inputs
    return (
        unbroadcast(grad * igamma_grad_a(a, x), a, x.spec.shape),
        unbroadcast(grad * _gamma_density(a, x), x, a.spec.shape),
    )


@RULES.add("Igammac")
def _igammac(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    a, x = op.inputs
    return (
        unbroadcast(negative(grad * igamma_grad_a(a, x)), a, x.spec.shape),
        unbroadcast(negative(grad * _gamma_density(a, x)), x, a.spec.shape),
    )


@RULES.add("IgammaGradA")
def _igamma_grad_a(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    a, x = op.inputs
    if a.op.type not in ("Const", "StopGradient"):
        raise NoGradientError(
            "the second derivative of the incomplete gamma function with respect to a is not "
            "implemented; pass hr.stop_gradient(a) where a is not to be differentiated"
        )
    slope = _gamma_density(a, x) * (log(x) - digamma(a))
    return None, unbroadcast(grad * slope, x, a.spec.shape)


@RULES.add("Betainc")
def _betainc(op: Operation, grad: Tensor) -> tuple[None, None, Tensor]:
    a, b, x = op.inputs
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    density = exp(xlogy(a - 1, x) + xlogy(b - 1, 1 - x) - log_beta)
    return None, None, unbroadcast(grad * density, x, a.spec.shape, b.spec.shape)


# -- Bessel functions


@RULES.add("BesselI0")
def _bessel_i0(op: Operation, grad: Tensor) -> One:
    return (grad * bessel_i1(op.inputs[0]),)


@RULES.add("BesselI1")
def _bessel_i1(op: Operation, grad: Tensor) -> One:
    (x,) = op.inputs
    return (grad * (bessel_i0(x) - _over_x(op.outputs[0], x, 0.5)),)


@RULES.add("BesselI0e")
def _bessel_i0e(op: Operation, grad: Tensor) -> One:
    (x,) = op.inputs
    return (grad * (bessel_i1e(x) - real_sign(x) * op.outputs[0]),)


@RULES.add("BesselI1e")
def _bessel_i1e(op: Operation, grad: Tensor) -> One:
    (x,) = op.inputs
    y = op.outputs[0]
    ratio = _over_x(y, x, 0.5 - 0.5 * real_abs(x))
    return (grad * (bessel_i0e(x) - real_sign(x) * y - ratio),)


def _over_x(y: Tensor, x: Tensor, at_zero: Tensor | float) -> Tensor:
    """Return ``y / x``, and its expansion ``at_zero`` where ``x`` is close to 0."""
    near = less_equal(real_abs(x), 1e-7)
    return select(near, at_zero, y / select(near, 1, x))
