"""What the machine can do: bytes from memory and multiplications in a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

# Far more than the caches hold, and in blocks that NumPy's calls do not slow down.
_NUMBERS = 1 << 23
_BLOCK = 1 << 16
_SIDE = 1024
_ROUNDS = 5


@dataclass(frozen=True)
class Limits:
    """The most that the machine did in a second while this was measured.

    Attributes:
        bytes: bytes read and written.
        flops: floating-point operations of a float32 matrix product.
    """

    bytes: float
    flops: float

    def seconds(self, moved: float, computed: float) -> float:
        """Return the least time for moving this many bytes and computing this many flops."""
        return max(moved / self.bytes, computed / self.flops)


def measure(threads: int) -> Limits:
    """Measure the machine with NumPy, with this many threads for the memory."""
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
    computing = _least(lambda: np.matmul(matrix, matrix, out=product))
    return Limits(2 * source.nbytes / moving, 2 * _SIDE**3 / computing)


def _least(call: Callable[[], object]) -> float:
    """Return the shortest of some calls' times, in seconds, after one that does not count."""
    call()
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
