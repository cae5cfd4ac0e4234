"""Kernels that hand arrays through."""

from __future__ import annotations

from typing import Any

from headrace import Shape
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()


@KERNELS.plain("Identity")
def identity(xp: Any, x: Array) -> Array:
    """Return the array itself."""
    return x


@KERNELS.plain("IdentityN")
def identity_n(xp: Any, values: list[Array]) -> list[Array]:
    """Return the arrays themselves."""
    return values


@KERNELS.plain("StopGradient")
def stop_gradient(xp: Any, x: Array) -> Array:
    """Return the array itself."""
    return x


@KERNELS.plain("PlaceholderWithDefault")
def placeholder_with_default(xp: Any, x: Array, *, shape: Shape) -> Array:
    """Return the array itself, if it has the shape."""
    return ensure_shape(xp, x, shape=shape)


@KERNELS.plain("EnsureShape")
def ensure_shape(xp: Any, x: Array, *, shape: Shape) -> Array:
    """Return the array itself, if it has the shape."""
    if not shape.is_compatible_with(x.shape):
        raise ValueError(f"expected shape {shape}, got {list(x.shape)}")
    return x
