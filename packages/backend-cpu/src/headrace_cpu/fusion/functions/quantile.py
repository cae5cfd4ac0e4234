"""Inverses of the error function and of the normal distribution.

``erfinv(x) = x q(w)`` with ``w = -log(1 - x**2)`` where x is not close to 1 in size. Close to 1 it
is a quotient of polynomials of ``s = sqrt(-log(1 - abs(x)))``. The quantiles of the normal
distribution are the same function, of probabilities that are precise near 0.

References:
    M. Giles, Approximating the erfinv function, GPU Computing Gems Jade Edition, 2011 (w)
    M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied
    Statistics 37, 1988 (s)
"""

from __future__ import annotations

import math

from headrace_cpu.fusion.functions.emitter import FLOAT32, Emitter, Value
from headrace_cpu.fusion.functions.logarithm import log_parts
from headrace_cpu.fusion.functions.rare import unless_rare
from headrace_cpu.fusion.functions.special_coefficients import (
    QUANTILE,
    QUANTILE_END,
    QUANTILE_END_UNDER,
    QUANTILE_FAR,
    QUANTILE_FAR_UNDER,
)

# Numbers closer to 1 than that are far: s is 2.
_FAR = math.exp(-4.0)
# In float64 there are other polynomials beyond this s. No erfinv is there.
_END = 6.125


def _far(e: Emitter, s: Value) -> Value:
    """Return the inverse of erfc at ``exp(-s**2)``, s from 2 on."""
    place = e.sub(s, 2.0)
    over, under = e.polynomial(place, e.of(QUANTILE_FAR)), e.of(QUANTILE_FAR_UNDER)
    return e.div(over, e.polynomial(place, under))


def _root(e: Emitter, rest: Value) -> Value:
    """Return s of how far a number is from 1."""
    main, tail = log_parts(e, rest)
    return e.sqrt(e.neg(e.add(main, tail)))


def _quantile(e: Emitter, x: Value, rest: Value, square_rest: Value, factor: float) -> Value:
    """Return erfinv(x) times a factor.

    Args:
        e: The emitter.
        x: The number.
        rest: ``1 - abs(x)``.
        square_rest: ``1 - x**2``.
        factor: The factor.
    """
    is_far = e.compare(rest, "<", _FAR)
    main, tail = log_parts(e, e.select(is_far, rest, square_rest))
    w = e.neg(e.add(main, tail))
    near = e.mul(x, e.polynomial(w, [c * factor for c in e.of(QUANTILE)]))
    far = e.mul(_far(e, e.sqrt(w)), factor)
    far = e.select(e.compare(rest, ">", 0.0), far, math.inf)
    far = e.select(e.compare(rest, "<", 0.0), math.nan, far)
    return e.select(is_far, e.copysign(far, x), near)


def erfinv(e: Emitter, x: Value) -> Value:
    """Return the inverse of the error function: infinite at -1 and 1, NaN beyond."""
    rest = e.sub(1.0, e.abs(x))
    return _quantile(e, x, rest, e.mul(rest, e.add(1.0, e.abs(x))), 1.0)


def _is_tiny(e: Emitter, p: Value) -> Value:
    # Nothing is as close to 1.
    return e.all_of(e.compare(p, "<", math.exp(-_END * _END) / 2), e.compare(p, ">", 0.0))


def _tiny(e: Emitter, p: Value) -> Value:
    """Return the quantile of a very small probability."""
    place = e.sub(_root(e, e.add(p, p)), _END)
    over, under = e.polynomial(place, e.of(QUANTILE_END)), e.of(QUANTILE_END_UNDER)
    return e.mul(e.div(over, e.polynomial(place, under)), -math.sqrt(2.0))


def ndtri(e: Emitter, p: Value) -> Value:
    """Return the quantile of the normal distribution: infinite at 0 and 1, NaN beyond."""
    from_half = e.sub(p, 0.5)
    other = e.sub(1.0, p)
    smaller = e.select(e.compare(p, "<", 0.5), p, other)
    twice = e.add(smaller, smaller)
    square_rest = e.mul(e.mul(p, 4.0), other)
    usual = _quantile(e, e.add(from_half, from_half), twice, square_rest, math.sqrt(2.0))
    # Of NaN neither half is chosen.
    usual = e.select(e.is_nan(p), p, usual)
    if e.form is FLOAT32:
        return usual
    return unless_rare(e, "ndtri", p, usual, _is_tiny, _tiny)
