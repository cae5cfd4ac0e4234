"""Kernels of samples of distributions with parameters.

Every element has places of its own in the stream, some for each turn of a rejection method: what is
drawn for one does not depend on the parameters of the others. All is computed in float64.

References:
    G. Marsaglia, W. W. Tsang, A simple method for generating gamma variables, ACM Transactions on
    Mathematical Software 26, 2000, https://doi.org/10.1145/358407.358414
    W. Hörmann, The transformed rejection method for generating Poisson random variables,
    Insurance: Mathematics and Economics 12, 1993, https://doi.org/10.1016/0167-6687(93)90997-4
    M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, 2018,
    https://arxiv.org/abs/1805.08498
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.kernels.numeric import Array, check_broadcast, check_size, dimensions, scalar
from headrace_cpu.kernels.random import RandomBits, Seeds, Words, stream_words

KERNELS = KernelTable()

# Far more turns than any element needs: each is accepted with a probability above 0.7.
_TURNS = 100
_LARGE_RATE = 10.0


@functools.cache
def _quadrature() -> Any:
    """Return 80 nodes and weights of an integral from -1 to 1; most programs need none."""
    return np.polynomial.legendre.leggauss(80)


def kernels(random_bits: RandomBits) -> KernelTable:
    """Return the kernels of these ops on a device.

    Args:
        random_bits: Makes the words that ``numpy.random.Philox(key=key, counter=counter)`` makes,
            as an array of the device.
    """
    table = KernelTable()

    @table.stateful("RandomGamma")
    def random_gamma(ctx: KernelContext, shape: Array, alpha: Array, *, seeds: Seeds) -> Array:
        xp, dims = ctx.xp, (*dimensions(shape), *alpha.shape)
        words = stream_words(random_bits, ctx, seeds)
        wide = xp.broadcast_to(alpha.astype(np.float64), dims).reshape(-1)
        return _gamma(xp, words, wide).astype(alpha.dtype).reshape(dims)

    @table.stateful("RandomPoisson")
    def random_poisson(
        ctx: KernelContext, shape: Array, rate: Array, *, dtype: DType, seeds: Seeds
    ) -> Array:
        xp, dims = ctx.xp, (*dimensions(shape), *rate.shape)
        if dtype.is_integer and not bool(((rate >= 0) & (rate < np.inf)).all()):
            raise ValueError(f"for {dtype} the means must be finite and >= 0")
        words = stream_words(random_bits, ctx, seeds)
        wide = xp.broadcast_to(rate.astype(np.float64), dims).reshape(-1)
        drawn = _poisson(xp, words, wide)
        if dtype.is_integer:
            # The largest float64 that the dtype holds: rounding must not step over its limit.
            drawn = xp.minimum(drawn, np.nextafter(float(dtype.max) + 1, 0))
        return drawn.astype(dtype.numpy).reshape(dims)

    @table.stateful("Multinomial")
    def multinomial(
        ctx: KernelContext, logits: Array, num_samples: Array, *, output_dtype: DType, seeds: Seeds
    ) -> Array:
        words = stream_words(random_bits, ctx, seeds)
        count = scalar(num_samples, "num_samples")
        check_size((*logits.shape, max(count, 0)))
        return drawn_classes(ctx.xp, words, logits, count, output_dtype)

    return table


def _open_unit(bits: Array) -> Array:
    """Return numbers uniform in (0, 1), precise near 0."""
    return ((bits.astype(np.float64) + 0.5) * 2.0**-64).clip(0.0, 1.0 - 2.0**-53)


def _places(x: Array, waiting: Array) -> Array:
    """Return the elements that wait along the last axis: all of them, in most first turns."""
    return x if waiting.size == x.shape[-1] else x[..., waiting]


def _gamma(xp: Any, words: Words, alpha: Array) -> Array:
    """Draw from gamma distributions by cubes of normal numbers (Marsaglia and Tsang)."""
    n = alpha.size
    small = alpha < 1
    a = xp.where(small, alpha + 1, alpha)
    d = a - 1.0 / 3.0
    c = 1.0 / xp.sqrt(9.0 * d)
    drawn = xp.where(alpha == 0, 0.0, xp.where(alpha == np.inf, np.inf, np.nan))
    waiting = xp.flatnonzero((alpha > 0) & (alpha < np.inf))
    for turn in range(_TURNS):
        if not waiting.size:
            break
        first, second, third = _places(words(turn, 3 * n).reshape(3, n), waiting)
        scale, spread = _places(d, waiting), _places(c, waiting)
        radius = xp.sqrt(-2.0 * xp.log(_open_unit(first)))
        normal = radius * xp.cos(_open_unit(second) * (2.0 * math.pi))
        root = 1.0 + spread * normal
        cube = root * root * root
        bound = 0.5 * normal * normal + scale * (1.0 - cube + xp.log(cube))
        taken = (cube > 0) & (xp.log(_open_unit(third)) < bound)
        drawn[waiting[taken]] = (scale * cube)[taken]
        waiting = waiting[~taken]
    if not bool(small.any()):
        return drawn
    # Below 1 a power of a uniform number turns the sample of alpha + 1 into that of alpha.
    power = xp.exp(xp.log(_open_unit(words(_TURNS, n))) / xp.where(small, alpha, 1.0))
    return xp.where(small & (alpha > 0), drawn * power, drawn)


def _poisson(xp: Any, words: Words, rate: Array) -> Array:
    """Draw from Poisson distributions."""
    n = rate.size
    drawn = xp.where(rate == np.inf, np.inf, xp.where(rate == 0, 0.0, np.nan))
    small = xp.flatnonzero((rate > 0) & (rate < _LARGE_RATE))
    if small.size:
        unit = _open_unit(words(0, n)[small])
        drawn[small] = _poisson_by_sums(xp, unit, rate[small])
    waiting = xp.flatnonzero((rate >= _LARGE_RATE) & (rate < np.inf))
    for turn in range(1, _TURNS):
        if not waiting.size:
            break
        first, second = _places(words(turn, 2 * n).reshape(2, n), waiting)
        number, taken = _poisson_by_rejection(
            xp, _open_unit(first) - 0.5, _open_unit(second), _places(rate, waiting)
        )
        drawn[waiting[taken]] = number[taken]
        waiting = waiting[~taken]
    return drawn


def _poisson_by_sums(xp: Any, unit: Array, rate: Array) -> Array:
    """Return how many values of the distribution function are up to a uniform number."""
    chance = xp.exp(-rate)
    total = chance.copy()
    number = xp.zeros(rate.shape, np.float64)
    # Of a mean below 10, a number of 100 or more has no probability that float64 could tell.
    for k in range(1, 100):
        above = unit >= total
        if not bool(above.any()):
            break
        number += above
        chance = chance * rate / k
        total = total + chance
    return number


def _poisson_by_rejection(xp: Any, u: Array, v: Array, rate: Array) -> tuple[Array, Array]:
    """Return one turn of Hörmann's method PTRS: numbers, and which of them to take."""
    b = 0.931 + 2.53 * xp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    inside = 0.9277 - 3.6224 / (b - 2.0)
    distance = 0.5 - xp.abs(u)
    number = xp.floor((2.0 * a / distance + b) * u + rate + 0.43)
    at_once = (distance >= 0.07) & (v <= inside)
    never = (number < 0) | ((distance < 0.013) & (v > distance))
    left = xp.log(v) + xp.log(inverse_alpha) - xp.log(a / (distance * distance) + b)
    count = xp.maximum(number, 0.0)
    right = count * xp.log(rate) - rate - _log_gamma(xp, count + 1.0)
    return number, at_once | (~never & (left <= right))


