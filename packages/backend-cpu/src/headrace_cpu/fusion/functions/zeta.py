"""Hurwitz's zeta function by the formula of Euler and Maclaurin, and the derivatives of digamma.

The first derivative is by far the most frequent one, and has polynomials of its own, as digamma has
(see ``gamma``); the others come from the zeta function.

References:
    Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 6.4.6, 6.4.7, 6.4.10, 23.2.20
    NIST Digital Library of Mathematical Functions, 25.11.28, https://dlmf.nist.gov
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace_cpu.fusion.functions.emitter import Emitter, Value, in_double
from headrace_cpu.fusion.functions.exponential import exp
from headrace_cpu.fusion.functions.forms import call_formed, repeat, where_any
from headrace_cpu.fusion.functions.gamma import (
    FAR,
    digamma,
    from_whole,
    lgamma_positive,
    place_of,
)
from headrace_cpu.fusion.functions.gamma_coefficients import SINPI, TRIGAMMA, TRIGAMMA_FAR, ZETA
from headrace_cpu.fusion.functions.power import power

# From here on the sum is a few terms of the formula, of large x from further on.
_BEGIN, _BEGIN_OF_X, _MORE = 10.0, 0.4, 24.0
# Terms below this share of the sum end it.
_SHARE = 2.0**-55
# More terms than that come before it only where q is far below 0.
_TURNS = 1 << 20


def _zeta(e: Emitter, x: Value, q: Value) -> Value:
    """Return zeta for x above 1, where q is no pole."""
    minus = e.neg(x)
    begin = e.at_least(e.mul(e.add(x, _MORE), _BEGIN_OF_X), _BEGIN)

    def turn(n: Value, values: Sequence[Value]) -> tuple[list[Value], Value]:
        place, total, going = values
        more = e.all_of(e.compare(place, "<", begin), e.compare(going, "==", 1.0))
        term = e.select(more, power(e, place, minus), 0.0)
        total = e.add(total, term)
        matters = e.compare(e.abs(term), ">", e.mul(e.abs(total), _SHARE))
        matters = e.either(matters, e.compare(place, "<", 1.0))
        place = e.select(more, e.add(place, 1.0), place)
        going = e.select(matters, going, 0.0)
        on = e.all_of(e.compare(place, "<", begin), e.compare(going, "==", 1.0))
        return [place, total, going], on

    place, total, _ = repeat(e, (q, 0.0, 1.0), turn, _TURNS)
    last = power(e, place, minus)
    inverse = e.div(1.0, place)
    square = e.mul(inverse, inverse)
    # B(2 j) / (2 j)! * x (x + 1) ... (x + 2 j - 2) place**(1 - x - 2 j)
    factor = e.mul(x, inverse)
    rest = e.constant(0.5)
    for j, coefficient in enumerate(ZETA):
        rest = e.fma(factor, coefficient, rest)
        grown = e.mul(e.add(x, 2.0 * j + 1.0), e.add(x, 2.0 * j + 2.0))
        factor = e.mul(factor, e.mul(grown, square))
    main = e.div(place, e.sub(x, 1.0))
    # The series is not good before it begins, nor where the power is 0.
    begun = e.all_of(e.compare(place, ">=", begin), e.compare(last, ">", 0.0))
    return e.add(total, e.select(begun, e.mul(last, e.add(main, rest)), 0.0))


@in_double
def _zeta_of_any(e: Emitter, x: Value, q: Value) -> Value:
    whole = e.compare(e.round(x), "==", x)
    below = e.compare(q, "<=", 0.0)
    pole = e.all_of(below, e.compare(e.round(q), "==", q))
    real = e.either(e.compare(q, ">", 0.0), whole)
    above = e.all_of(e.compare(x, ">", 1.0), e.compare(x, "<", math.inf))
    usable = e.all_of(e.all_of(above, real), e.compare(e.abs(q), "<", math.inf))
    usable = e.all_of(usable, e.builder.not_(pole))
    value = _zeta(e, e.select(usable, x, 2.0), e.select(usable, q, 1.0))
    value = e.select(usable, value, math.nan)
    value = e.select(e.all_of(pole, e.compare(x, ">", 1.0)), math.inf, value)
    return _zeta_ends(e, x, q, value)


def _zeta_ends(e: Emitter, x: Value, q: Value, value: Value) -> Value:
    """Return zeta with what it is at the ends, as the plain kernel has it."""
    value = e.select(e.all_of(e.compare(q, "==", math.inf), e.compare(x, ">", 1.0)), 0.0, value)
    one = e.select(e.compare(q, "==", 1.0), 1.0, value)
    at_end = e.select(e.compare(q, "<", 1.0), math.inf, one)
    value = e.select(e.compare(x, "==", math.inf), at_end, value)
    value = e.select(e.compare(x, "==", 1.0), math.inf, value)
    lost = e.either(e.is_nan(q), e.compare(q, "==", -math.inf))
    return e.select(lost, math.nan, value)


def zeta(e: Emitter, x: Value, q: Value) -> Value:
    """Return Hurwitz's zeta function."""
    return call_formed(e, "headrace_zeta", (x, q), _zeta_of_any)


