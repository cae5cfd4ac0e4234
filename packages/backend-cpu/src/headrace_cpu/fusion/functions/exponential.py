"""Exponentials: exp, expm1, and the hyperbolic tangent and the logistic function made of them.

``x = k ln 2 + r`` with a whole k and r within +-ln(2)/2; then ``exp(x) = 2**k exp(r)``. The
reduction takes ln 2 in two parts (Cody and Waite, "Software Manual for the Elementary Functions",
1980), the first so short that its products with k are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headrace_cpu.fusion.functions.coefficients import EXP, EXPM1, SINH, TANH
from headrace_cpu.fusion.functions.emitter import Emitter, Value

# Beyond these, exp is 0 and infinite.
_ENDS = {"float32": (-104.0, 89.0), "float64": (-746.0, 710.0)}
# Below these expm1 rounds to -1, and tanh of more than half rounds to 1.
_ALL_GONE = {"float32": -18.0, "float64": -40.0}
# By so many doublings exp keeps away from where numbers end, before it rounds.
_AWAY = 64
# Where tanh goes from its polynomial to exp.
_TANH_SPLIT = 0.55


@dataclass(frozen=True)
class Reduced:
    """``exp(x) = 2**k (1 + rest)``.

    Attributes:
        k: A whole number, in the lowest bits of an integer.
        rest: ``expm1(r)``.
    """

    k: Value
    rest: Value


def _reduced(
    e: Emitter, x: Value, coefficients: Sequence[float], more: Value | None = None
) -> Reduced:
    """Reduce an argument that is not so large that 2**k is far from all numbers.

    Args:
        e: The emitter.
        x: The argument.
        coefficients: Those of the polynomial.
        more: What the argument's own rounding has lost, if that matters.
    """
    high, low = e.form.ln2
    k, k_bits = e.nearest(x, 1 / math.log(2))
    r_high = e.fma(k, -high, x)
    r = e.fma(k, -low, r_high)
    # What the rounding of r lost goes into the polynomial's tail.
    lost = e.fma(k, -low, e.sub(r_high, r))
    if more is not None:
        r, again = e.exact_sum_sorted(r, more)
        lost = e.add(lost, again)
    tail = e.fma(e.mul(r, r), e.polynomial(r, coefficients), lost)
    return Reduced(k_bits, e.add(r, tail))


def _scale(e: Emitter, bits: Value) -> Value:
    """Return 2**k of the lowest bits of an integer, where it is a normal number."""
    return e.number(e.plus(e.left(bits, e.form.fraction), e.bits(e.constant(1.0))))


def exp(e: Emitter, x: Value) -> Value:
    """Return the exponential: overflow, subnormal results and NaN come by the arithmetic.

    What is 0 is not left to it: on the way there it meets subnormal numbers, with which processors
    take twice the time, and masks of attention make many of such arguments.
    """
    least, most = _ENDS[e.form.dtype]
    inside = e.at_least(e.at_most(x, most), least)
    high, low = e.form.ln2
    k, bits = e.nearest(inside, 1 / math.log(2))
    # By the rule of Horner to the end, r's own rounding is a sixth of a unit of the last place.
    # What it lost (`_reduced`) would take a fifth of the time.
    r = e.fma(k, -low, e.fma(k, -high, inside))
    power = e.polynomial(r, (1.0, 1.0, *e.of(EXP)))
    # 2**k as a product of two normal numbers, so that only the last product rounds: one far enough
    # from where numbers end, and the rest.
    grows = e.compare(x, ">", 0.0)
    first = e.select_word(grows, e.bits_of(2.0**-_AWAY), e.bits_of(2.0**_AWAY))
    first = e.number(e.plus(e.left(bits, e.form.fraction), first))
    second = e.select(grows, 2.0**_AWAY, 2.0**-_AWAY)
    second = e.select(e.compare(x, "<", least), 0.0, second)
    return e.mul(e.mul(power, first), second)


def exp_scaled(
    e: Emitter,
    x: Value,
    doublings: int = 0,
    more: Value | None = None,
) -> Value:
    """Return ``2**doublings * exp(x + more)`` of a number not far beyond where exp ends.

    `more` is below the rounding error of x, or not given.
    """
    reduced = _reduced(e, x, e.of(EXP), more)
    # 2**k as a product: each factor is a normal number, and only the last product rounds.
    k = e.right(e.left(reduced.k, e.form.fraction), e.form.fraction)
    if doublings:
        k = e.plus(k, doublings)
    half = e.right(k, 1)
    first = _scale(e, half)
    second = _scale(e, e.minus(k, half))
    return e.mul(e.mul(e.add(1.0, reduced.rest), first), second)


def exp_inside(e: Emitter, x: Value) -> Value:
    """Return exp(x) where neither it nor 2**k leaves the normal numbers."""
    reduced = _reduced(e, x, e.of(EXP))
    scale = _scale(e, reduced.k)
    return e.fma(scale, reduced.rest, scale)


def expm1(e: Emitter, x: Value) -> Value:
    """Return exp(x) - 1, precise near 0."""
    _, high = _ENDS[e.form.dtype]
    inside = e.at_least(e.at_most(x, high), _ALL_GONE[e.form.dtype])
    reduced = _reduced(e, inside, e.of(EXPM1))
    # Half of the result, which does not overflow before its time.
    half = _scale(e, e.minus(reduced.k, 1))
    value = e.mul(2.0, e.fma(half, reduced.rest, e.sub(half, 0.5)))
    near_zero = e.compare(e.abs(x), "<", e.form.epsilon / 4)
    return e.select(near_zero, x, value)


def sigmoid(e: Emitter, x: Value) -> Value:
    """Return 1 / (1 + exp(-x)), from exp(-abs(x)), which never overflows."""
    decay = exp(e, e.neg(e.abs(x)))
    positive = e.compare(x, ">=", 0.0)
    over = e.select(positive, 1.0, decay)
    under = e.add(1.0, decay)
    quotient = e.div(over, under)
    # One step of Newton's, for what the sum and the quotient lost; 1 / under is known already.
    lost = e.sub(decay, e.sub(under, 1.0))
    rest = e.fma(e.neg(quotient), lost, e.fma(e.neg(quotient), under, over))
    inverse = e.select(positive, quotient, e.sub(1.0, quotient))
    return e.fma(rest, inverse, quotient)


def tanh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic tangent: a polynomial near 0, else 1 - 2 / (exp(2 abs(x)) + 1)."""
    size = e.abs(x)
    square = e.mul(x, x)
    near = e.fma(e.mul(x, square), e.polynomial(square, e.of(TANH)), x)
    growth = exp_inside(e, e.at_most(e.add(size, size), -_ALL_GONE[e.form.dtype] + 2.0))
    far = e.sub(1.0, e.div(2.0, e.add(growth, 1.0)))
    # The sign of -0 is lost where the polynomial adds 0.
    return e.copysign(e.select(e.compare(size, "<", _TANH_SPLIT), near, far), x)


def _half_exp(e: Emitter, size: Value) -> Value:
    """Return exp(size) / 2, which is finite wherever sinh and cosh are."""
    _, high = _ENDS[e.form.dtype]
    return exp_scaled(e, e.at_most(size, high + 2.0), doublings=-1)


def sinh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic sine: a polynomial below 1, else half of exp(x) - exp(-x)."""
    size = e.abs(x)
    square = e.mul(x, x)
    near = e.fma(e.mul(x, square), e.polynomial(square, e.of(SINH)), x)
    half = _half_exp(e, size)
    far = e.sub(half, e.div(0.25, half))
    return e.select(e.compare(size, "<", 1.0), near, e.copysign(far, x))


def cosh(e: Emitter, x: Value) -> Value:
    """Return the hyperbolic cosine, half of exp(x) + exp(-x)."""
    half = _half_exp(e, e.abs(x))
    return e.add(half, e.div(0.25, half))
