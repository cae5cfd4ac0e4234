"""Sine, cosine and tangent, right for every argument however large.

An argument is a number of turns times 2 pi. Whole turns do not matter, so of ``x / (2 pi)`` only
the fraction is computed: ``x = m 2**(32 j)`` with a whole number m, or j = 0, and m is multiplied
with the fraction of ``2**(32 j) / (2 pi)``, of which tables hold more than 100 or 200 bits, in
exact products of which whole turns are dropped again (after Payne and Hanek, "Radian reduction for
trigonometric functions", SIGNUM 1983). No branch sets large arguments apart, so loops vectorise;
the table of float64 is read with gathers, the four rows that float32 needs are chosen by
comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir

from headrace_cpu.fusion.functions.coefficients import (
    COS,
    HALF_PI_FLOAT32,
    HALF_PI_FLOAT64,
    PI,
    SIN,
    TURNS_FLOAT64,
    TURNS_SINGLE,
)
from headrace_cpu.fusion.functions.emitter import FLOAT32, Emitter, Value, in_double
from headrace_cpu.fusion.functions.rare import unless_rare

_TABLE = "headrace.turns"
# Up to here multiples of pi/2 are subtracted in three parts.
_USUAL = 2.0**20
_TWO_PI = (2 * PI[0], 2 * PI[1])


@dataclass(frozen=True)
class Angle:
    """An angle ``quarter * pi / 2 + high + low``, with high within +-pi/4 or hardly beyond.

    Attributes:
        quarter: A whole number, in the lowest bits of an integer.
        high: The rest.
        low: What the rounding of the rest lost.
    """

    quarter: Value
    high: Value
    low: Value


# Writes a function of ``(argument, its angle)``.
_OfAngle: TypeAlias = Callable[[Emitter, Value, Angle], Value]


def _single_row(e: Emitter, x: Value) -> tuple[Value, list[Value]]:
    """Return m, and the row of the table for it, of a number of float32."""
    size = e.abs(x)
    chosen: list[Value | float] = [x, *TURNS_SINGLE[:3]]
    for row in range(1, 4):
        # Numbers from here on are whole multiples of 2**(32 row).
        beyond = e.compare(size, ">=", 2.0 ** (32 * row + FLOAT32.fraction))
        values = [e.mul(x, 2.0 ** (-32 * row)), *TURNS_SINGLE[3 * row : 3 * row + 3]]
        chosen = [e.select(beyond, new, old) for new, old in zip(values, chosen, strict=True)]
    return chosen[0], chosen[1:]


def _row(e: Emitter, x: Value) -> tuple[Value, list[Value]]:
    """Return m, and the row of the table for it."""
    size = e.both(e.bits(x), (1 << (e.form.bits - 1)) - 1)
    exponent = e.minus(e.right(size, e.form.fraction), e.form.bias + e.form.fraction)
    negative = e.builder.icmp_signed("<", exponent, e.word(0))
    row = e.right(e.builder.select(negative, e.word(0), exponent), 5)
    scale = e.power_of_two(e.minus(0, e.left(row, 5)))
    table = _table(e.builder.module, e.real)
    first = e.left(row, 2)
    places = [e.plus(first, part) for part in range(4)]
    addresses = [e.builder.gep(table, [e.word(0), place], inbounds=True) for place in places]
    return e.mul(x, scale), [e.builder.load(address) for address in addresses]


def _table(module: Any, real: Any) -> Any:
    """Return the table as a constant of a module."""
    known = module.globals.get(_TABLE)
    if known is not None:
        return known
    kind = ir.ArrayType(real, len(TURNS_FLOAT64))
    table = ir.GlobalVariable(module, kind, _TABLE)
    table.linkage = "internal"
    table.global_constant = True
    table.initializer = ir.Constant(kind, [ir.Constant(real, value) for value in TURNS_FLOAT64])
    return table


def _fraction(e: Emitter, turns: Value) -> Value:
    """Drop whole turns, exactly; NaN of infinitely many."""
    return e.sub(turns, e.round(turns))


def _angle_single(e: Emitter, x: Value) -> Angle:
    """Reduce an argument of float32, computing in float64."""
    m, (first, second, third) = _single_row(e, x)
    turns = e.add(_fraction(e, e.mul(m, first)), _fraction(e, e.mul(m, second)))
    product, product_lost = e.exact_product(m, third)
    turns, lost = e.exact_sum(turns, product)
    quarters, quarter = e.nearest(turns, 4.0)
    rest = e.add(e.fma(quarters, -0.25, turns), e.add(lost, product_lost))
    return Angle(quarter, e.mul(rest, _TWO_PI[0]), e.constant(0.0))


def _angle(e: Emitter, x: Value) -> Angle:
    """Reduce an argument to its angle within a quarter turn; NaN of infinities."""
    if e.single:
        return _angle_single(e, x)
    m, (first, second, third, fourth) = _row(e, x)
    # The products shrink by 53 bits from one to the next: the first ones are whole turns mostly.
    # Every sum keeps what it loses, since the last bits matter near multiples of pi / 2.
    product, product_lost = e.exact_product(m, first)
    turns, lost = e.exact_sum(_fraction(e, product), _fraction(e, product_lost))
    product, product_lost = e.exact_product(m, second)
    turns, lost_again = e.exact_sum(turns, _fraction(e, product))
    quarters, quarter = e.nearest(turns, 4.0)
    rest = e.fma(quarters, -0.25, turns)
    below, tail = e.exact_sum(lost, lost_again)
    product, last_lost = e.exact_product(m, third)
    tail = e.add(tail, e.fma(m, fourth, last_lost))
    for part in (product_lost, product):
        below, lost = e.exact_sum(below, part)
        tail = e.add(tail, lost)
    rest, lost = e.exact_sum(rest, below)
    rest, tail = e.exact_sum_sorted(rest, e.add(lost, tail))
    high, low = e.exact_product(rest, _TWO_PI[0])
    low = e.add(low, e.fma(rest, _TWO_PI[1], e.mul(tail, _TWO_PI[0])))
    return Angle(quarter, high, low)


def _angle_usual(e: Emitter, x: Value) -> Angle:
    """Reduce an argument within +-2**20, by pi/2 in three parts (Cody and Waite, 1980).

    The fused product with the first is exact. That with the second is too, as a pair of numbers;
    its difference is a sum that keeps what it loses: x and the first product are whole multiples
    of the lowest bit of the second.
    """
    first, second, third = HALF_PI_FLOAT32 if e.form.bits == 32 else HALF_PI_FLOAT64
    k, quarter = e.nearest(x, 2 / math.pi)
    rest = e.fma(k, -first, x)
    product, product_lost = e.exact_product(k, second)
    high, lost = e.exact_sum_sorted(rest, e.neg(product))
    return Angle(quarter, high, e.fma(k, -third, e.sub(lost, product_lost)))


def _sin(e: Emitter, angle: Angle) -> Value:
    """Return the sine of ``high + low``."""
    x, low = angle.high, angle.low
    z = e.mul(x, x)
    cubic = e.fma(e.mul(z, x), e.polynomial(z, e.of(SIN)), e.fma(e.mul(z, -0.5), low, low))
    return e.add(x, cubic)


def _cos(e: Emitter, angle: Angle) -> Value:
    """Return the cosine of ``high + low``."""
    x, low = angle.high, angle.low
    z = e.mul(x, x)
    half = e.mul(z, 0.5)
    most = e.sub(1.0, half)
    lost = e.sub(e.sub(1.0, most), half)
    tail = e.fma(e.mul(z, z), e.polynomial(z, e.of(COS)), e.fma(e.neg(x), low, lost))
    return e.add(most, tail)


def _with_sign(e: Emitter, value: Value, negative: Value) -> Value:
    """Return a number, negated where a condition holds."""
    return e.select(negative, e.neg(value), value)


def _near_zero(e: Emitter, x: Value, value: Value) -> Value:
    """Return the argument itself where it is its sine and tangent, -0 and subnormal too."""
    bound = 2.0**-13 if e.form.bits == 32 else 2.0**-27
    return e.select(e.compare(e.abs(x), "<", bound), x, value)


def _sin_of(e: Emitter, x: Value, angle: Angle) -> Value:
    value = e.select(e.is_odd(angle.quarter), _cos(e, angle), _sin(e, angle))
    return _near_zero(e, x, _with_sign(e, value, e.is_odd(angle.quarter, 1)))


def _cos_of(e: Emitter, x: Value, angle: Angle) -> Value:
    del x
    value = e.select(e.is_odd(angle.quarter), _sin(e, angle), _cos(e, angle))
    return _with_sign(e, value, e.is_odd(e.plus(angle.quarter, 1), 1))


def _tan_of(e: Emitter, x: Value, angle: Angle) -> Value:
    sine, cosine = _sin(e, angle), _cos(e, angle)
    odd = e.is_odd(angle.quarter)
    quotient = e.div(e.select(odd, cosine, sine), e.select(odd, sine, cosine))
    return _near_zero(e, x, _with_sign(e, quotient, odd))


def _is_large(e: Emitter, x: Value) -> Value:
    return e.compare(e.abs(x), ">", _USUAL)


def _of_any(e: Emitter, name: str, x: Value, of_angle: _OfAngle) -> Value:
    """Return a function of an argument, that of a large one by way of the slow reduction."""

    @in_double
    def slow(e: Emitter, x: Value) -> Value:
        return of_angle(e, x, _angle(e, x))

    usual = of_angle(e, x, _angle_usual(e, x))
    return unless_rare(e, name, x, usual, _is_large, slow, reads_tables=True)


def sin(e: Emitter, x: Value) -> Value:
    """Return the sine."""
    return _of_any(e, "sin", x, _sin_of)


def cos(e: Emitter, x: Value) -> Value:
    """Return the cosine."""
    return _of_any(e, "cos", x, _cos_of)


def tan(e: Emitter, x: Value) -> Value:
    """Return the tangent, sine by cosine."""
    return _of_any(e, "tan", x, _tan_of)
