"""Kernels that round floats to the values that integers of some bits stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_shape

KERNELS = KernelTable()


def _nudged(xp: Any, low: Array, high: Array, num_bits: int, narrow: bool) -> tuple[Any, Any, Any]:
    """Return ranges moved so that 0 is one of the values, and the distance of values."""
    least, most = np.float32(1 if narrow else 0), np.float32(2**num_bits - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (high - low) / (most - least)
        zero = least - low / scale
    # Halves are rounded away from 0, and none of these is negative.
    zero = xp.where(zero < least, least, xp.where(zero > most, most, xp.floor(zero + 0.5)))
    zero = zero.astype(np.float32)
    return (least - zero) * scale, (most - zero) * scale, scale


def _check_ends(inputs: Array, low: Array, high: Array) -> None:
    check_shape(high, low.shape, "max")
    if low.ndim:
        check_shape(low, inputs.shape[-1:], "min")


@KERNELS.plain("FakeQuant")
def fake_quant(
    xp: Any, inputs: Array, min: Array, max: Array, *, num_bits: int, narrow_range: bool
) -> Array:
    """Clip to the range and round to its values."""
    _check_ends(inputs, min, max)
    low, high, scale = _nudged(xp, min, max, num_bits, narrow_range)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.float32(1) / scale
        shifted = xp.minimum(xp.maximum(inputs, low), high) - low
        found = xp.floor(shifted * inverse + np.float32(0.5)) * scale + low
    return xp.where((min == 0) & (max == 0), np.float32(0), found).astype(inputs.dtype)


@KERNELS.plain("FakeQuantGradient")
def fake_quant_gradient(
    xp: Any,
    gradients: Array,
    inputs: Array,
    min: Array,
    max: Array,
    *,
    num_bits: int,
    narrow_range: bool,
) -> tuple[Array, Array, Array]:
    """Hand on what arrives inside of the range, and add up what arrives below and above."""
    check_shape(gradients, inputs.shape, "gradients")
    _check_ends(inputs, min, max)
    low, high, _ = _nudged(xp, min, max, num_bits, narrow_range)
    nothing = (min == 0) & (max == 0)
    with np.errstate(invalid="ignore"):
        below = (inputs < low) & ~nothing
        above = (inputs > high) & ~nothing
        inside = nothing | ((inputs >= low) & (inputs <= high))
    zero = gradients.dtype.type(0)
    axes = tuple(range(inputs.ndim - min.ndim))
    return (
        xp.where(inside, gradients, zero),
        xp.asarray(xp.sum(xp.where(below, gradients, zero), axes), inputs.dtype),
        xp.asarray(xp.sum(xp.where(above, gradients, zero), axes), inputs.dtype),
    )


@KERNELS.plain("QuantizeAndDequantize")
def quantize_and_dequantize(
    xp: Any,
    input: Array,
    input_min: Array,
    input_max: Array,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
) -> Array:
    """Round to multiples of the unit of the side that needs the larger one."""
    wide = np.float32 if input.dtype.itemsize < 4 else input.dtype.type
    x = input.astype(wide)
    if not range_given and not x.size:
        return input
    ends = (input_min, input_max) if range_given else (x.min(), x.max())
    for end, what in zip(ends, ("input_min", "input_max"), strict=True):
        if end.ndim:
            raise ValueError(f"{what} must be a scalar, got shape {list(end.shape)}")
    low, high = (wide(end.item()) for end in ends)
    if low > high:
        raise ValueError(f"Invalid range: input_min {low} > input_max {high}")
    half = 2 ** (num_bits - 1)
    least = wide((1 - half if narrow_range else -half) if signed_input else 0)
    most = wide(half - 1 if signed_input else 2**num_bits - 1)
    largest = np.finfo(wide).max
    from_low = least / low if least * low > 0 else largest
    from_high = most / high if most * high > 0 else largest
    if from_low < from_high:
        scale, unit = from_low, low / least
        high = most * unit
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            scale, unit = from_high, high / most
        low = least * unit
    if range_given:
        x = xp.minimum(xp.maximum(x, low), high)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = x * wide(scale)
        rounded = xp.rint(scaled) if round_mode == "HALF_TO_EVEN" else xp.floor(scaled + wide(0.5))
        return (rounded * wide(unit)).astype(input.dtype)
