"""Logarithms: log, log1p, and softplus and the inverse hyperbolic functions made of them.

``x = 2**k (1 + f)`` with 1 + f between the square root of 1/2 and that of 2; then
``log(x) = k ln 2 + log(1 + f)``, ln 2 in two parts.
"""

from __future__ import annotations

import math

from headrace_cpu.fusion.functions.coefficients import LOG
from headrace_cpu.fusion.functions.emitter import Emitter, Value
from headrace_cpu.fusion.functions.exponential import exp


def split(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return the integer k and 1 + f of a positive normal number."""
    lowest = e.bits(e.constant(math.sqrt(0.5)))
    above = e.minus(e.bits(x), lowest)
    k = e.right(above, e.form.fraction)
    fraction = e.both(above, (1 << e.form.fraction) - 1)
    return k, e.number(e.plus(fraction, lowest))


def _parts(e: Emitter, k: Value, f: Value) -> tuple[Value, Value]:
    """Return ``k ln 2 + log(1 + f)`` as a sum of two."""
    high, low = e.form.ln2
    coefficients = e.of(LOG)
    half_square = e.mul(e.mul(f, 0.5), f)
    if e.form.bits == 32:
        # log(1 + f) = f - f**2 / 2 + f**3 q(f)
        cube = e.mul(e.mul(f, f), f)
        tail = e.fma(cube, e.polynomial(f, coefficients), e.mul(k, low))
        tail = e.sub(tail, half_square)
    else:
        # With s = f / (2 + f): log(1 + f) = f - (f**2 / 2 - s (f**2 / 2 + z q(z))), z = s**2.
        s = e.div(f, e.add(f, 2.0))
        z = e.mul(s, s)
        inner = e.fma(z, e.polynomial(z, coefficients), half_square)
        tail = e.sub(e.fma(s, inner, e.mul(k, low)), half_square)
    main = e.fma(k, high, f)
    lost = e.sub(f, e.fma(k, -high, main))
    return main, e.add(tail, lost)


def log_parts(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return the logarithm of a positive finite number as a sum of two.

    The first is less than a rounding error off, the sum not much less.
    """
    form = e.form
    small = e.compare(x, "<", form.tiny)
    up = form.fraction + 2
    normal = e.select(small, e.mul(x, 2.0**up), x)
    k, significand = split(e, normal)
    whole = e.to_number(k)
    exponent = e.select(small, e.sub(whole, float(up)), whole)
    return _parts(e, exponent, e.sub(significand, 1.0))


def log(e: Emitter, x: Value) -> Value:
    """Return the natural logarithm: -inf of 0, NaN of what is negative."""
    return _with_ends(e, x, x, e.add(*log_parts(e, x)))


def _with_ends(e: Emitter, x: Value, argument: Value, value: Value) -> Value:
    """Return a logarithm of `argument` with what it is at and beyond the ends."""
    value = e.select(e.compare(x, "<", math.inf), value, x)
    beyond = e.select(e.compare(argument, "==", 0.0), -math.inf, math.nan)
    return e.select(e.compare(argument, ">", 0.0), value, beyond)


def _log1p(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return 1 + x and log(1 + x) where the former is positive and finite."""
    total, lost = e.exact_sum(1.0, x)
    k, significand = split(e, total)
    scale = e.number(e.minus(e.bits(e.constant(1.0)), e.left(k, e.form.fraction)))
    # It matters no more where 2**-k may have left the normal numbers.
    lost = e.select(e.compare(x, "<", 2.0 ** (e.form.fraction + 6)), e.mul(lost, scale), 0.0)
    return total, e.add(*_parts(e, e.to_number(k), e.add(e.sub(significand, 1.0), lost)))


def log1p(e: Emitter, x: Value) -> Value:
    """Return log(1 + x), precise near 0."""
    total, value = _log1p(e, x)
    value = e.select(e.compare(x, "==", 0.0), x, value)
    return _with_ends(e, x, total, value)


def softplus(e: Emitter, x: Value) -> Value:
    """Return log(1 + exp(x)) as max(x, 0) + log1p(exp(-abs(x)))."""
    _, tail = _log1p(e, exp(e, e.neg(e.abs(x))))
    positive = e.select(e.compare(x, ">", 0.0), x, 0.0)
    return e.select(e.is_nan(x), x, e.add(positive, tail))


# From here on log1p(x) and log(x) are the same, and the square of x still finite.
_LARGE = 2.0**60


def asinh(e: Emitter, x: Value) -> Value:
    """Return the inverse hyperbolic sine, log1p(a + a**2 / (1 + sqrt(1 + a**2))), a = abs(x)."""
    size = e.abs(x)
    square = e.mul(size, size)
    below = e.add(size, e.div(square, e.add(1.0, e.sqrt(e.add(1.0, square)))))
    value = _of_twice(e, size, below)
    return e.select(e.compare(x, "==", 0.0), x, e.copysign(value, x))


def acosh(e: Emitter, x: Value) -> Value:
    """Return the inverse hyperbolic cosine, log1p(t + sqrt(2 t + t**2)), t = x - 1."""
    above = e.sub(x, 1.0)
    below = e.add(above, e.sqrt(e.fma(above, above, e.add(above, above))))
    return e.select(e.compare(x, ">=", 1.0), _of_twice(e, x, below), math.nan)


def _of_twice(e: Emitter, size: Value, below: Value) -> Value:
    """Return log(2 size) where size is large, else log1p(below)."""
    large = e.compare(size, ">", _LARGE)
    value = log1p(e, e.select(large, size, below))
    return e.select(large, e.add(value, math.log(2)), value)


def atanh(e: Emitter, x: Value) -> Value:
    """Return the inverse hyperbolic tangent, log1p(2 a / (1 - a)) / 2, a = abs(x)."""
    size = e.abs(x)
    twice = e.add(size, size)
    small = e.compare(size, "<", 0.5)
    quotient = e.div(e.select(small, e.mul(twice, size), twice), e.sub(1.0, size))
    value = log1p(e, e.select(small, e.add(twice, quotient), quotient))
    return e.copysign(e.mul(0.5, value), x)