def _log_gamma(xp: Any, x: Array) -> Array:
    """Return the logarithm of the gamma function of numbers >= 1, by Stirling's series at x + 8."""
    product = x
    for i in range(1, 8):
        product = product * (x + i)
    y = x + 8.0
    square = y * y
    series = (1 / 12.0 - (1 / 360.0 - (1 / 1260.0 - 1 / (1680.0 * square)) / square) / square) / y
    whole = (y - 0.5) * xp.log(y) - y + 0.5 * math.log(2.0 * math.pi) + series
    # The product of eight numbers may overflow, where it no longer matters which way is taken.
    direct = (x - 0.5) * xp.log(x) - x + 0.5 * math.log(2.0 * math.pi) + 1.0 / (12.0 * x)
    return xp.where(x < 1e6, whole - xp.log(xp.minimum(product, 1e300)), direct)


def _digamma(xp: Any, x: Array) -> Array:
    """Return the derivative of the logarithm of the gamma function, of positive numbers."""
    y = x + 8.0
    z = 1.0 / (y * y)
    tail = 1 / 120.0 - z * (1 / 252.0 - z * (1 / 240.0 - z * (1 / 132.0)))
    series = z * (1 / 12.0 - z * tail)
    whole = xp.log(y) - 0.5 / y - series
    for i in range(8):
        whole = whole - 1.0 / (x + i)
    return whole


