"""Kernels of complex numbers and their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()


@KERNELS.plain("Complex")
def complex_(xp: Any, real: Array, imag: Array) -> Array:
    """Join real and imaginary parts."""
    # Not real + 1j * imag: 0 * inf would be NaN.
    dtype = np.dtype(np.complex64 if real.dtype == np.float32 else np.complex128)
    joined = xp.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
    joined.real[...] = real
    joined.imag[...] = imag
    return joined


@KERNELS.plain("Real")
def real(xp: Any, z: Array) -> Array:
    """Copy the real parts, so that the imaginary parts need not be kept."""
    return z.real.copy()


@KERNELS.plain("Imag")
def imag(xp: Any, z: Array) -> Array:
    """Copy the imaginary parts."""
    return z.imag.copy()


@KERNELS.plain("Angle")
def angle(xp: Any, z: Array) -> Array:
    """Return the angle."""
    return xp.arctan2(z.imag, z.real)


@KERNELS.plain("ComplexAbs")
def complex_abs(xp: Any, z: Array) -> Array:
    """Return the absolute value."""
    return xp.absolute(z)
