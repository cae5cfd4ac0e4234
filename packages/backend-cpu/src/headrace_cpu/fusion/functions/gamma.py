"""The logarithm of the gamma function, and its derivative.

Of positive numbers: Stirling's series with fitted coefficients from 3.5 on; between, the distance
from the zeros times a polynomial of ``(x - m) / (x + m)``, which keeps the singularities at 0 and
below far away; near 0 the recurrence. What is negative is rare, and comes by reflection,
``gamma(x) gamma(-x) = -pi / (x sin(pi x))``, in float64 throughout. Beside the zeros between
negative whole numbers float64 has no digits for a small relative error: there errors are small
beside 1 only.

References:
    Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 6.1.17, 6.1.40, 6.3.7, 6.3.18
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from headrace_cpu.fusion.functions.emitter import FLOAT32, FLOAT64, Emitter, Value
from headrace_cpu.fusion.functions.gamma_coefficients import (
    COSPI,
    DIGAMMA,
    DIGAMMA_FAR,
    DIGAMMA_ROOT,
    DIGAMMA_ROOT_FLOAT32,
    LGAMMA,
    LGAMMA_FAR,
    SINPI,
)
from headrace_cpu.fusion.functions.logarithm import log, log_parts
from headrace_cpu.fusion.functions.rare import unless_rare

# From here on Stirling's series.
FAR = 3.5
# What the polynomials between take is the place of x beside it, (x - m) / (x + m).
_MIDDLE = 1.3125
# log(2 pi) / 2 - 1/2
_STIRLING = 0.5 * math.log(2 * math.pi) - 0.5
# Below, lgamma(-x) is lgamma(x) but for its last digits, and what reflects has no digits.
_TINY = 2.0**-70


def place_of(e: Emitter, far: Value, a: Value, y: Value) -> Value:
    """Return ``1 / a`` of a far number, else what the polynomial of a near one takes."""
    over = e.select(far, 1.0, e.sub(y, _MIDDLE))
    return e.div(over, e.select(far, a, e.add(y, _MIDDLE)))


def lgamma_positive(e: Emitter, a: Value) -> Value:
    """Return the logarithm of gamma of a number that is not negative."""
    far, small = e.compare(a, ">=", FAR), e.compare(a, "<", 0.5)
    y = e.select(small, e.add(a, 1.0), a)
    place = place_of(e, far, a, y)
    near = e.mul(e.mul(e.sub(y, 1.0), e.sub(y, 2.0)), e.polynomial(place, e.of(LGAMMA)))
    main, rest = log_parts(e, a)
    # What is added otherwise makes 0 of -0 at 1.
    near = e.add(near, e.select(small, e.neg(e.add(main, rest)), 0.0))
    series = e.polynomial(e.mul(place, place), e.of(LGAMMA_FAR))
    log_less_one = e.add(e.sub(main, 1.0), rest)
    beyond = e.fma(e.sub(a, 0.5), log_less_one, e.fma(place, series, _STIRLING))
    value = e.select(far, beyond, near)
    return e.select(e.compare(a, "==", 0.0), math.inf, value)


def lgamma_of_next(e: Emitter, a: Value) -> Value:
    """Return lgamma(1 + a), precise where a is small beside 1."""
    y = e.add(a, 1.0)
    place = e.div(e.sub(y, _MIDDLE), e.add(y, _MIDDLE))
    near = e.mul(e.mul(a, e.sub(a, 1.0)), e.polynomial(place, e.of(LGAMMA)))
    further = e.add(lgamma_positive(e, a), log(e, a))
    return e.select(e.compare(y, "<", FAR), near, further)


def _is_negative(e: Emitter, x: Value) -> Value:
    return e.compare(x, "<", 0.0)


def _precisely(written: Callable[[Emitter, Value], Value]) -> Callable[[Emitter, Value], Value]:
    """Return the function that computes with all digits of float64, whatever is wanted."""

    @functools.wraps(written)
    def either(e: Emitter, x: Value) -> Value:
        if e.form is FLOAT64:
            return written(e, x)
        wide = Emitter(e.builder, FLOAT64, lanes=e.lanes)
        return e.builder.fptrunc(written(wide, e.builder.fpext(x, wide.real)), e.real)

    return either


def from_whole(e: Emitter, a: Value) -> tuple[Value, Value]:
    """Return how far a number is from the nearest whole one, and the square of that."""
    rest = e.sub(a, e.round(a))
    return rest, e.mul(rest, rest)


@_precisely
def _lgamma_negative(e: Emitter, x: Value) -> Value:
    a = e.abs(x)
    rest, square = from_whole(e, a)
    sine = e.mul(e.abs(rest), e.polynomial(square, e.of(SINPI)))
    positive = lgamma_positive(e, a)
    value = e.sub(log(e, e.div(math.pi, e.mul(a, sine))), positive)
    value = e.select(e.compare(a, "<", _TINY), positive, value)
    return e.select(e.compare(e.round(a), "==", a), math.inf, value)


def lgamma(e: Emitter, x: Value) -> Value:
    """Return the logarithm of the absolute value of gamma, infinite at the poles."""
    usual = lgamma_positive(e, x)
    return unless_rare(e, "lgamma", x, usual, _is_negative, _lgamma_negative)


def digamma_positive(e: Emitter, a: Value, *, of_next: bool) -> Value:
    """Return digamma of a positive number, or of 1 more than it."""
    far, small = e.compare(a, ">=", FAR), e.compare(a, "<", 1.0)
    y = e.select(small, e.add(a, 1.0), a)
    place = place_of(e, far, a, y)
    root = DIGAMMA_ROOT_FLOAT32 if e.form is FLOAT32 else DIGAMMA_ROOT
    from_root = e.sub(e.sub(y, root[0]), root[1])
    near = e.mul(from_root, e.polynomial(place, e.of(DIGAMMA)))
    if of_next:
        near = e.select(small, near, e.add(near, e.div(1.0, a)))
    else:
        near = e.select(small, e.sub(near, e.div(1.0, a)), near)
    main, rest = log_parts(e, a)
    half = 0.5 if of_next else -0.5
    series = e.fma(e.mul(place, place), e.polynomial(e.mul(place, place), e.of(DIGAMMA_FAR)), rest)
    beyond = e.add(main, e.fma(place, half, series))
    beyond = e.select(e.compare(a, "==", math.inf), a, beyond)
    return e.select(far, beyond, near)


@_precisely
def _digamma_negative(e: Emitter, x: Value) -> Value:
    a = e.abs(x)
    rest, square = from_whole(e, a)
    sine = e.mul(rest, e.polynomial(square, e.of(SINPI)))
    cosine = e.polynomial(square, e.of(COSPI))
    turned = e.div(e.mul(cosine, math.pi), sine)
    value = e.add(digamma_positive(e, a, of_next=True), turned)
    return e.select(e.compare(e.round(a), "==", a), math.nan, value)


def _is_not_positive(e: Emitter, x: Value) -> Value:
    return e.compare(x, "<=", 0.0)


def digamma(e: Emitter, x: Value) -> Value:
    """Return the derivative of lgamma, NaN at the poles."""
    usual = digamma_positive(e, x, of_next=False)
    return unless_rare(e, "digamma", x, usual, _is_not_positive, _digamma_negative)
