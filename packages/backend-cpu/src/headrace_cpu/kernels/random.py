"""Kernels of random tensors, on counter-based streams of bits.

The bits are those of Philox4x64-10: a function of a key of two words and a counter, so that a draw
needs no state but its number, and every device makes the same bits. The key is the pair of seeds.
Of the counter's four words the first counts within a draw, the second is the number of the draw,
and the third tells apart the rounds of one draw. Uniform numbers and integers are the same on all
devices; normal ones differ by the rounding of each device's elementary functions.

References:
    J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as
    1, 2, 3, SC 2011, https://doi.org/10.1145/2063384.2063405
    G. E. P. Box, M. E. Muller, A note on the generation of random normal deviates, Annals of
    Mathematical Statistics 29, 1958, https://doi.org/10.1214/aoms/1177706645
    M. Giles, Approximating the erfinv function, GPU Computing Gems Jade Edition, 2011,
    https://people.maths.ox.ac.uk/gilesm/files/gems_erfinv.pdf
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from headrace import DType, bfloat16
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu import philox
from headrace_cpu.kernels.numeric import Array, check_size, dimensions, scalar

# (xp, key, counter, count) to [count] words of 64 bits.
RandomBits: TypeAlias = Callable[[Any, tuple[int, int], int, int], Array]
Seeds: TypeAlias = tuple[int, int] | None
# The words of one draw: (turn, count) to [count] of them, others in each turn.
Words: TypeAlias = Callable[[int, int], Array]

_WORD = 1 << 64
# Probability that a standard normal number lies within two standard deviations: erf(sqrt(2)).
_WITHIN_TWO = math.erf(math.sqrt(2.0))

# Giles' polynomials for erfinv(x) / x in -log(1 - x * x) less a centre, highest power first, for
# his central range, which reaches beyond two standard deviations.
_CENTRE_SINGLE = 2.5
_ERFINV_SINGLE = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_CENTRE_DOUBLE = 3.125
_ERFINV_DOUBLE = (
    *(-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18),
    *(1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17),
    *(6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14),
    *(2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11),
    *(1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08),
    *(4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05),
    *(0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533),
    *(0.24015818242558961693, 1.6536545626831027356),
)


# A generator for each thread, and the buffer of one that has nothing left in it.
_OWN = threading.local()
_NO_BUFFER = np.zeros(4, np.uint64)


def host_bits(xp: Any, key: tuple[int, int], counter: int, count: int) -> Array:
    """Return [count] words of 64 random bits, many of them made by a native loop."""
    made = philox.bits(key, counter, count)
    return _numpy_bits(key, counter, count) if made is None else made


def _numpy_bits(key: tuple[int, int], counter: int, count: int) -> Array:
    """Return [count] words of 64 random bits, made by NumPy."""
    bits = getattr(_OWN, "bits", None)
    if bits is None:
        bits = _OWN.bits = np.random.Philox(key=0)
    words = [counter >> shift & _WORD - 1 for shift in (0, 64, 128, 192)]
    # A generator made anew asks the system for entropy, which takes several times as long.
    bits.state = {
        "bit_generator": "Philox",
        "state": {"counter": np.array(words, np.uint64), "key": np.array(key, np.uint64)},
        "buffer": _NO_BUFFER,
        "buffer_pos": len(_NO_BUFFER),
        "has_uint32": 0,
        "uinteger": 0,
    }
    return bits.random_raw(count)


def kernels(random_bits: RandomBits) -> KernelTable:
    """Return the kernels of random ops on a device.

    Args:
        random_bits: Makes the words that ``numpy.random.Philox(key=key, counter=counter)`` makes,
            as an array of the device.
    """
    table = KernelTable()

    @table.stateful("RandomUniform")
    def random_uniform(ctx: KernelContext, shape: Array, *, dtype: DType, seeds: Seeds) -> Array:
        return drawn_uniform(stream_words(random_bits, ctx, seeds), dimensions(shape), dtype)

    @table.stateful("RandomStandardNormal")
    def random_normal(ctx: KernelContext, shape: Array, *, dtype: DType, seeds: Seeds) -> Array:
        words = stream_words(random_bits, ctx, seeds)
        return drawn_normal(ctx.xp, words, dimensions(shape), dtype)

    @table.stateful("TruncatedNormal")
    def truncated_normal(ctx: KernelContext, shape: Array, *, dtype: DType, seeds: Seeds) -> Array:
        words = stream_words(random_bits, ctx, seeds)
        return drawn_truncated_normal(ctx.xp, words, dimensions(shape), dtype)

    @table.stateful("RandomUniformInt")
    def random_uniform_int(
        ctx: KernelContext, shape: Array, minval: Array, maxval: Array, *, seeds: Seeds
    ) -> Array:
        words = stream_words(random_bits, ctx, seeds)
        return drawn_integers(ctx.xp, words, dimensions(shape), minval, maxval)

    @table.stateful("RandomPermutation")
    def random_permutation(ctx: KernelContext, size: Array, *, seeds: Seeds) -> Array:
        count = scalar(size, "size")
        if count < 0:
            raise ValueError(f"size must be >= 0, got {count}")
        check_size((count,))
        # Two words are equal once in 2**64 pairs.
        keys = stream_words(random_bits, ctx, seeds)(0, count)
        return ctx.xp.argsort(keys).astype(np.int64, copy=False)

    return table


def stream_words(random_bits: RandomBits, ctx: KernelContext, seeds: Seeds) -> Words:
    """Return the words of the next draw of a node's stream."""
    (graph_seed, op_seed), draw = ctx.draw(seeds)
    key = (graph_seed % _WORD, op_seed % _WORD)
    return lambda turn, count: random_bits(ctx.xp, key, turn << 128 | draw << 64, count)


