"""Roundings, signs, roots and choices: a few instructions each, with NumPy's NaN and signed 0."""

from __future__ import annotations

import math

from headrace_cpu.fusion.functions.emitter import Emitter, Value


def absolute(e: Emitter, x: Value) -> Value:
    """Return the number without its sign."""
    return e.abs(x)


def ceil(e: Emitter, x: Value) -> Value:
    """Round towards infinity."""
    return e.round(x, "ceil")


def floor(e: Emitter, x: Value) -> Value:
    """Round towards minus infinity."""
    return e.round(x, "floor")


def rint(e: Emitter, x: Value) -> Value:
    """Round to the nearest whole number, the even one of two."""
    return e.round(x, "rint")


def sign(e: Emitter, x: Value) -> Value:
    """Return -1, 0 or 1, or NaN; 0 for -0 too."""
    value = e.select(e.compare(x, "<", 0.0), -1.0, e.select(e.compare(x, "==", 0.0), 0.0, x))
    return e.select(e.compare(x, ">", 0.0), 1.0, value)


def sqrt(e: Emitter, x: Value) -> Value:
    """Return the square root, correctly rounded."""
    return e.sqrt(x)


def rsqrt(e: Emitter, x: Value) -> Value:
    """Divide 1 by the square root: two roundings, as the plain kernel has."""
    return e.div(1.0, e.sqrt(x))


def reciprocal(e: Emitter, x: Value) -> Value:
    """Divide 1."""
    return e.div(1.0, x)


def square(e: Emitter, x: Value) -> Value:
    """Multiply with itself."""
    return e.mul(x, x)


def relu(e: Emitter, x: Value) -> Value:
    """Return the larger of a number and 0, or NaN."""
    return e.select(e.compare_or_nan(x, ">", 0.0), x, 0.0)


def maximum(e: Emitter, x: Value, y: Value) -> Value:
    """Return the larger, the second of two equal ones, or NaN where one is."""
    return e.select(e.is_nan(x), x, e.select(e.compare(x, ">", y), x, y))


def minimum(e: Emitter, x: Value, y: Value) -> Value:
    """Return the smaller, the second of two equal ones, or NaN where one is."""
    return e.select(e.is_nan(x), x, e.select(e.compare(x, "<", y), x, y))


def divide(e: Emitter, x: Value, y: Value) -> Value:
    """Divide."""
    return e.div(x, y)


def divide_no_nan(e: Emitter, x: Value, y: Value) -> Value:
    """Divide, with 0 wherever the divisor is 0."""
    return e.select(e.compare(y, "==", 0.0), 0.0, e.div(x, y))


def multiply_no_nan(e: Emitter, x: Value, y: Value) -> Value:
    """Multiply, with 0 wherever the second is 0."""
    return e.select(e.compare(y, "==", 0.0), 0.0, e.mul(x, y))


def floor_divide(e: Emitter, x: Value, y: Value) -> Value:
    """Divide and round towards minus infinity."""
    return e.round(e.div(x, y), "floor")


def truncate_divide(e: Emitter, x: Value, y: Value) -> Value:
    """Divide and round towards 0."""
    return e.round(e.div(x, y), "trunc")


def xdivy(e: Emitter, x: Value, y: Value) -> Value:
    """Divide, with 0 wherever the dividend is 0."""
    return e.select(e.compare(x, "==", 0.0), 0.0, e.div(x, y))


def is_finite(e: Emitter, x: Value) -> Value:
    """Whether it is neither infinite nor NaN."""
    return e.compare(e.abs(x), "<", math.inf)


def is_infinite(e: Emitter, x: Value) -> Value:
    """Whether it is infinite."""
    return e.compare(e.abs(x), "==", math.inf)


def is_nan(e: Emitter, x: Value) -> Value:
    """Whether it is NaN."""
    return e.is_nan(x)
