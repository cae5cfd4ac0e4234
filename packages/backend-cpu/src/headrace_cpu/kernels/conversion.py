"""Kernels of conversions between dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()


@KERNELS.plain("Cast")
def cast(xp: Any, x: Array, *, dtype: DType) -> Array:
    """Convert to another dtype."""
    if x.dtype.kind == "c" and dtype.kind not in ("complex", "bool"):
        x = x.real
    return x.astype(np.dtype(dtype.numpy), copy=False)


@KERNELS.plain("Bitcast")
def bitcast(xp: Any, x: Array, *, type: DType) -> Array:
    """Read the bytes of the elements as elements of another dtype."""
    wanted = np.dtype(type.numpy)
    shape = x.shape
    if wanted.itemsize < x.dtype.itemsize:
        shape = (*shape, x.dtype.itemsize // wanted.itemsize)
    elif wanted.itemsize > x.dtype.itemsize:
        parts = wanted.itemsize // x.dtype.itemsize
        if not shape or shape[-1] != parts:
            raise ValueError(
                f"the last dimension must be {parts}, so that it fills one {type}; "
                f"got shape {list(shape)}"
            )
        shape = shape[:-1]
    if not x.size:
        return xp.empty(shape, wanted)
    # A copy: results share no memory with inputs that may be reused.
    return xp.ascontiguousarray(x).reshape(-1).view(wanted).reshape(shape).copy()
