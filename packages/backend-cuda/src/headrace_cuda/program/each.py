"""Kernels of one thread for each of some elements."""

from __future__ import annotations

from headrace_cuda.program.platform import Function

_THREADS = 256
# The number of a thread's element, in CUDA C++; the last threads have none.
NUMBER = f"(long long)blockIdx.x * {_THREADS} + threadIdx.x"


def start_each(function: Function, count: int, *words: int) -> None:
    """Start a kernel of one thread for each of ``count`` elements, at least one."""
    function((-(-count // _THREADS), 1, 1), (_THREADS, 1, 1), *words)