def _trigamma_positive(e: Emitter, a: Value, *, of_next: bool) -> Value:
    """Return the derivative of digamma at a positive number, or at 1 more than it."""
    far, small = e.compare(a, ">=", FAR), e.compare(a, "<", 1.0)
    y = e.select(small, e.add(a, 1.0), a)
    place = place_of(e, far, a, y)
    near = e.polynomial(place, e.of(TRIGAMMA))
    inverse = e.div(1.0, a)
    square = e.mul(inverse, inverse)
    if of_next:
        near = e.select(small, near, e.sub(near, square))
    else:
        near = e.select(small, e.add(near, square), near)
    w = e.mul(place, place)
    half = -0.5 if of_next else 0.5
    series = e.fma(w, half, e.mul(e.mul(place, w), e.polynomial(w, e.of(TRIGAMMA_FAR))))
    return e.select(far, e.add(place, series), near)


def _trigamma(e: Emitter, x: Value) -> Value:
    a = e.abs(x)
    negative = e.compare(x, "<=", 0.0)

    def reflected() -> Value:
        rest, square = from_whole(e, a)
        ratio = e.div(math.pi, e.mul(rest, e.polynomial(square, e.of(SINPI))))
        value = e.sub(e.mul(ratio, ratio), _trigamma_positive(e, a, of_next=True))
        return e.select(e.compare(rest, "==", 0.0), math.inf, value)

    return where_any(e, negative, _trigamma_positive(e, x, of_next=False), reflected)


@in_double
def _polygamma(e: Emitter, order: Value, x: Value) -> Value:
    other = e.builder.not_(e.compare(order, "==", 1.0))

    def general() -> Value:
        whole = e.all_of(e.compare(order, ">", 0.0), e.compare(e.round(order), "==", order))
        n = e.select(whole, order, 2.0)
        next_one = e.add(n, 1.0)
        half = e.mul(n, 0.5)
        even = e.all_of(e.compare(e.round(half), "==", half), e.compare(half, "<", math.inf))
        sign = e.select(even, -1.0, 1.0)
        # Of more than that nothing is finite but for large x.
        factorial = exp(e, lgamma_positive(e, next_one))
        value = e.mul(e.mul(sign, factorial), _zeta_of_any(e, next_one, x))
        value = e.select(whole, value, math.nan)
        zeroth = e.compare(order, "==", 0.0)
        return where_any(e, zeroth, value, lambda: digamma(e, x))

    return where_any(e, other, _trigamma(e, x), general)


def polygamma(e: Emitter, order: Value, x: Value) -> Value:
    """Return a derivative of digamma, NaN where the order is not a whole number >= 0."""
    return call_formed(e, "headrace_polygamma", (order, x), _polygamma)
