"""Kernels of linear algebra."""

from __future__ import annotations

from typing import Any

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, narrowed, widened

KERNELS = KernelTable()


@KERNELS.plain("MatMul")
def matmul(xp: Any, a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    """Multiply matrices; 16-bit floats in float32."""
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError(
            f"matrices must have at least 2 dimensions, got shapes {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    left = widened(a.swapaxes(-1, -2) if transpose_a else a)
    right = widened(b.swapaxes(-1, -2) if transpose_b else b)
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            f"inner dimensions differ: {left.shape[-1]} of a {list(a.shape)} against "
            f"{right.shape[-2]} of b {list(b.shape)}"
        )
    pairs = zip(left.shape[-3::-1], right.shape[-3::-1], strict=False)
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        raise ValueError(f"shapes {list(a.shape)} and {list(b.shape)} do not broadcast")
    return narrowed(xp.matmul(left, right), a.dtype)
