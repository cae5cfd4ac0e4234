"""Kernels of convolution: matrix products of the windows of images with the filter.

Windows are copied, a block of them at a time, into the rows of a matrix, small enough to stay in
the cache until BLAS has multiplied it. Images with few channels give rows of short runs, which are
slow to copy; their blocks are filled by columns instead, each a run along an image's rows.

References:
    K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
    processing, 2006, https://inria.hal.science/inria-00112631
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    check_rank,
    check_shape,
    dimensions,
    narrowed,
    widened,
)
from headrace_cpu.kernels.windows import Windows, channels_last, laid_out, lay_windows

KERNELS = KernelTable()

# About the second-level cache of a processor; other devices take larger blocks.
_HOST_BLOCK_BYTES = 1 << 20
_DEVICE_BLOCK_BYTES = 1 << 28
# Runs of fewer elements than this are slower to copy than columns.
_SHORT_RUN = 16


@dataclass(frozen=True, slots=True)
class _Block:
    """Some of the windows: rows ``top`` to ``bottom`` of images ``first`` to ``last``."""

    first: int
    last: int
    top: int
    bottom: int


class _Columns:
    """The matrix of windows of some images, made in blocks.

    Attributes:
        windows: Where the windows lie.
        channels: Of the images.
        depth: Elements in one window.
    """

    def __init__(self, xp: Any, windows: Windows, images: int, channels: int, dtype: Any) -> None:
        self.xp = xp
        self.windows = windows
        self.channels = channels
        self.depth = windows.sizes[0] * windows.sizes[1] * channels
        run = channels * (windows.sizes[1] if windows.dilations[1] == 1 else 1)
        self._by_column = run < _SHORT_RUN
        self._images = images
        limit = _HOST_BLOCK_BYTES if xp is np else _DEVICE_BLOCK_BYTES
        row_bytes = max(1, windows.out[1] * self.depth * dtype.itemsize)
        rows = max(1, limit // row_bytes)
        self._per_block = max(1, rows // windows.out[0])
        # Blocks of one size: a short last one would cost as much in time as it saves in memory.
        self._rows = -(-windows.out[0] // -(-windows.out[0] // rows))
        size = min(self._per_block, images) * self._rows * windows.out[1] * self.depth
        self._scratch = xp.empty((size,), dtype)

    def image_blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last image of each block of images."""
        for first in range(0, self._images, self._per_block):
            yield first, min(first + self._per_block, self._images)

    def blocks(self, first: int, last: int) -> Iterator[_Block]:
        """Yield the blocks of windows of some images."""
        for top in range(0, self.windows.out[0], self._rows):
            yield _Block(first, last, top, min(top + self._rows, self.windows.out[0]))

    def view(self, padded: Array) -> Array:
        """Return the view [n, *out, *sizes, c] of padded images [n, *padded, c]."""
        n, y, x, c = padded.strides
        (down, across), (row, column) = self.windows.strides, self.windows.dilations
        return self.xp.lib.stride_tricks.as_strided(
            padded,
            (padded.shape[0], *self.windows.out, *self.windows.sizes, self.channels),
            (n, y * down, x * across, y * row, x * column, c),
        )

    def place(self, block: _Block) -> tuple[Array, Array]:
        """Return room for a block, as [rows, depth] and as [n, r, ow, fh, fw, c]."""
        shape = (block.last - block.first, block.bottom - block.top, self.windows.out[1])
        window = (*self.windows.sizes, self.channels)
        count = shape[0] * shape[1] * shape[2]
        room = self._scratch[: count * self.depth]
        if self._by_column:
            parts = room.reshape((*window, *shape)).transpose(3, 4, 5, 0, 1, 2)
            return room.reshape((self.depth, count)).T, parts
        return room.reshape((count, self.depth)), room.reshape((*shape, *window))

    def gather(self, view: Array, block: _Block) -> Array:
        """Return the windows of a block as the rows of a matrix."""
        part = view[:, block.top : block.bottom]
        if self.depth == self.channels and part.flags.c_contiguous:
            return part.reshape((-1, self.depth))
        matrix, parts = self.place(block)
        parts[...] = part
        return matrix


def _padded(xp: Any, windows: Windows, images: Array) -> Array:
    """Return images with their padding, the elements of each pixel beside one another."""
    return xp.ascontiguousarray(windows.pad(xp, widened(images), 0.0))


def _rows(array: Array, block: _Block) -> Array:
    """Return the rows [rows, channels] of an array [n, *out, channels] that belong to a block."""
    part = array[block.first : block.last, block.top : block.bottom]
    return part.reshape((-1, array.shape[3]))


