"""What the processor can do: bytes from memory and floating-point operations in a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from headrace.extend.devices import MachineLimits
from headrace_cpu.matmul.blas import loaded_blas
from headrace_cpu.native.threads import thread_count

# Far more than the caches hold, and in blocks that NumPy's calls do not slow down.
_NUMBERS = 1 << 23
_BLOCK = 1 << 16
_SIDE = 1024
_ROUNDS = 5


def limits(threads: int | None) -> MachineLimits:
    """Return what the processor can do, measured by NumPy once, in about a fifth of a second.

    Args:
        threads: How many threads may be used; None for as many as a step uses.
    """
    return _measured(threads or thread_count())


@cache
def _measured(threads: int) -> MachineLimits:
    source, result = np.ones(_NUMBERS, np.float32), np.ones(_NUMBERS, np.float32)
    matrix = np.ones((_SIDE, _SIDE), np.float32)
    product = np.empty_like(matrix)
    share = _NUMBERS // threads
    with ThreadPoolExecutor(threads) as pool:

        def double(number: int) -> None:
            for start in range(number * share, (number + 1) * share, _BLOCK):
                block = slice(start, start + _BLOCK)
                np.add(source[block], source[block], out=result[block])

        moving = _least(lambda: list(pool.map(double, range(threads))))

    def multiply() -> object:
        return np.matmul(matrix, matrix, out=product)

    blas = loaded_blas()
    computing = _least(multiply if blas is None else blas.limited(multiply, threads))
    return MachineLimits(2 * source.nbytes / moving, 2 * _SIDE**3 / computing)


def _least(call: Callable[[], object]) -> float:
    """Return the shortest of some calls' times, in seconds, after one that does not count."""
    call()
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
