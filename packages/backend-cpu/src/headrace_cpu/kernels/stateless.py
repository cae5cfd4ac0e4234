"""Kernels of random tensors that are functions of a seed.

The seed is the key of the Philox generator. The fourth word of the counter is 1, where that of the
streams of stateful ops is 0.
"""

from __future__ import annotations

from typing import Any

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_size, dimensions, integers, scalar
from headrace_cpu.kernels.random import (
    RandomBits,
    Words,
    drawn_integers,
    drawn_normal,
    drawn_truncated_normal,
    drawn_uniform,
)
from headrace_cpu.kernels.sampling import drawn_classes

_WORD = 1 << 64


def kernels(random_bits: RandomBits) -> KernelTable:
    """Return the kernels of stateless random ops on a device.

    Args:
        random_bits: Makes the words that ``numpy.random.Philox(key=key, counter=counter)`` makes,
            as an array of the device.
    """
    table = KernelTable()

    def words(xp: Any, seed: Array) -> Words:
        pair = integers(seed)
        if len(pair) != 2:
            raise ValueError(f"seed must be two integers, got {list(pair)}")
        key = (pair[0] % _WORD, pair[1] % _WORD)
        return lambda turn, count: random_bits(xp, key, 1 << 192 | turn << 128, count)

    @table.plain("StatelessRandomUniform")
    def uniform(xp: Any, shape: Array, seed: Array, *, dtype: DType) -> Array:
        return drawn_uniform(words(xp, seed), dimensions(shape), dtype)

    @table.plain("StatelessRandomNormal")
    def normal(xp: Any, shape: Array, seed: Array, *, dtype: DType) -> Array:
        return drawn_normal(xp, words(xp, seed), dimensions(shape), dtype)

    @table.plain("StatelessTruncatedNormal")
    def truncated_normal(xp: Any, shape: Array, seed: Array, *, dtype: DType) -> Array:
        return drawn_truncated_normal(xp, words(xp, seed), dimensions(shape), dtype)

    @table.plain("StatelessRandomUniformInt")
    def uniform_int(xp: Any, shape: Array, seed: Array, minval: Array, maxval: Array) -> Array:
        return drawn_integers(xp, words(xp, seed), dimensions(shape), minval, maxval)

    @table.plain("StatelessMultinomial")
    def multinomial(
        xp: Any, logits: Array, num_samples: Array, seed: Array, *, output_dtype: DType
    ) -> Array:
        count = scalar(num_samples, "num_samples")
        check_size((*logits.shape, max(count, 0)))
        return drawn_classes(xp, words(xp, seed), logits, count, output_dtype)

    return table