@KERNELS.plain("Conv2D")
def conv2d(
    xp: Any,
    images: Array,
    filter: Array,
    *,
    strides: tuple[int, int],
    padding: str,
    data_format: str,
    dilations: tuple[int, int],
) -> Array:
    """Convolve."""
    check_rank(images, 4, "input")
    check_rank(filter, 4, "filter")
    source = channels_last(images, data_format)
    _check_channels(source.shape[3], filter.shape)
    windows = lay_windows(source.shape[1:3], filter.shape[:2], strides, dilations, padding)
    taps = _taps(filter)
    out = xp.empty((source.shape[0], *windows.out, filter.shape[3]), taps.dtype)
    if not out.size or not taps.size:
        out[...] = 0
        return laid_out(narrowed(out, images.dtype), data_format)
    columns = _Columns(xp, windows, source.shape[0], source.shape[3], taps.dtype)
    for first, last in columns.image_blocks():
        view = columns.view(_padded(xp, windows, source[first:last]))
        for block in columns.blocks(first, last):
            xp.matmul(columns.gather(view, block), taps, out=_rows(out, block))
    return laid_out(narrowed(out, images.dtype), data_format)


def _taps(filter: Array) -> Array:
    """Return a filter as a matrix [window, out]."""
    height, width, channels, out = filter.shape
    return widened(filter).reshape((height * width * channels, out))


def _check_channels(channels: int, filter_shape: Any) -> None:
    if channels != filter_shape[2]:
        raise ValueError(
            f"the input has {channels} channels, the filter {list(filter_shape)} takes "
            f"{filter_shape[2]}; a filter is [height, width, in, out]"
        )


@KERNELS.plain("Conv2DBackpropFilter")
def conv2d_backprop_filter(
    xp: Any,
    images: Array,
    filter_sizes: Array,
    grad: Array,
    *,
    strides: tuple[int, int],
    padding: str,
    data_format: str,
    dilations: tuple[int, int],
) -> Array:
    """Return the gradient with respect to the filter."""
    check_rank(images, 4, "input")
    shape = _four(dimensions(filter_sizes), "filter_sizes")
    source = channels_last(images, data_format)
    _check_channels(source.shape[3], shape)
    windows = lay_windows(source.shape[1:3], shape[:2], strides, dilations, padding)
    outer = _checked_grad(grad, source.shape[0], windows, shape[3], data_format)
    total = xp.zeros((shape[0] * shape[1] * shape[2], shape[3]), widened(images[:0]).dtype)
    if outer.size and total.size:
        columns = _Columns(xp, windows, source.shape[0], source.shape[3], total.dtype)
        for first, last in columns.image_blocks():
            view = columns.view(_padded(xp, windows, source[first:last]))
            for block in columns.blocks(first, last):
                total += xp.matmul(columns.gather(view, block).T, widened(_rows(outer, block)))
    return narrowed(total, images.dtype).reshape(shape)


@KERNELS.plain("Conv2DBackpropInput")
def conv2d_backprop_input(
    xp: Any,
    input_sizes: Array,
    filter: Array,
    grad: Array,
    *,
    strides: tuple[int, int],
    padding: str,
    data_format: str,
    dilations: tuple[int, int],
) -> Array:
    """Return the gradient with respect to the input."""
    check_rank(filter, 4, "filter")
    shape = _four(dimensions(input_sizes), "input_sizes")
    n, height, width, channels = (
        (shape[0], shape[2], shape[3], shape[1]) if data_format == "NCHW" else shape
    )
    _check_channels(channels, filter.shape)
    windows = lay_windows((height, width), filter.shape[:2], strides, dilations, padding)
    outer = _checked_grad(grad, n, windows, filter.shape[3], data_format)
    taps = _taps(filter)
    out = xp.zeros((n, height, width, channels), taps.dtype)
    if not out.size or not outer.size:
        return laid_out(narrowed(out, filter.dtype), data_format)
    columns = _Columns(xp, windows, n, channels, taps.dtype)
    for first, last in columns.image_blocks():
        images = out[first:last]
        if windows.has_padding:
            images = xp.zeros((last - first, *windows.padded, channels), taps.dtype)
        for block in columns.blocks(first, last):
            matrix, parts = columns.place(block)
            part = widened(_rows(outer, block))
            if matrix.flags.c_contiguous:
                xp.matmul(part, taps.T, out=matrix)
            else:
                xp.matmul(taps, part.T, out=matrix.T)
            for i in range(windows.sizes[0]):
                for j in range(windows.sizes[1]):
                    target = windows.tap(images, i, j)[:, block.top : block.bottom]
                    target += parts[:, :, :, i, j]
        if windows.has_padding:
            out[first:last] = windows.inside(images)
    return laid_out(narrowed(out, filter.dtype), data_format)


def _four(dims: tuple[int, ...], label: str) -> tuple[int, int, int, int]:
    if len(dims) != 4:
        raise ValueError(f"{label} must have 4 elements, got {list(dims)}")
    return dims[0], dims[1], dims[2], dims[3]


def _checked_grad(
    grad: Array, images: int, windows: Windows, channels: int, data_format: str
) -> Array:
    """Return the gradient of a convolution's output as [n, oh, ow, out]."""
    expected = (images, *windows.out, channels)
    if data_format == "NCHW":
        expected = (images, channels, *windows.out)
    check_shape(grad, expected, "out_backprop")
    return channels_last(grad, data_format)
