"""Kernels between floats and levels of a range.

All arithmetic is that of float32, operation by operation as TensorFlow has it, so that levels are
the same; only where a number is converted once, float64 is between.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_shape

KERNELS = KernelTable()

_F32 = np.float32


class _Limits(NamedTuple):
    """The lowest and the highest level, and how many levels are between."""

    lowest: float
    highest: float
    steps: float


def _limits(dtype: Any) -> _Limits:
    found = np.iinfo(dtype)
    return _Limits(float(found.min), float(found.max), float(2**found.bits - 1))


def _end(end: Array, label: str) -> Any:
    """Return an end of a range, which may be fed as a vector of one, as a scalar."""
    if end.size != 1:
        raise ValueError(f"{label} must be a scalar, got shape {list(end.shape)}")
    return end.reshape(())


def _rounded(xp: Any, x: Array) -> Array:
    """Round halves away from 0."""
    whole = xp.trunc(x)
    return whole + xp.sign(x) * (xp.abs(x - whole) >= 0.5)


def _as_levels(xp: Any, x: Array, dtype: Any) -> Array:
    """Return whole numbers as levels: NaN is 0, and none is beyond the highest."""
    limits = _limits(dtype)
    x = xp.where(xp.isnan(x), 0, x)
    # The highest integer of 32 bits is no float32: the next float would wrap around.
    found = xp.clip(x.astype(np.float64), limits.lowest, limits.highest)
    return found.astype(dtype)


def _single(x: Any) -> Any:
    return x.astype(np.float32)


@KERNELS.plain("Quantize")
def quantize(
    xp: Any,
    input: Array,
    min_range: Array,
    max_range: Array,
    *,
    T: DType,  # noqa: N803 - the attribute's name
    mode: str,
    round_mode: str,
) -> tuple[Array, Array, Array]:
    """Round to levels."""
    given, limit = _end(min_range, "min_range"), _end(max_range, "max_range")
    if bool(limit < given):
        raise ValueError(
            f"max_range must be at least min_range, got min_range {given} and max_range {limit}"
        )
    low = xp.minimum(given, _F32(0))
    largest = xp.maximum(xp.abs(given), xp.abs(limit))
    least = xp.maximum(largest, _F32(1)) / _F32(100)
    high = xp.maximum(xp.maximum(limit, low + least), _F32(0))
    dtype, limits = T.numpy, _limits(T.numpy)
    with np.errstate(all="ignore"):
        if mode == "MIN_COMBINED":
            scale = _single(limits.steps / (high - low).astype(np.float64))
            within = (xp.maximum(xp.minimum(input, high), low) - low) * scale
            if limits.lowest:
                found = _rounded(xp, within - _F32(-limits.lowest))
            else:
                found = xp.trunc(within + _F32(0.5))
        elif mode == "MIN_FIRST":
            found = _from_first(xp, input, low, high, limits)
        else:
            low, high, scale = _scaled(xp, low, high, limits)
            within = xp.maximum(xp.minimum(input, high), low) * scale
            even = round_mode == "HALF_TO_EVEN"
            found = xp.rint(within) if even else _rounded(xp, within)
        return _as_levels(xp, found, dtype), low, high


def _scaled(xp: Any, low: Any, high: Any, limits: _Limits) -> tuple[Any, Any, Any]:
    """Return the range of which levels are multiples of a number, and the levels of 1."""
    scales = []
    for level, end in ((_F32(limits.lowest), low), (_F32(limits.highest), high)):
        found = level / xp.where(end == 0, _F32(1), end)
        scales.append(xp.where(level * end > 0, found, np.finfo(np.float32).max))
    scale = xp.minimum(*scales)
    return _F32(limits.lowest) / scale, _F32(limits.highest) / scale, scale


def _from_first(xp: Any, x: Array, low: Any, high: Any, limits: _Limits) -> Array:
    """Return levels of a range whose lower end is rounded to a multiple of their distance."""
    scale = _single(xp.where(high == low, 0, limits.steps / (high - low).astype(np.float64)))
    found = _rounded(xp, x * scale) - (_rounded(xp, low * scale) - _F32(limits.lowest))
    # The largest float32 within 32 bits.
    most = min(limits.highest, 2147483520.0)
    return xp.minimum(xp.maximum(found, _F32(limits.lowest)), _F32(most))


def _to_first(xp: Any, levels: Array, low: Any, high: Any) -> Array:
    """Return the floats of levels of such a range."""
    limits = _limits(levels.dtype)
    scale = _single((high - low).astype(np.float64) / limits.steps)
    with np.errstate(all="ignore"):
        start = xp.where(high == low, low, _rounded(xp, low / scale) * scale)
    return (start - _F32(limits.lowest) * scale) + _single(levels) * scale


@KERNELS.plain("Dequantize")
def dequantize(xp: Any, input: Array, min_range: Array, max_range: Array, *, mode: str) -> Array:
    """Return what levels stand for."""
    low, high = _end(min_range, "min_range"), _end(max_range, "max_range")
    limits = _limits(input.dtype)
    lowest, highest = _F32(limits.lowest), _F32(limits.highest)
    with np.errstate(all="ignore"):
        if mode == "MIN_COMBINED":
            half = (highest - lowest + _F32(1)) / _F32(2) if limits.lowest else _F32(0)
            scale = (high - low) / (highest - lowest)
            return (_single(input) + half) * scale + low
        if mode == "MIN_FIRST":
            return _to_first(xp, input, low, high)
        scale = high / highest
        if limits.lowest:
            # Of zeros that differ in their sign, the lower end's.
            scale = xp.where(low / lowest < scale, scale, low / lowest)
        return _single(input) * scale


@KERNELS.plain("QuantizedConcat")
def quantized_concat(
    xp: Any,
    concat_dim: Array,
    values: list[Array],
    input_mins: list[Array],
    input_maxes: list[Array],
) -> tuple[Array, Array, Array]:
    """Bring levels into one range, and join them."""
    rank, axis = values[0].ndim, int(_end(concat_dim, "concat_dim"))
    if not -rank <= axis < rank:
        raise IndexError(f"concat_dim {axis} is out of range [{-rank}, {rank})")
    axis %= rank
    for value in values:
        if value.ndim == rank:
            expected = list(values[0].shape)
            expected[axis] = value.shape[axis]
            check_shape(value, expected, "each of values")
        else:
            raise ValueError(
                f"values must have one number of dimensions, got {rank} and {value.ndim}"
            )
    lows = [_end(end, "input_mins") for end in input_mins]
    highs = [_end(end, "input_maxes") for end in input_maxes]
    low, high = xp.minimum(xp.stack(lows).min(), _F32(0)), xp.stack(highs).max()
    limits = _limits(values[0].dtype)
    if limits.lowest:
        high = xp.maximum(xp.abs(low), xp.abs(high))
        low = -high
    parts = []
    for value, own_low, own_high in zip(values, lows, highs, strict=True):
        if bool((own_low == low) & (own_high == high)):
            parts.append(value)
            continue
        floats = _to_first(xp, value, own_low, own_high)
        with np.errstate(all="ignore"):
            found = _from_first(xp, floats, low, high, limits)
        parts.append(_as_levels(xp, found, value.dtype))
    return xp.concatenate(parts, axis), low, high


@KERNELS.plain("QuantizedLevel")
def quantized_level(
    xp: Any,
    value: Array,
    min_range: Array,
    max_range: Array,
    *,
    T: DType,  # noqa: N803 - the attribute's name
) -> Array:
    """Return the level of a number, wherever it is."""
    low, high = _end(min_range, "min_range"), _end(max_range, "max_range")
    limits = _limits(T.numpy)
    count = limits.steps + 1
    # TensorFlow's order of operations: the range of one level more, and its levels.
    spread = (high - low).astype(np.float64) * (count / limits.steps)
    with np.errstate(all="ignore"):
        scale = count / xp.where(high == low, 1, spread)
        at, start = (
            _rounded(xp, x.astype(np.float64) * scale) for x in (_end(value, "value"), low)
        )
        level = xp.where(high == low, 0, at - start) + limits.lowest
    # Beyond 2 ** 62 there are no levels that anybody compares with.
    return xp.clip(xp.where(xp.isnan(level), 0, level), -(2.0**62), 2.0**62).astype(np.int64)
