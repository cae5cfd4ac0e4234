"""Kernels of roots, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

from typing import Any

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, binary, narrowed, unary, widened

KERNELS = KernelTable()

_SAME_AS = {
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "Cos": "cos",
    "Cosh": "cosh",
    "Exp": "exp",
    "Expm1": "expm1",
    "Log": "log",
    "Log1p": "log1p",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
for _op, _function in _SAME_AS.items():
    KERNELS.plain(_op)(unary(_function, __name__))
KERNELS.plain("Atan2")(binary("arctan2", __name__))


@KERNELS.plain("Rsqrt")
def rsqrt(xp: Any, x: Array) -> Array:
    """Divide 1 by the square root."""
    wide = widened(x)
    return narrowed(wide.dtype.type(1) / xp.sqrt(wide), x.dtype)


@KERNELS.plain("Xlogy")
def xlogy(xp: Any, x: Array, y: Array) -> Array:
    """Multiply with a logarithm, with 0 wherever ``x`` is 0."""
    return xp.where(x == 0, x.dtype.type(0), x * xp.log(y))


@KERNELS.plain("Xdivy")
def xdivy(xp: Any, x: Array, y: Array) -> Array:
    """Divide, with 0 wherever ``x`` is 0."""
    return xp.where(x == 0, x.dtype.type(0), x / y)


@KERNELS.plain("Sigmoid")
def sigmoid(xp: Any, x: Array) -> Array:
    """Compute the logistic function from ``exp(-abs(x))``, which never overflows."""
    wide = widened(x)
    one = wide.dtype.type(1)
    if wide.dtype.kind == "c":
        return one / (one + xp.exp(-wide))
    decay = xp.exp(-xp.absolute(wide))
    return narrowed(xp.where(wide >= 0, one, decay) / (decay + one), x.dtype)
