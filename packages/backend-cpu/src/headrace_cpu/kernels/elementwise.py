"""Elementwise kernels: arithmetic, rounding, comparisons, logic and choice."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, binary, check_shape, narrowed, unary, widened

KERNELS = KernelTable()

# Ops that are functions of the array module under another name.
_SAME_AS = {
    "Abs": "absolute",
    "Ceil": "ceil",
    "Floor": "floor",
    "IsFinite": "isfinite",
    "IsInf": "isinf",
    "IsNan": "isnan",
    "Rint": "rint",
    "Sign": "sign",
}
_SAME_AS_OF_TWO = {
    "Equal": "equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "NotEqual": "not_equal",
}

for _op, _function in _SAME_AS.items():
    KERNELS.plain(_op)(unary(_function, __name__))
for _op, _function in _SAME_AS_OF_TWO.items():
    KERNELS.plain(_op)(binary(_function, __name__))


@KERNELS.plain("NextAfter")
def next_after(xp: Any, x: Array, y: Array) -> Array:
    """Return the next number towards another; compilers of GPUs take denormals for 0."""
    if xp is np or x.dtype.kind != "f":
        return xp.nextafter(x, y)
    x, y = xp.broadcast_arrays(x, y)
    whole = np.dtype(f"int{8 * x.dtype.itemsize}")
    least, most = whole.type(1), whole.type(np.iinfo(whole).max)
    bits, towards = (xp.ascontiguousarray(each).view(whole) for each in (x, y))
    zero = (bits & most) == 0
    # Bits without the sign are in the order of sizes.
    key, goal = (xp.where(b < 0, -(b & most), b & most) for b in (bits, towards))
    step = xp.where((key < goal) == (bits >= 0), least, -least)
    first = xp.where(towards < 0, ~most | least, least)
    moved = xp.where(zero, first, bits + step)
    found = xp.where(key == goal, towards, moved).view(x.dtype).reshape(x.shape)
    return xp.where(xp.isnan(x) | xp.isnan(y), x + y, found)


@KERNELS.plain("Add")
def add(xp: Any, x: Array, y: Array) -> Array:
    """Add."""
    made = x + y
    # NumPy has no scalars of strings: of two without axes it makes plain bytes.
    return np.array(made, object) if type(made) is bytes else made


@KERNELS.plain("Sub")
def subtract(xp: Any, x: Array, y: Array) -> Array:
    """Subtract."""
    return x - y


@KERNELS.plain("Mul")
def multiply(xp: Any, x: Array, y: Array) -> Array:
    """Multiply."""
    return x * y


@KERNELS.plain("Div")
def divide(xp: Any, x: Array, y: Array) -> Array:
    """Divide floating or complex numbers."""
    return x / y


@KERNELS.plain("FloorDiv")
def floor_divide(xp: Any, x: Array, y: Array) -> Array:
    """Divide, rounding towards minus infinity."""
    _check_divisor(y)
    # Floats are divided before they are rounded: infinity stays infinity.
    return x // y if x.dtype.kind in "iu" else xp.floor(x / y)


@KERNELS.plain("TruncateDiv")
def truncate_divide(xp: Any, x: Array, y: Array) -> Array:
    """Divide, rounding towards 0."""
    _check_divisor(y)
    if x.dtype.kind not in "iu":
        return xp.trunc(x / y)
    # The remainder has the sign of y: where x has the other one, one is missing towards 0.
    quotient = x // y
    short = (quotient < 0) & (quotient * y != x)
    return quotient + short.astype(x.dtype)


@KERNELS.plain("FloorMod")
def floor_mod(xp: Any, x: Array, y: Array) -> Array:
    """Return the remainder, with the sign of ``y``."""
    _check_divisor(y)
    return x % y


@KERNELS.plain("TruncateMod")
def truncate_mod(xp: Any, x: Array, y: Array) -> Array:
    """Return the remainder, with the sign of ``x``."""
    _check_divisor(y)
    return xp.fmod(x, y)


@KERNELS.plain("MulNoNan")
def multiply_no_nan(xp: Any, x: Array, y: Array) -> Array:
    """Multiply, with 0 wherever ``y`` is 0."""
    return xp.where(y == 0, y.dtype.type(0), x * y)


@KERNELS.plain("DivNoNan")
def divide_no_nan(xp: Any, x: Array, y: Array) -> Array:
    """Divide, with 0 wherever ``y`` is 0."""
    return xp.where(y == 0, y.dtype.type(0), x / y)


@KERNELS.plain("AddN")
def add_all(xp: Any, arrays: list[Array]) -> Array:
    """Add from first to last, 16-bit floats in float32."""
    first = arrays[0]
    for array in arrays[1:]:
        check_shape(array, first.shape, "each of inputs")
    total = widened(first)
    for array in arrays[1:]:
        total = total + widened(array)
    return narrowed(total, first.dtype)


@KERNELS.plain("Reciprocal")
def reciprocal(xp: Any, x: Array) -> Array:
    """Divide 1."""
    return x.dtype.type(1) / x


def _check_divisor(y: Array) -> None:
    if y.dtype.kind in "iu" and (y == 0).any():
        raise ZeroDivisionError("integer division by zero: a divisor is 0, expected none")


@KERNELS.plain("Pow")
def power(xp: Any, x: Array, y: Array) -> Array:
    """Raise to a power."""
    if y.dtype.kind == "i" and (y < 0).any():
        raise ValueError(
            f"integers have no negative powers: expected exponents >= 0, got {int(y.min())}"
        )
    return xp.power(x, y)


@KERNELS.plain("Neg")
def negative(xp: Any, x: Array) -> Array:
    """Negate."""
    return -x


@KERNELS.plain("Square")
def square(xp: Any, x: Array) -> Array:
    """Square."""
    return x * x


@KERNELS.plain("Conj")
def conjugate(xp: Any, x: Array) -> Array:
    """Conjugate complex numbers."""
    return xp.conj(x) if x.dtype.kind == "c" else x


@KERNELS.plain("LogicalAnd")
def logical_and(xp: Any, x: Array, y: Array) -> Array:
    """Return where both hold."""
    return x & y


@KERNELS.plain("LogicalOr")
def logical_or(xp: Any, x: Array, y: Array) -> Array:
    """Return where at least one holds."""
    return x | y


@KERNELS.plain("LogicalXor")
def logical_xor(xp: Any, x: Array, y: Array) -> Array:
    """Return where exactly one holds."""
    return x ^ y


@KERNELS.plain("LogicalNot")
def logical_not(xp: Any, x: Array) -> Array:
    """Return where it does not hold."""
    return ~x


@KERNELS.plain("Select")
def select(xp: Any, condition: Array, x: Array, y: Array) -> Array:
    """Choose between two arrays."""
    return xp.where(condition, x, y)
