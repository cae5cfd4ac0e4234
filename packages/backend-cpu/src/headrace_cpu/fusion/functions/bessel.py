"""Modified Bessel functions of the first kind, of orders 0 and 1.

Up to 8 they are power series of ``x**2 / 4``, cut off with fitted coefficients. Beyond, with
``exp(-x)`` as a factor, they are polynomials of ``16 / x - 1`` divided by the square root, close to
``1 / sqrt(2 pi x)``.

References:
    Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 9.6.10, 9.7.1
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from headrace_cpu.fusion.functions.emitter import Emitter, Value
from headrace_cpu.fusion.functions.exponential import exp_inside, exp_scaled
from headrace_cpu.fusion.functions.special_coefficients import (
    BESSEL_I0,
    BESSEL_I0_FAR,
    BESSEL_I1,
    BESSEL_I1_FAR,
)

_FAR, _SCALE = 8.0, 16.0
# Beyond, the functions overflow, exp before them.
_END = {32: 100.0, 64: 720.0}
# The functions are finite where exp is not any more: it is taken 2**16 times too small.
_HALVINGS = 16

_Table = Mapping[str, tuple[float, ...]]


def _near(e: Emitter, size: Value, table: _Table) -> Value:
    """Return the power series, without the factor ``x / 2`` of order 1."""
    half = e.mul(size, 0.5)
    square = e.mul(half, half)
    return e.fma(square, e.polynomial(square, e.of(table)), 1.0)


def _far(e: Emitter, size: Value, table: _Table) -> Value:
    """Return the function times exp(-size), beyond 8."""
    place = e.sub(e.div(_SCALE, size), 1.0)
    return e.div(e.polynomial(place, e.of(table)), e.sqrt(size))


def _is_far(e: Emitter, size: Value) -> Value:
    return e.compare(size, ">", _FAR)


def _growing(e: Emitter, size: Value, near: Value, far: _Table) -> Value:
    """Return the function, of which `near` is the power series."""
    end = _END[e.form.bits]
    growth = exp_scaled(e, e.at_most(size, end), doublings=-_HALVINGS)
    beyond = e.mul(e.mul(_far(e, size, far), growth), 2.0**_HALVINGS)
    beyond = e.select(e.compare(size, ">", end), math.inf, beyond)
    return e.select(_is_far(e, size), beyond, near)


def _scaled(e: Emitter, size: Value, near: Value, far: _Table) -> Value:
    """Return the function times exp(-size), of which `near` is the power series."""
    decay = exp_inside(e, e.neg(e.at_most(size, _FAR)))
    return e.select(_is_far(e, size), _far(e, size, far), e.mul(near, decay))


def bessel_i0(e: Emitter, x: Value) -> Value:
    """Return the function of order 0."""
    size = e.abs(x)
    return _growing(e, size, _near(e, size, BESSEL_I0), BESSEL_I0_FAR)


def bessel_i0e(e: Emitter, x: Value) -> Value:
    """Return the function of order 0 times exp(-abs(x))."""
    size = e.abs(x)
    return _scaled(e, size, _near(e, size, BESSEL_I0), BESSEL_I0_FAR)


def _near_odd(e: Emitter, size: Value) -> Value:
    return e.mul(e.mul(size, 0.5), _near(e, size, BESSEL_I1))


def bessel_i1(e: Emitter, x: Value) -> Value:
    """Return the function of order 1."""
    size = e.abs(x)
    return e.copysign(_growing(e, size, _near_odd(e, size), BESSEL_I1_FAR), x)


def bessel_i1e(e: Emitter, x: Value) -> Value:
    """Return the function of order 1 times exp(-abs(x))."""
    size = e.abs(x)
    return e.copysign(_scaled(e, size, _near_odd(e, size), BESSEL_I1_FAR), x)
