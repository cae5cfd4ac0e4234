"""Special functions: of errors, gamma and beta, Riemann and Hurwitz zeta, and Bessel's."""

from __future__ import annotations

from typing import Any

from headrace.errors import ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec
from headrace.ops.kinds import Floating
from headrace.ops.pointwise import joined, like, pointwise
from headrace.ops.reduce import reduce_sum

# -- errors and the normal distribution


@pointwise("Erf", expression=lambda s, x: s.erf(x), sparse=True)
def erf(x: Floating) -> Spec:
    """Error function: twice the chance that a normal number of variance 1/2 is in [0, x]."""
    return like(x)


@pointwise("Erfc", expression=lambda s, x: s.erfc(x))
def erfc(x: Floating) -> Spec:
    """``1 - erf(x)``, exact for large ``x``."""
    return like(x)


@pointwise("Erfinv", expression=lambda s, x: s.erfinv(x))
def erfinv(x: Floating) -> Spec:
    """The inverse of ``erf``; infinite at -1 and 1, NaN outside."""
    return like(x)


@pointwise("Ndtri", expression=lambda s, x: s.ndtri(x))
def ndtri(x: Floating) -> Spec:
    """Quantile of the standard normal distribution; infinite at 0 and 1, NaN outside."""
    return like(x)


# -- gamma and beta


@pointwise("Lgamma", expression=lambda s, x: s.lgamma(x))
def lgamma(x: Floating) -> Spec:
    """``log(abs(gamma(x)))``; infinite where ``x`` is 0 or a negative whole number."""
    return like(x)


@pointwise("Digamma", expression=lambda s, x: s.digamma(x))
def digamma(x: Floating) -> Spec:
    """The derivative of ``lgamma``; NaN where ``x`` is a negative whole number."""
    return like(x)


@pointwise("Polygamma", expression=lambda s, a, x: s.polygamma(a, x))
def polygamma(a: Floating, x: Floating) -> Spec:
    """The ``a``-th derivative of ``digamma``; NaN where ``a`` is not a whole number >= 0."""
    return joined(a, x)


@pointwise("Zeta", expression=lambda s, x, q: s.zeta(x, q))
def zeta(x: Floating, q: Floating) -> Spec:
    """Hurwitz's zeta function: the sum of ``(q + n) ** -x`` over n = 0, 1, 2, ..."""
    return joined(x, q)


@pointwise("Igamma", expression=lambda s, a, x: s.igamma(a, x))
def igamma(a: Floating, x: Floating) -> Spec:
    """Lower regularized incomplete gamma function ``P(a, x)``.

    The integral of ``t ** (a - 1) * exp(-t)`` over [0, x], divided by ``gamma(a)``. NaN where
    ``a`` is not positive or ``x`` is negative.
    """
    return joined(a, x)


@pointwise("Igammac", expression=lambda s, a, x: s.igammac(a, x))
def igammac(a: Floating, x: Floating) -> Spec:
    """Upper regularized incomplete gamma function ``1 - P(a, x)``; see ``igamma``."""
    return joined(a, x)


@pointwise("IgammaGradA", expression=lambda s, a, x: s.igamma_grad_a(a, x), public="")
def igamma_grad_a(a: Floating, x: Floating) -> Spec:
    """The derivative of ``igamma`` with respect to ``a``."""
    return joined(a, x)


@pointwise("Betainc", expression=lambda s, a, b, x: s.betainc(a, b, x))
def betainc(a: Floating, b: Floating, x: Floating) -> Spec:
    """Regularized incomplete beta function.

    The integral of ``t ** (a - 1) * (1 - t) ** (b - 1)`` over [0, x], divided by that over [0, 1].
    NaN where ``a`` or ``b`` is not positive, or ``x`` is outside [0, 1].
    """
    return joined(a, b, x)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """Logarithm of the multivariate beta function, of the last dimension.

    ``sum(lgamma(x)) - lgamma(sum(x))``; minus infinity where the last dimension is empty.

    Args:
        x: [..., n], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        ShapeError: if ``x`` is a scalar.
    """
    with name_scope(name, "lbeta"):
        tensor = convert_to_tensor(x)
        if tensor.shape.rank == 0:
            raise ShapeError("lbeta: x must have at least 1 dimension, got a scalar")
        return reduce_sum(lgamma(tensor), -1) - lgamma(reduce_sum(tensor, -1))


# -- modified Bessel functions of the first kind


@pointwise("BesselI0", expression=lambda s, x: s.bessel_i0(x))
def bessel_i0(x: Floating) -> Spec:
    """Modified Bessel function of the first kind and order 0."""
    return like(x)


@pointwise("BesselI1", expression=lambda s, x: s.bessel_i1(x))
def bessel_i1(x: Floating) -> Spec:
    """Modified Bessel function of the first kind and order 1."""
    return like(x)


@pointwise("BesselI0e", expression=lambda s, x: s.bessel_i0e(x))
def bessel_i0e(x: Floating) -> Spec:
    """``exp(-abs(x)) * bessel_i0(x)``, without overflow."""
    return like(x)


@pointwise("BesselI1e", expression=lambda s, x: s.bessel_i1e(x))
def bessel_i1e(x: Floating) -> Spec:
    """``exp(-abs(x)) * bessel_i1(x)``, without overflow."""
    return like(x)
