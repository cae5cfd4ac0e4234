"""Inverse trigonometric functions: arcs of which the sine, cosine or tangent is known."""

from __future__ import annotations

import math

from headrace_cpu.fusion.functions.coefficients import ASIN, ATAN, PI
from headrace_cpu.fusion.functions.emitter import Emitter, Value, in_double

# Tangents of pi/8 and 3 pi/8: between them an arc is taken from pi/4, above from pi/2.
_LOW, _HIGH = math.sqrt(2.0) - 1.0, math.sqrt(2.0) + 1.0


def _arc(e: Emitter, y: Value, x: Value | float) -> Value:
    """Return the arc whose tangent is y / x, of numbers >= 0 that are not both 0 or infinite."""
    high = e.compare(y, ">", e.mul(x, _HIGH))
    middle = e.compare(y, ">", e.mul(x, _LOW))
    over = e.select(high, e.neg(e.constant(x)), e.select(middle, e.sub(y, x), y))
    under = e.select(high, y, e.select(middle, e.add(y, x), x))
    tangent = e.div(over, under)
    z = e.mul(tangent, tangent)
    base = e.select(high, PI[0] / 2, e.select(middle, PI[0] / 4, 0.0))
    base_low = e.select(high, PI[1] / 2, e.select(middle, PI[1] / 4, 0.0))
    tail = e.fma(e.mul(tangent, z), e.polynomial(z, e.of(ATAN)), base_low)
    return e.add(base, e.add(tangent, tail))


@in_double
def atan(e: Emitter, x: Value) -> Value:
    """Return the arc of a tangent."""
    return e.copysign(_arc(e, e.abs(x), e.constant(1.0)), x)


@in_double
def atan2(e: Emitter, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), with the signs of zeros as NumPy has them."""
    up, right = e.abs(y), e.abs(x)
    larger = e.select(e.compare(up, ">", right), up, right)
    # Two infinities are a diagonal, two zeros the axis.
    infinite = e.compare(larger, "==", math.inf)
    up_end = e.select(e.compare(up, "==", math.inf), 1.0, 0.0)
    right_end = e.select(e.compare(right, "==", math.inf), 1.0, 0.0)
    # Sums of both must not overflow, and products of subnormal numbers with a constant be precise.
    scale = e.select(e.compare(larger, ">", 2.0**1000), 2.0**-100, 1.0)
    scale = e.select(e.compare(larger, "<", 2.0**-800), 2.0**200, scale)
    up = e.select(infinite, up_end, e.mul(up, scale))
    right = e.select(infinite, right_end, e.mul(right, scale))
    right = e.select(e.compare(larger, "==", 0.0), 1.0, right)
    arc = _arc(e, up, right)
    negative = e.builder.icmp_signed("<", e.bits(x), e.word(0))
    arc = e.select(negative, e.sub(PI[0], e.sub(arc, PI[1])), arc)
    some_nan = e.builder.fcmp_unordered("uno", x, y)
    return e.select(some_nan, math.nan, e.copysign(arc, y))


def _of_sine(e: Emitter, size: Value) -> tuple[Value, Value]:
    """Return whether a sine is above 1/2, and its arc, or half of the rest to a quarter turn."""
    large = e.compare(size, ">", 0.5)
    half = e.mul(e.sub(1.0, size), 0.5)
    z = e.select(large, half, e.mul(size, size))
    s = e.select(large, e.sqrt(half), size)
    return large, e.fma(e.mul(s, z), e.polynomial(z, e.of(ASIN)), s)


@in_double
def asin(e: Emitter, x: Value) -> Value:
    """Return the arc of a sine; above 1/2 the rest of pi/2, from that of a smaller number."""
    large, arc = _of_sine(e, e.abs(x))
    rest = e.sub(PI[0] / 2, e.sub(e.add(arc, arc), PI[1] / 2))
    return e.copysign(e.select(large, rest, arc), x)


@in_double
def acos(e: Emitter, x: Value) -> Value:
    """Return the arc of a cosine, 2 asin(sqrt((1 - x) / 2)) above 1/2."""
    large, arc = _of_sine(e, e.abs(x))
    twice = e.add(arc, arc)
    negative = e.compare(x, "<", 0.0)
    at_end = e.select(negative, e.sub(PI[0], e.sub(twice, PI[1])), twice)
    signed = e.copysign(arc, x)
    inside = e.sub(PI[0] / 2, e.sub(signed, PI[1] / 2))
    return e.select(large, at_end, inside)
