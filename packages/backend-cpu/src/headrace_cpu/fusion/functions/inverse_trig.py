"""Inverse trigonometric functions: arcs of which the sine, cosine or tangent is known."""

from __future__ import annotations

import math

from headrace_cpu.fusion.functions.coefficients import ASIN, ATAN, HALF_PI_FLOAT32, PI
from headrace_cpu.fusion.functions.emitter import FLOAT32, Emitter, Value

# Tangents of pi/8 and 3 pi/8: between them an arc is taken from pi/4, above from pi/2.
_LOW, _HIGH = math.sqrt(2.0) - 1.0, math.sqrt(2.0) + 1.0


def _pi(e: Emitter) -> tuple[float, float]:
    """Return pi as a sum of two numbers."""
    if e.form is FLOAT32:
        return 2 * HALF_PI_FLOAT32[0], 2 * HALF_PI_FLOAT32[1]
    return PI[0], PI[1]


def _arc(e: Emitter, y: Value, x: Value | float) -> Value:
    """Return the arc whose tangent is y / x, of numbers >= 0 that are not both 0 or infinite."""
    high = e.compare(y, ">", e.mul(x, _HIGH))
    middle = e.compare(y, ">", e.mul(x, _LOW))
    over = e.select(high, e.neg(e.constant(x)), e.select(middle, e.sub(y, x), y))
    under = e.select(high, y, e.select(middle, e.add(y, x), x))
    tangent = e.div(over, under)
    z = e.mul(tangent, tangent)
    pi, pi_low = _pi(e)
    base = e.select(high, pi / 2, e.select(middle, pi / 4, 0.0))
    base_low = e.select(high, pi_low / 2, e.select(middle, pi_low / 4, 0.0))
    tail = e.fma(e.mul(tangent, z), e.polynomial(z, e.of(ATAN)), base_low)
    return e.add(base, e.add(tangent, tail))


def atan(e: Emitter, x: Value) -> Value:
    """Return the arc of a tangent."""
    return e.copysign(_arc(e, e.abs(x), e.constant(1.0)), x)


def atan2(e: Emitter, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), with the signs of zeros as NumPy has them."""
    up, right = e.abs(y), e.abs(x)
    larger = e.select(e.compare(up, ">", right), up, right)
    # Two infinities are a diagonal, two zeros the axis.
    infinite = e.compare(larger, "==", math.inf)
    up_end = e.select(e.compare(up, "==", math.inf), 1.0, 0.0)
    right_end = e.select(e.compare(right, "==", math.inf), 1.0, 0.0)
    # Sums of both must not overflow, and products of subnormal numbers with a constant be precise.
    near_end = e.form.bias - 27
    scale = e.select(e.compare(larger, ">", 2.0**near_end), 2.0**-30, 1.0)
    scale = e.select(e.compare(larger, "<", 2.0**-near_end), 2.0**60, scale)
    up = e.select(infinite, up_end, e.mul(up, scale))
    right = e.select(infinite, right_end, e.mul(right, scale))
    right = e.select(e.compare(larger, "==", 0.0), 1.0, right)
    arc = _arc(e, up, right)
    negative = e.builder.icmp_signed("<", e.bits(x), e.word(0))
    pi, pi_low = _pi(e)
    arc = e.select(negative, e.sub(pi, e.sub(arc, pi_low)), arc)
    some_nan = e.builder.fcmp_unordered("uno", x, y)
    return e.select(some_nan, math.nan, e.copysign(arc, y))


def _of_sine(e: Emitter, size: Value) -> tuple[Value, Value]:
    """Return whether a sine is above 1/2, and its arc, or half of the rest to a quarter turn."""
    large = e.compare(size, ">", 0.5)
    half = e.mul(e.sub(1.0, size), 0.5)
    z = e.select(large, half, e.mul(size, size))
    s = e.select(large, e.sqrt(half), size)
    return large, e.fma(e.mul(s, z), e.polynomial(z, e.of(ASIN)), s)


def asin(e: Emitter, x: Value) -> Value:
    """Return the arc of a sine; above 1/2 the rest of pi/2, from that of a smaller number."""
    large, arc = _of_sine(e, e.abs(x))
    pi, pi_low = _pi(e)
    rest = e.sub(pi / 2, e.sub(e.add(arc, arc), pi_low / 2))
    return e.copysign(e.select(large, rest, arc), x)


def acos(e: Emitter, x: Value) -> Value:
    """Return the arc of a cosine, 2 asin(sqrt((1 - x) / 2)) above 1/2."""
    large, arc = _of_sine(e, e.abs(x))
    twice = e.add(arc, arc)
    negative = e.compare(x, "<", 0.0)
    pi, pi_low = _pi(e)
    at_end = e.select(negative, e.sub(pi, e.sub(twice, pi_low)), twice)
    signed = e.copysign(arc, x)
    inside = e.sub(pi / 2, e.sub(signed, pi_low / 2))
    return e.select(large, at_end, inside)
