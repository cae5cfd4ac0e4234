"""Kernels of special functions, most of them SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, narrowed, widened
from headrace_cpu.kernels.scipy_beside import scipy_module

KERNELS = KernelTable()

_UNARY = {
    "Erf": "erf",
    "Erfc": "erfc",
    "Ndtri": "ndtri",
}
# Those that are x itself where it is 0, of which SciPy loses the sign.
_ODD = {
    "Erfinv": "erfinv",
}


def _unary(function: str) -> Callable[[Any, Array], Array]:
    def kernel(xp: Any, x: Array) -> Array:
        return narrowed(getattr(scipy_module(xp, "special"), function)(widened(x)), x.dtype)

    return kernel


for _op, _function in _UNARY.items():
    KERNELS.plain(_op)(_unary(_function))


def _odd(function: str) -> Callable[[Any, Array], Array]:
    def kernel(xp: Any, x: Array) -> Array:
        value = getattr(scipy_module(xp, "special"), function)(widened(x))
        return xp.where(x == 0, x, narrowed(value, x.dtype))

    return kernel


for _op, _function in _ODD.items():
    KERNELS.plain(_op)(_odd(_function))


@KERNELS.plain("BesselI0")
def bessel_i0(xp: Any, x: Array) -> Array:
    """Compute the Bessel function of order 0, infinite at both ends, where SciPy has NaN."""
    wide = widened(x)
    value = scipy_module(xp, "special").i0(wide)
    return narrowed(xp.where(xp.isinf(wide), xp.absolute(wide), value), x.dtype)


@KERNELS.plain("BesselI0e")
def bessel_i0e(xp: Any, x: Array) -> Array:
    """Compute the scaled Bessel function of order 0, which is 0 at both ends: CuPy has NaN."""
    wide = widened(x)
    value = scipy_module(xp, "special").i0e(wide)
    return narrowed(xp.where(xp.isinf(wide), wide.dtype.type(0), value), x.dtype)


@KERNELS.plain("BesselI1e")
def bessel_i1e(xp: Any, x: Array) -> Array:
    """Compute the scaled Bessel function of order 1, which is 0 at both ends, and x at 0."""
    wide = widened(x)
    value = scipy_module(xp, "special").i1e(wide)
    end = xp.copysign(wide.dtype.type(0), wide)
    value = xp.where(xp.isinf(wide), end, value)
    return xp.where(x == 0, x, narrowed(value, x.dtype))


@KERNELS.plain("BesselI1")
def bessel_i1(xp: Any, x: Array) -> Array:
    """Compute the Bessel function of order 1, which is x at 0 and at both ends."""
    wide = widened(x)
    value = scipy_module(xp, "special").i1(wide)
    return narrowed(xp.where(xp.isinf(wide) | (wide == 0), wide, value), x.dtype)


@KERNELS.plain("Lgamma")
def lgamma(xp: Any, x: Array) -> Array:
    """Compute the logarithm of the absolute value of gamma, infinite at both ends."""
    wide = widened(x)
    value = scipy_module(xp, "special").gammaln(wide)
    size = xp.absolute(wide)
    # SciPy's is infinite for the smallest numbers, and minus infinite at one end.
    value = xp.where(size < np.finfo(wide.dtype).tiny, -xp.log(size), value)
    return narrowed(xp.where(xp.isinf(wide), size, value), x.dtype)


@KERNELS.plain("Digamma")
def digamma(xp: Any, x: Array) -> Array:
    """Compute the derivative of the logarithm of gamma, NaN at all poles."""
    wide = widened(x)
    return narrowed(_digamma(xp, wide), x.dtype)


def _digamma(xp: Any, x: Array) -> Array:
    value = scipy_module(xp, "special").digamma(x)
    return xp.where(x == 0, x.dtype.type(np.nan), value)


@KERNELS.plain("Zeta")
def zeta(xp: Any, x: Array, q: Array) -> Array:
    """Compute Hurwitz's zeta function."""
    return narrowed(_zeta(xp, widened(x), widened(q)), x.dtype)


def _zeta(xp: Any, x: Array, q: Array) -> Array:
    # SciPy's is infinite at poles whatever x is, where q is -inf, and at 1 where q is NaN.
    usable = ~xp.isnan(x) & ~xp.isnan(q) & (q != -np.inf)
    return xp.where(usable, scipy_module(xp, "special").zeta(x, q), x.dtype.type(np.nan))


@KERNELS.plain("Polygamma")
def polygamma(xp: Any, a: Array, x: Array) -> Array:
    """Compute from ``psi(a)(x) = (-1) ** (a + 1) * gamma(a + 1) * zeta(a + 1, x)``.

    In float64, since factorials overflow. Abramowitz and Stegun, Handbook of Mathematical
    Functions, 6.4.10.
    """
    special = scipy_module(xp, "special")
    order, at = a.astype(np.float64), x.astype(np.float64)
    one = order.dtype.type(1)
    sign = xp.where(order % (one + one) == 0, -one, one)
    value = sign * xp.exp(special.gammaln(order + one)) * _zeta(xp, order + one, at)
    value = xp.where(order == 0, _digamma(xp, at), value)
    whole = (order >= 0) & (order == xp.floor(order))
    return narrowed(xp.where(whole, value, order.dtype.type(np.nan)), a.dtype)


