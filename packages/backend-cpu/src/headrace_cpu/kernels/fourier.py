"""Kernels of Fourier transforms, in the precision of their input.

On NumPy's arrays they are SciPy's, which computes several transforms of float32 in vectors; on
others those of the array module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_shape, integers
from headrace_cpu.kernels.scipy_beside import scipy_module

KERNELS = KernelTable()


def _transforms(xp: Any) -> Any:
    """Return the module of transforms of arrays of ``xp``."""
    return scipy_module(np, "fft") if xp is np else xp.fft


def _complex(function: str, count: int) -> Callable[[Any, Array], Array]:
    """Return the kernel of a transform of complex numbers over the last dimensions."""

    def kernel(xp: Any, input: Array) -> Array:
        _check_dimensions(input, count)
        if not input.size:
            return input
        axes = tuple(range(-count, 0))
        return getattr(_transforms(xp), function)(input, axes=axes).astype(input.dtype, copy=False)

    kernel.__module__ = __name__
    return kernel


def _forward(count: int) -> Callable[[Any, Array, Array], Array]:
    """Return the kernel of a transform of real numbers over the last dimensions."""

    def kernel(xp: Any, input: Array, fft_length: Array) -> Array:
        lengths = _lengths(fft_length, count)
        dtype = np.result_type(input.dtype, np.complex64)
        made = _empty(xp, input, lengths, [*lengths[:-1], _half(lengths[-1])], dtype)
        if made is not None:
            return made
        found = _transforms(xp).rfftn(input, s=lengths, axes=tuple(range(-count, 0)))
        return found.astype(dtype, copy=False)

    kernel.__module__ = __name__
    return kernel


def _backward(count: int) -> Callable[[Any, Array, Array], Array]:
    """Return the kernel that makes real numbers of their transform."""

    def kernel(xp: Any, input: Array, fft_length: Array) -> Array:
        lengths = _lengths(fft_length, count)
        dtype = input.real.dtype
        made = _empty(xp, input, [*lengths[:-1], _half(lengths[-1])], lengths, dtype)
        if made is not None:
            return made
        found = _transforms(xp).irfftn(input, s=lengths, axes=tuple(range(-count, 0)))
        return found.astype(dtype, copy=False)

    kernel.__module__ = __name__
    return kernel


def _check_dimensions(input: Array, count: int) -> None:
    if input.ndim < count:
        raise InvalidArgumentError(
            f"input must have at least {count} dimensions, got shape {list(input.shape)}"
        )


def _lengths(fft_length: Array, count: int) -> list[int]:
    check_shape(fft_length, [count], "fft_length")
    lengths = list(integers(fft_length))
    if min(lengths) < 0:
        raise InvalidArgumentError(f"fft_length must not be negative, got {lengths}")
    return lengths


def _half(length: int) -> int:
    return length // 2 + 1 if length else 0


def _empty(xp: Any, input: Array, needed: list[int], sizes: list[int], dtype: Any) -> Array | None:
    """Return the result where there is nothing to transform, None where there is.

    Raises:
        InvalidArgumentError: if the input is too small.
    """
    _check_dimensions(input, len(sizes))
    shape = (*input.shape[: input.ndim - len(sizes)], *sizes)
    if not input.size or 0 in sizes:
        return xp.zeros(shape, dtype)
    last = input.shape[-len(sizes) :]
    if any(size < least for size, least in zip(last, needed, strict=True)):
        raise InvalidArgumentError(
            f"the last dimensions of input must be at least {needed}, got shape {list(input.shape)}"
        )
    return None


for _count, _name in ((1, "FFT"), (2, "FFT2D"), (3, "FFT3D")):
    KERNELS.plain(_name)(_complex("fftn", _count))
    KERNELS.plain(f"I{_name}")(_complex("ifftn", _count))
    KERNELS.plain(f"R{_name}")(_forward(_count))
    KERNELS.plain(f"IR{_name}")(_backward(_count))
