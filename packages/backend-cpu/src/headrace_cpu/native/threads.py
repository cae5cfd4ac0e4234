"""Threads: how many, and the one pool that our kernels and oneDNN share."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field

_NAMES = (
    "GOMP_parallel",
    "GOMP_barrier",
    "omp_get_thread_num",
    "omp_get_num_threads",
)


@dataclass(frozen=True, slots=True)
class OpenMP:
    """GNU's OpenMP library, as it is loaded.

    Attributes:
        library: Its handle.
        parallel: ``GOMP_parallel(function, block, threads, flags)``.
        symbols: Addresses of the functions that kernels call.
    """

    library: ctypes.CDLL
    parallel: Callable[..., object]
    symbols: dict[str, int] = field(default_factory=dict)


@functools.cache
def open_mp() -> OpenMP | None:
    """Return the process's OpenMP, None where there is no GNU OpenMP."""
    try:
        library = ctypes.CDLL("libgomp.so.1")
    except OSError:
        return None
    parallel = library.GOMP_parallel
    parallel.restype = None
    parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    symbols = {name: ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in _NAMES}
    return OpenMP(library, parallel, symbols)


def thread_count() -> int:
    """Return how many threads kernels use unless they are told otherwise."""
    return len(os.sched_getaffinity(0))


def launch(address: int, block: int, threads: int = 1) -> Callable[[], object]:
    """Return what runs a kernel on its block, on so many threads.

    Args:
        address: The kernel's address, ``void kernel(int64_t *block)``.
        block: The block's address, which stays valid as long as the result is called.
        threads: On how many threads of OpenMP's pool at once; 1 calls it here.
    """
    pool = open_mp()
    if threads > 1 and pool is not None:
        return functools.partial(
            pool.parallel, ctypes.c_void_p(address), ctypes.c_void_p(block), threads, 0
        )
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    return functools.partial(kernel, block)
