"""BLAS for kernels that call it themselves, each thread for its own part.

SciPy hands out the addresses of its BLAS's functions. A BLAS that has threads of its own is told
to stay on the caller's while a kernel runs.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ONE = ctypes.c_int(1)


@functools.cache
def gemm(dtype: str) -> int | None:
    """Return the address of the product of matrices with 32-bit sizes, None where there is none.

    Args:
        dtype: "float32" or "float64".
    """
    try:
        table = importlib.import_module("scipy.linalg.cython_blas").__pyx_capi__
    except ImportError:
        return None
    capsule = table.get({"float32": "sgemm", "float64": "dgemm"}[dtype])
    if capsule is None:
        return None
    api = ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    found: int | None = pointer(capsule, name(capsule))
    return found


@functools.cache
def _openblas() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Return the functions that get and set the threads of SciPy's OpenBLAS."""
    scipy = importlib.import_module("scipy")
    folder = Path(str(scipy.__file__)).parent.parent / "scipy.libs"
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            # It is loaded already, or not what SciPy calls.
            library = ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_NOLOAD)
            return library.scipy_openblas_get_num_threads, library.scipy_openblas_set_num_threads
        except (OSError, AttributeError):
            continue
    return None


def alone(call: Callable[[], object]) -> Callable[[], object]:
    """Return what calls a kernel while each call of BLAS stays on its caller's thread."""
    threads = _openblas()
    if threads is None:
        return call
    get, put = threads

    def run() -> None:
        before = get()
        if before == 1:
            call()
            return
        put(_ONE)
        try:
            call()
        finally:
            put(before)

    return run


def splits() -> bool:
    """Whether BLAS can be kept on the threads of its callers, so that several may call it."""
    return _openblas() is not None
