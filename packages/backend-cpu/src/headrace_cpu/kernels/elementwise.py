"""Elementwise kernels: arithmetic, comparisons, logic and elementary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.extend import DType, KernelTable
from headrace_cpu.kernels.numeric import Array, narrowed, widened

KERNELS = KernelTable()

# Ops that are functions of the array module under another name.
_SAME_AS = {
    "Sign": "sign",
    "Abs": "absolute",
    "Sqrt": "sqrt",
    "Exp": "exp",
    "Log": "log",
    "Log1p": "log1p",
    "Sin": "sin",
    "Cos": "cos",
    "Tanh": "tanh",
}
_SAME_AS_OF_TWO = {
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
}


def _unary(function: str) -> Callable[[Any, Array], Array]:
    def unary(xp: Any, x: Array) -> Array:
        return getattr(xp, function)(x)

    return unary


def _binary(function: str) -> Callable[[Any, Array, Array], Array]:
    def binary(xp: Any, x: Array, y: Array) -> Array:
        return getattr(xp, function)(x, y)

    return binary


for _op, _function in _SAME_AS.items():
    KERNELS.plain(_op)(_unary(_function))
for _op, _function in _SAME_AS_OF_TWO.items():
    KERNELS.plain(_op)(_binary(_function))


@KERNELS.plain("Add")
def add(xp: Any, x: Array, y: Array) -> Array:
    """Add."""
    return x + y


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
    return x // y


@KERNELS.plain("FloorMod")
def floor_mod(xp: Any, x: Array, y: Array) -> Array:
    """Return the remainder, with the sign of ``y``."""
    _check_divisor(y)
    return x % y


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


@KERNELS.plain("Sigmoid")
def sigmoid(xp: Any, x: Array) -> Array:
    """Compute the logistic function from ``exp(-abs(x))``, which never overflows."""
    wide = widened(x)
    decay = xp.exp(-xp.absolute(wide))
    one = wide.dtype.type(1)
    return narrowed(xp.where(wide >= 0, one, decay) / (decay + one), x.dtype)


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


@KERNELS.plain("Cast")
def cast(xp: Any, x: Array, *, dtype: DType) -> Array:
    """Convert to another dtype."""
    if x.dtype.kind == "c" and dtype.kind not in ("complex", "bool"):
        x = x.real
    return x.astype(np.dtype(dtype.numpy), copy=False)
