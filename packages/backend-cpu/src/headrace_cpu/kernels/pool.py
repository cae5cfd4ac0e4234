"""Kernels of pooling: windows are compared element by element, all windows at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_rank, check_shape, narrowed, widened
from headrace_cpu.kernels.windows import Windows, channels_last, laid_out, lay_windows

KERNELS = KernelTable()


def _lay(images: Array, ksize: tuple[int, int], strides: tuple[int, int], padding: str) -> Windows:
    return lay_windows(images.shape[1:3], ksize, strides, (1, 1), padding)


@KERNELS.plain("MaxPool")
def max_pool(
    xp: Any,
    value: Array,
    *,
    ksize: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    data_format: str,
) -> Array:
    """Return the maximum of each window; NaN where it holds one."""
    check_rank(value, 4, "input")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding)
    # Padding loses against all numbers, and every window holds one.
    largest = _largest(xp, windows, windows.pad(xp, images, -np.inf))
    return laid_out(narrowed(largest, value.dtype), data_format)


def _largest(xp: Any, windows: Windows, padded: Array) -> Array:
    largest = windows.tap(padded, 0, 0)
    for row, column in _elements(windows.sizes)[1:]:
        largest = xp.maximum(largest, windows.tap(padded, row, column))
    return largest


def _elements(ksize: tuple[int, int]) -> list[tuple[int, int]]:
    return [(row, column) for row in range(ksize[0]) for column in range(ksize[1])]


def _hits(xp: Any, windows: Windows, images: Array) -> Iterator[tuple[int, int, Array]]:
    """Yield each place in a window, with [n, *out, c]: the windows whose first maximum is there.

    NaN counts as the maximum, and padding never does, not even where all numbers are -inf.
    """
    padded = windows.pad(xp, images, -np.inf)
    largest = _largest(xp, windows, padded)
    free = xp.ones(largest.shape, np.bool_)
    undefined = xp.isnan(largest)
    # Looking first is quicker on the host; on other devices it would wait for them.
    has_nan = xp is not np or undefined.any()
    if windows.has_padding:
        inside = windows.pad(xp, xp.ones((1, *windows.image, 1), np.bool_), 0.0)
    for row, column in _elements(windows.sizes):
        rival = windows.tap(padded, row, column)
        hit = rival == largest
        if has_nan:
            hit |= undefined & xp.isnan(rival)
        if windows.has_padding:
            hit &= windows.tap(inside, row, column)
        hit &= free
        free ^= hit
        yield row, column, hit


def _where(hit: Array, values: Array) -> Array:
    """Return the bits of ``values`` where ``hit`` holds, 0 elsewhere; free of branches."""
    bits = np.dtype(f"int{8 * values.dtype.itemsize}")
    return values.view(bits) & -hit.astype(bits)


@KERNELS.plain("MaxPoolGrad")
def max_pool_grad(
    xp: Any,
    value: Array,
    grad: Array,
    *,
    ksize: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    data_format: str,
) -> Array:
    """Add the gradient of each window at its first maximum."""
    check_rank(value, 4, "input")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding)
    outer = widened(channels_last(grad, data_format))
    check_shape(outer, (images.shape[0], *windows.out, images.shape[3]), "the gradient")
    total = xp.zeros((images.shape[0], *windows.padded, images.shape[3]), outer.dtype)
    for row, column, hit in _hits(xp, windows, images):
        target = windows.tap(total, row, column)
        target += _where(hit, outer).view(outer.dtype)
    return laid_out(narrowed(windows.inside(total), value.dtype), data_format)


@KERNELS.plain("MaxPoolGradGrad")
def max_pool_grad_grad(
    xp: Any,
    value: Array,
    grad: Array,
    *,
    ksize: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    data_format: str,
) -> Array:
    """Read ``grad`` at the first maximum of each window of ``value``."""
    check_rank(value, 4, "input")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding)
    outer = channels_last(grad, data_format)
    check_shape(outer, images.shape, "the gradient")
    padded = windows.pad(xp, outer, 0.0)
    shape = (images.shape[0], *windows.out, images.shape[3])
    read = xp.zeros(shape, np.dtype(f"int{8 * outer.dtype.itemsize}"))
    for row, column, hit in _hits(xp, windows, images):
        read |= _where(hit, windows.tap(padded, row, column))
    return laid_out(read.view(outer.dtype), data_format)
