"""Powers, with all special cases of IEEE 754 and C, which are NumPy's.

``x**y = exp(y log(x))``; the logarithm and the product are sums of two numbers, since an error of
the exponent becomes a relative one of the result.
"""

from __future__ import annotations

import math

from headrace_cpu.fusion.functions.coefficients import LOG_REST, TWO_THIRDS, TWO_THIRDS_FLOAT32
from headrace_cpu.fusion.functions.emitter import FLOAT32, Emitter, Value
from headrace_cpu.fusion.functions.exponential import exp_scaled
from headrace_cpu.fusion.functions.logarithm import log, split

# Exponentials of it and more are infinite, of its negative and less 0.
_BEYOND = {32: 110.0, 64: 760.0}


def _precise_log(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Return the logarithm of a positive finite number as a sum of two.

    ``log(1 + f) = 2 s + 2/3 s**3 + s**5 q(s**2)`` with ``s = f / (2 + f)``, the first two terms
    in pairs of numbers.
    """
    small = e.compare(x, "<", e.form.tiny)
    up = e.form.fraction + 2
    k, significand = split(e, e.select(small, e.mul(x, 2.0**up), x))
    exponent = e.to_number(k)
    exponent = e.select(small, e.sub(exponent, float(up)), exponent)
    f = e.sub(significand, 1.0)
    under, under_low = e.exact_sum_sorted(2.0, f)
    inverse = e.div(1.0, under)
    s = e.mul(f, inverse)
    rest = e.fma(e.neg(s), under_low, e.fma(e.neg(s), under, f))
    s_low = e.mul(rest, inverse)
    z, z_low = e.exact_product(s, s)
    z_low = e.fma(e.add(s, s), s_low, z_low)
    cube, cube_low = e.exact_product(s, z)
    cube_low = e.add(cube_low, e.fma(s, z_low, e.mul(s_low, z)))
    third_part = TWO_THIRDS_FLOAT32 if e.form is FLOAT32 else TWO_THIRDS
    third, third_low = e.exact_product(cube, third_part[0])
    third_low = e.add(third_low, e.fma(cube_low, third_part[0], e.mul(cube, third_part[1])))
    tail = e.mul(e.mul(cube, z), e.polynomial(z, e.of(LOG_REST)))
    value, lost = e.exact_sum_sorted(e.add(s, s), third)
    low = e.add(lost, e.add(tail, e.fma(2.0, s_low, third_low)))
    value, lost = e.exact_sum_sorted(e.mul(exponent, e.form.ln2[0]), value)
    low = e.add(lost, e.fma(exponent, e.form.ln2[1], low))
    return e.exact_sum_sorted(value, low)


def _exponential(e: Emitter, high: Value, low: Value) -> Value:
    """Return exp(high + low), where low matters only of numbers that do not overflow."""
    beyond = _BEYOND[e.form.bits]
    inside = e.at_least(e.at_most(high, beyond), -beyond)
    low = e.select(e.compare(e.abs(high), "<", beyond), low, 0.0)
    return exp_scaled(e, inside, more=low)


def power(e: Emitter, x: Value, y: Value) -> Value:
    """Return x to the power of y."""
    size = e.abs(x)
    # Infinite exponents are like huge ones, but give 1 to the power of any.
    most = 2.0 ** (e.form.bias - 23)
    exponent = e.at_least(e.at_most(y, most), -most)
    high, low = _precise_log(e, size)
    high = e.select(e.compare(size, "==", 0.0), -math.inf, high)
    high = e.select(e.compare(size, "==", math.inf), math.inf, high)
    product, lost = e.exact_product(exponent, high)
    value = _exponential(e, product, e.fma(exponent, low, lost))
    half = e.mul(y, 0.5)
    whole = e.compare(e.round(y), "==", y)
    odd = e.builder.and_(whole, e.compare(e.round(half), "!=", half))
    no_root = e.builder.and_(
        e.compare(x, "<", 0.0),
        e.builder.and_(e.compare(size, "<", math.inf), e.builder.not_(whole)),
    )
    value = e.select(no_root, math.nan, value)
    value = e.select(odd, e.copysign(value, x), value)
    value = e.select(e.builder.fcmp_unordered("uno", x, y), math.nan, value)
    one = e.builder.or_(e.compare(x, "==", 1.0), e.compare(y, "==", 0.0))
    return e.select(one, 1.0, value)


def xlogy(e: Emitter, x: Value, y: Value) -> Value:
    """Return x log(y), with 0 wherever x is 0."""
    return e.select(e.compare(x, "==", 0.0), 0.0, e.mul(x, log(e, y)))