def drawn_uniform(words: Words, dims: tuple[int, ...], dtype: DType) -> Array:
    """Return numbers uniform in [0, 1)."""
    n = math.prod(dims)
    return _uniform(words(0, _words_for(n, dtype.itemsize)), dtype)[:n].reshape(dims)


def drawn_normal(xp: Any, words: Words, dims: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers."""
    n = math.prod(dims)
    size = max(dtype.itemsize, 4)
    half = -(-n // 2)
    bits = words(0, 2 * _words_for(half, size))
    return _normal(xp, bits, half, size)[:n].astype(dtype.numpy, copy=False).reshape(dims)


def drawn_truncated_normal(xp: Any, words: Words, dims: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers within two standard deviations."""
    n = math.prod(dims)
    size = max(dtype.itemsize, 4)
    drawn = _truncated_normal(xp, _signed(words(0, _words_for(n, size)), size)[:n])
    return drawn.astype(dtype.numpy, copy=False).reshape(dims)


def drawn_integers(
    xp: Any, words: Words, dims: tuple[int, ...], minval: Array, maxval: Array
) -> Array:
    """Return integers uniform in [minval, maxval)."""
    low, high = scalar(minval, "minval"), scalar(maxval, "maxval")
    n = math.prod(dims)
    if n and high <= low:
        raise ValueError(f"maxval must be above minval, got [{low}, {high})")
    drawn = _below(xp, lambda turn: words(turn, n), max(high - low, 1))
    # Modulo 2**64, which narrowing to the dtype turns into the number itself.
    shifted = drawn + np.uint64(low % _WORD)
    return shifted.astype(minval.dtype).reshape(dims)


def _words_for(n: int, itemsize: int) -> int:
    """Return how many words hold ``n`` elements."""
    return -(-n * itemsize // 8)


def _uniform(bits: Array, dtype: DType) -> Array:
    """Return multiples of 2**-p in [0, 1), where p is the precision of the dtype."""
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    precision = dtype.significand
    fractions = bits.view(unsigned) >> unsigned.type(8 * dtype.itemsize - precision)
    if dtype == bfloat16:
        return (fractions.astype(np.float32) * np.float32(2.0**-precision)).astype(dtype.numpy)
    numbers = fractions.astype(dtype.numpy)
    # In place: new memory costs as much as the arithmetic.
    numbers *= dtype.numpy.type(2.0**-precision)
    return numbers


def _signed(bits: Array, itemsize: int) -> Array:
    """Return numbers uniform in [-1, 1], symmetric about 0, that are precise near 0, too."""
    floating = np.dtype(f"float{8 * itemsize}")
    numbers = bits.view(np.dtype(f"int{8 * itemsize}")).astype(floating)
    numbers += floating.type(0.5)
    numbers *= floating.type(2.0 ** (1 - 8 * itemsize))
    return numbers


def _normal(xp: Any, bits: Array, half: int, itemsize: int) -> Array:
    """Return ``2 * half`` standard normal numbers, from as many uniform ones (Box and Muller)."""
    floating = np.dtype(f"float{8 * itemsize}")
    middle = bits.size // 2
    unsigned = np.dtype(f"uint{8 * itemsize}")
    # In (0, 1], with all bits, of which the far tail is made.
    radius = bits[:middle].view(unsigned)[:half].astype(floating)
    radius += floating.type(0.5)
    radius *= floating.type(2.0 ** (-8 * itemsize))
    xp.log(radius, out=radius)
    radius *= floating.type(-2)
    xp.sqrt(radius, out=radius)
    angle = _signed(bits[middle:], itemsize)[:half]
    angle *= floating.type(math.pi)
    numbers = xp.empty(2 * half, floating)
    xp.cos(angle, out=numbers[:half])
    xp.sin(angle, out=numbers[half:])
    numbers[:half] *= radius
    numbers[half:] *= radius
    return numbers


def _truncated_normal(xp: Any, signed: Array) -> Array:
    """Return the normal quantiles of uniform numbers, the tails beyond 2 cut off."""
    floating = signed.dtype.type
    single = signed.dtype.itemsize == 4
    centre, polynomial = (
        (_CENTRE_SINGLE, _ERFINV_SINGLE) if single else (_CENTRE_DOUBLE, _ERFINV_DOUBLE)
    )
    x = signed * floating(_WITHIN_TWO)
    w = -xp.log((floating(1) - x) * (floating(1) + x)) - floating(centre)
    ratio = xp.full(w.shape, polynomial[0], w.dtype)
    for coefficient in polynomial[1:]:
        ratio *= w
        ratio += floating(coefficient)
    quantile = ratio * x * floating(math.sqrt(2.0))
    # Rounding may step over the bounds.
    return xp.clip(quantile, floating(-2), floating(2))


def _below(xp: Any, words: Callable[[int], Array], size: int) -> Array:
    """Return integers uniform in [0, size), exactly: words in an incomplete cycle are redrawn."""
    drawn = words(0)
    last = _WORD - _WORD % size - 1
    turn = 0
    while last < _WORD - 1:
        outside = drawn > np.uint64(last)
        if not outside.any():
            break
        turn += 1
        drawn = xp.where(outside, words(turn), drawn)
    return drawn % np.uint64(size)
