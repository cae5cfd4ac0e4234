"""BLAS for kernels that call it themselves, each thread for its own part.

A BLAS that has threads of its own is told to stay on the caller's while a kernel runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from headrace_cpu.matmul.blas import loaded_blas


def gemm(dtype: str) -> int | None:
    """Return the address of the C interface's product of matrices, None where there is no BLAS.

    Args:
        dtype: "float32" or "float64".
    """
    blas = loaded_blas()
    return None if blas is None else ctypes.cast(blas.functions[dtype], ctypes.c_void_p).value


def splits() -> bool:
    """Whether BLAS can be kept on the threads of its callers, so that several may call it."""
    blas = loaded_blas()
    return blas is not None and blas.set_threads is not None


def alone(call: Callable[[], object]) -> Callable[[], object]:
    """Return what calls a kernel while each call of BLAS stays on its caller's thread."""
    blas = loaded_blas()
    return call if blas is None else blas.alone(call)
