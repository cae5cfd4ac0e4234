"""Kernels of activation functions."""

from __future__ import annotations

from typing import Any

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, narrowed, widened

KERNELS = KernelTable()


@KERNELS.plain("Relu")
def relu(xp: Any, x: Array) -> Array:
    """Return the larger of each element and 0."""
    return xp.maximum(x, x.dtype.type(0))


@KERNELS.plain("Softplus")
def softplus(xp: Any, x: Array) -> Array:
    """Compute from ``exp(-abs(x))``, which never overflows."""
    wide = widened(x)
    tail = xp.log1p(xp.exp(-xp.absolute(wide)))
    return narrowed(xp.maximum(wide, wide.dtype.type(0)) + tail, x.dtype)