@KERNELS.plain("Igamma")
def igamma(xp: Any, a: Array, x: Array) -> Array:
    """Compute the lower incomplete gamma function, an integral over nothing where ``x`` is 0."""
    value = _incomplete_gamma(xp, "gammainc", a, x)
    return xp.where(x == 0, value.dtype.type(0), value)


@KERNELS.plain("Igammac")
def igammac(xp: Any, a: Array, x: Array) -> Array:
    """Compute the upper incomplete gamma function."""
    return _incomplete_gamma(xp, "gammaincc", a, x)


def _incomplete_gamma(xp: Any, function: str, a: Array, x: Array) -> Array:
    shape, bound = widened(a), widened(x)
    value = getattr(scipy_module(xp, "special"), function)(shape, bound)
    inside = (shape > 0) & (bound >= 0)
    return narrowed(xp.where(inside, value, shape.dtype.type(np.nan)), a.dtype)


@KERNELS.plain("Betainc")
def betainc(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """Compute the incomplete beta function in float64: SciPy's of float32 is a dozen units off.

    Where one parameter is infinite all of the distribution is at one end of 0 to 1; releases of
    SciPy before 1.14 do not know that.
    """
    first, second, bound = (each.astype(np.float64) for each in (a, b, x))
    value = scipy_module(xp, "special").betainc(first, second, bound)
    at_one, at_zero = xp.isinf(first), xp.isinf(second)
    value = xp.where(at_one & ~at_zero, (bound == 1).astype(np.float64), value)
    value = xp.where(at_zero & ~at_one, (bound > 0).astype(np.float64), value)
    inside = (first > 0) & (second > 0) & (bound >= 0) & (bound <= 1)
    return narrowed(xp.where(inside, value, first.dtype.type(np.nan)), a.dtype)


# Near x = a both expansions below take about 6 * sqrt(a) terms; of numbers so large that these do
# not suffice, the derivative is close to 0.
_TERMS = 5000


@KERNELS.plain("IgammaGradA")
def igamma_grad_a(xp: Any, a: Array, x: Array) -> Array:
    """Differentiate the expansions of the incomplete gamma function term by term.

    The power series where x is small (DLMF 8.7.1), the continued fraction of its complement
    elsewhere (DLMF 8.9.2). Computed in float64.
    """
    shape, bound = xp.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    if not shape.size:
        return narrowed(shape, a.dtype)
    usable = (shape > 0) & (bound > 0) & xp.isfinite(shape) & xp.isfinite(bound)
    small = (bound <= 1.0) | (bound <= shape)
    series, fraction = usable & small, usable & ~small
    value = xp.where(
        series,
        _by_series(xp, xp.where(series, shape, 1.0), xp.where(series, bound, 0.5)),
        -_by_fraction(xp, xp.where(fraction, shape, 1.0), xp.where(fraction, bound, 2.0)),
    )
    # At both ends of its range the function does not depend on a, as an integral over nothing.
    edge = (shape > 0) & (bound >= 0) & (xp.isinf(bound) | xp.isinf(shape))
    value = xp.where(usable, value, xp.where(edge | (bound == 0), 0.0, np.nan))
    return narrowed(value, a.dtype)


def _by_series(xp: Any, a: Array, x: Array) -> Array:
    """Return dP/da from ``P = x**a exp(-x) / gamma(a + 1) * sum(x**n / ((a + 1) ... (a + n)))``."""
    special = scipy_module(xp, "special")
    term = xp.ones_like(a)
    slope = xp.zeros_like(a)
    total, total_slope = term, slope
    for n in range(1, _TERMS):
        ratio = x / (a + n)
        slope = ratio * (slope - term / (a + n))
        term = term * ratio
        total = total + term
        total_slope = total_slope + slope
        if n % 16 == 0 and bool((xp.absolute(slope) <= 1e-17 * xp.absolute(total_slope)).all()):
            break
    log_x = xp.log(x)
    factor = xp.exp(a * log_x - x - special.gammaln(a + 1.0))
    return factor * (total_slope + total * (log_x - special.digamma(a + 1.0)))


def _by_fraction(xp: Any, a: Array, x: Array) -> Array:
    """Return dQ/da from ``Q = x**a exp(-x) / gamma(a) * f``, f a continued fraction.

    ``f = 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...)))``.

    The fraction is evaluated by the algorithm of Lentz (1976), and with each number its
    derivative with respect to a.
    """
    special = scipy_module(xp, "special")
    b = x + 1.0 - a
    c, c_slope = xp.full_like(a, 1e150), xp.zeros_like(a)
    d = 1.0 / b
    d_slope = d * d
    h, h_slope = d, d_slope
    for n in range(1, _TERMS):
        part = n * (a - n)
        b = b + 2.0
        c_slope = -1.0 + n / c - part * c_slope / (c * c)
        c = b + part / c
        inverse_slope = n * d + part * d_slope - 1.0
        d = 1.0 / (part * d + b)
        d_slope = -inverse_slope * d * d
        step = c * d
        h_slope = h_slope * step + h * (c_slope * d + c * d_slope)
        h = h * step
        if n % 16 == 0 and bool((xp.absolute(step - 1.0) <= 1e-15).all()):
            break
    log_x = xp.log(x)
    factor = xp.exp(a * log_x - x - special.gammaln(a))
    return factor * (h_slope + h * (log_x - special.digamma(a)))