def drawn_classes(xp: Any, words: Words, logits: Array, count: int, dtype: DType) -> Array:
    """Return classes with given logarithms of probabilities, by their cumulated probabilities."""
    if logits.ndim != 2:
        raise ValueError(f"logits must be [batch, classes], got shape {list(logits.shape)}")
    if count < 0:
        raise ValueError(f"num_samples must be >= 0, got {count}")
    batch, classes = logits.shape
    if not batch * count:
        return xp.zeros((batch, count), dtype.numpy)
    if not classes:
        raise ValueError("logits must have at least one class")
    wide = logits.astype(np.float64)
    finite = xp.isfinite(wide)
    if not bool(finite.any(axis=1).all()):
        raise ValueError("each row of logits needs at least one finite element")
    highest = xp.where(finite, wide, -np.inf).max(axis=1, keepdims=True)
    cumulated = xp.cumsum(xp.where(finite, xp.exp(xp.where(finite, wide - highest, 0)), 0), axis=1)
    # The rows, one after the other in one increasing vector: row i reaches from i to i + 1.
    rows = xp.arange(batch, dtype=np.float64)[:, None]
    stairs = rows + cumulated / cumulated[:, -1:]
    unit = (words(0, batch * count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    wanted = xp.minimum(rows + unit.reshape(batch, count), xp.nextafter(rows + 1.0, 0.0))
    found = xp.searchsorted(stairs.reshape(-1), wanted.reshape(-1), side="right")
    return (found.reshape(batch, count) - xp.arange(batch)[:, None] * classes).astype(dtype.numpy)


@KERNELS.plain("RandomGammaGrad")
def random_gamma_grad(xp: Any, alpha: Array, sample: Array) -> Array:
    """Differentiate samples by the parameter, the value of the distribution function fixed.

    With ``f`` the density, it is ``-1 / f(z)`` times the derivative of the distribution function
    by ``a``. That is an integral of ``(log t - digamma(a)) f(t)`` over ``t`` up to ``z``, or of its
    negative from there on; with ``t = z exp(-v)`` the integrand decreases from ``v = 0``.
    For small ``z`` and ``a`` the series of the distribution function takes its place.
    """
    check_broadcast(alpha.shape, sample.shape)
    a, z = xp.broadcast_arrays(alpha.astype(np.float64), sample.astype(np.float64))
    below = z <= a
    offset = xp.log(z) - _digamma(xp, a)
    series = below & (a < 10.0)
    # Beyond this distance the integrand is less than exp(-40) of what it is at first.
    scale = xp.where(below, a, z)
    reach = xp.where(
        below, xp.sqrt(80.0 / scale) + 80.0 / scale, xp.log1p(xp.sqrt(80.0 / scale) + 40.0 / scale)
    )
    sign = xp.where(below, -1.0, 1.0)
    total = xp.zeros(a.shape, np.float64)
    for node, weight in zip(*_quadrature(), strict=True):
        v = reach * float(0.5 * (node + 1.0))
        exponent = sign * a * v - z * xp.expm1(sign * v)
        total = total + float(0.5 * weight) * (offset + sign * v) * xp.exp(exponent)
    integral = sign * z * reach * total
    result = xp.where(series, _by_series(xp, a, z, offset), integral)
    result = xp.where((z == 0) & (a > 0), 0.0, result)
    return result.astype(alpha.dtype)


def _by_series(xp: Any, a: Array, z: Array, offset: Array) -> Array:
    """Return the derivative by the series of the incomplete gamma function, for z <= a < 10."""
    near = xp.minimum(z, 10.0)
    low = xp.minimum(a, 10.0)
    term = xp.ones(a.shape, np.float64)
    slope = xp.zeros(a.shape, np.float64)
    total, slopes = term, slope
    for k in range(1, 80):
        slope = (slope - term / (low + k)) * near / (low + k)
        term = term * near / (low + k)
        total, slopes = total + term, slopes + slope
    # digamma(a + 1) = digamma(a) + 1 / a
    return -(z / a) * ((offset - 1.0 / a) * total + slopes)
