"""Kernels of bitwise ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, binary, unary

KERNELS = KernelTable()

KERNELS.plain("BitwiseAnd")(binary("bitwise_and", __name__))
KERNELS.plain("BitwiseOr")(binary("bitwise_or", __name__))
KERNELS.plain("BitwiseXor")(binary("bitwise_xor", __name__))
KERNELS.plain("Invert")(unary("invert", __name__))


def _within(xp: Any, count: Array) -> Array:
    """Return numbers of bits to shift by, kept from 0 to all bits but one."""
    most = count.dtype.type(8 * count.dtype.itemsize - 1)
    return xp.minimum(xp.maximum(count, count.dtype.type(0)), most)


@KERNELS.plain("LeftShift")
def left_shift(xp: Any, x: Array, y: Array) -> Array:
    """Shift left."""
    return x << _within(xp, y)


@KERNELS.plain("RightShift")
def right_shift(xp: Any, x: Array, y: Array) -> Array:
    """Shift right, keeping the sign."""
    return x >> _within(xp, y)


@KERNELS.plain("PopulationCount")
def population_count(xp: Any, x: Array) -> Array:
    """Count bits by adding neighbors, in pairs, fours, bytes, and the bytes."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    one = unsigned.type
    full = (1 << (8 * unsigned.itemsize)) - 1
    bits = x.astype(unsigned)
    bits = bits - ((bits >> one(1)) & one(full // 3))
    bits = (bits & one(full // 5)) + ((bits >> one(2)) & one(full // 5))
    bits = (bits + (bits >> one(4))) & one(full // 17)
    total = bits & one(0xFF)
    for byte in range(1, unsigned.itemsize):
        total = total + ((bits >> one(8 * byte)) & one(0xFF))
    return total.astype(np.uint8)
