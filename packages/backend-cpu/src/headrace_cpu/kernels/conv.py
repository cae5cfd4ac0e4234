"""Kernels of convolution: matrix products of the windows of images with the filter.

Windows are copied, a block of them at a time, into the rows of a matrix, small enough to stay in
the cache until BLAS has multiplied it. Images with few channels give rows of short runs, which are
slow to copy; their blocks are filled by columns instead, each a run along an image's rows.

References:
    K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
    processing, 2006, https://inria.hal.science/inria-00112631
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace.extend.ops import Padding
from headrace.extend.records import dataclass
from headrace_cpu.kernels.numeric import (
    Array,
    check_rank,
    check_shape,
    dimensions,
    narrowed,
    widened,
)
from headrace_cpu.kernels.windows import (
    Windows,
    channels_last,
    laid_out,
    laid_out_sizes,
    lay_windows,
)

KERNELS = KernelTable()

# About the second-level cache of a processor; other devices take larger blocks.
_HOST_BLOCK_BYTES = 1 << 20
_DEVICE_BLOCK_BYTES = 1 << 28
# Runs of fewer elements than this are slower to copy than columns.
_SHORT_RUN = 16


@dataclass(frozen=True, slots=True)
class _Block:
    """Some of the windows: ``top`` to ``bottom`` along the first axis, of some images."""

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
        self.depth = math.prod(windows.sizes) * channels
        run = channels * (windows.sizes[-1] if windows.dilations[-1] == 1 else 1)
        self._by_column = run < _SHORT_RUN
        self._images = images
        limit = _HOST_BLOCK_BYTES if xp is np else _DEVICE_BLOCK_BYTES
        # Windows in one row, which is all that has one place along the first axis.
        self._across = math.prod(windows.out[1:])
        row_bytes = max(1, self._across * self.depth * dtype.itemsize)
        rows = max(1, limit // row_bytes)
        self._per_block = max(1, rows // windows.out[0])
        # Blocks of one size: a short last one would cost as much in time as it saves in memory.
        self._rows = -(-windows.out[0] // -(-windows.out[0] // rows))
        size = min(self._per_block, images) * self._rows * self._across * self.depth
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
        """Return the view ``[n, *out, *sizes, c]`` of padded images ``[n, *padded, c]``."""
        n, *axes, c = padded.strides
        w = self.windows
        # Where there is but one, its distance to the next may be larger than any array.
        steps = [a * s if n > 1 else 0 for a, s, n in zip(axes, w.strides, w.out, strict=True)]
        offsets = [
            a * d if n > 1 else 0 for a, d, n in zip(axes, w.dilations, w.sizes, strict=True)
        ]
        return self.xp.lib.stride_tricks.as_strided(
            padded,
            (padded.shape[0], *self.windows.out, *self.windows.sizes, self.channels),
            (n, *steps, *offsets, c),
        )

    def place(self, block: _Block) -> tuple[Array, Array]:
        """Return room for a block, as [rows, depth] and as ``[n, r, *out[1:], *sizes, c]``."""
        shape = (block.last - block.first, block.bottom - block.top, *self.windows.out[1:])
        window = (*self.windows.sizes, self.channels)
        count = shape[0] * shape[1] * self._across
        room = self._scratch[: count * self.depth]
        if self._by_column:
            ahead = len(window)
            order = (*range(ahead, ahead + len(shape)), *range(ahead))
            parts = room.reshape((*window, *shape)).transpose(order)
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
    """Return the rows of an array ``[n, *out, channels]`` that belong to a block."""
    part = array[block.first : block.last, block.top : block.bottom]
    return part.reshape((-1, array.shape[-1]))


def _filter_matrix(filter: Array) -> Array:
    """Return a filter as a matrix [window, out]."""
    return widened(filter).reshape((math.prod(filter.shape[:-1]), filter.shape[-1]))


def _groups(channels: int, filter_shape: Sequence[int]) -> int:
    """Return into how many groups the channels of an input fall.

    Raises:
        ValueError: if a filter of this shape does not fit.
    """
    takes, gives = filter_shape[-2:]
    if channels == takes:
        return 1
    if not takes or not channels or channels % takes:
        raise ValueError(
            f"the input has {channels} channels, which is no multiple of the {takes} that a "
            f"filter of shape {list(filter_shape)} takes; a filter is [..., in, out]"
        )
    groups = channels // takes
    if gives % groups:
        raise ValueError(
            f"a filter of shape {list(filter_shape)} gives {gives} channels, which must be a "
            f"multiple of the {groups} groups of the {channels} channels of the input"
        )
    return groups


def _forward(xp: Any, windows: Windows, source: Array, filter_: Array, out: Array) -> None:
    """Write the convolution of images with a filter [window, out] into ``out``."""
    columns = _Columns(xp, windows, source.shape[0], source.shape[-1], filter_.dtype)
    for first, last in columns.image_blocks():
        view = columns.view(_padded(xp, windows, source[first:last]))
        for block in columns.blocks(first, last):
            xp.matmul(columns.gather(view, block), filter_, out=_rows(out, block))


@KERNELS.plain("Conv2D")
@KERNELS.plain("Conv3D")
def conv(
    xp: Any,
    images: Array,
    filter: Array,
    *,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Array:
    """Convolve."""
    check_rank(images, len(data_format), "input")
    check_rank(filter, len(data_format), "filter")
    source = channels_last(images, data_format)
    groups = _groups(source.shape[-1], filter.shape)
    windows = lay_windows(source.shape[1:-1], filter.shape[:-2], strides, dilations, padding)
    filter_ = widened(filter)
    out = xp.empty((source.shape[0], *windows.out, filter.shape[-1]), filter_.dtype)
    if not out.size or not filter_.size:
        out[...] = 0
    elif groups == 1:
        _forward(xp, windows, source, _filter_matrix(filter_), out)
    elif filter.shape[-2] == 1:
        _forward_by_channel(xp, windows, source, filter_, out)
    else:
        for mine, theirs in _group_slices(groups, filter.shape):
            part = xp.empty((*out.shape[:-1], filter.shape[-1] // groups), out.dtype)
            _forward(xp, windows, source[..., mine], _filter_matrix(filter_[..., theirs]), part)
            out[..., theirs] = part
    return laid_out(narrowed(out, images.dtype), data_format)


def _group_slices(groups: int, filter_shape: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """Yield for each group its channels in the input and in the output."""
    takes, gives = filter_shape[-2], filter_shape[-1] // groups
    for group in range(groups):
        yield (
            slice(group * takes, (group + 1) * takes),
            slice(group * gives, (group + 1) * gives),
        )


# With one channel in each group a product of matrices would have a row of them: elements of
# windows are multiplied as they are instead. Arrays then are [n, *out, groups, gives].


def _forward_by_channel(
    xp: Any, windows: Windows, source: Array, filter_: Array, out: Array
) -> None:
    channels = source.shape[-1]
    split = out.reshape((*out.shape[:-1], channels, -1))
    weights = filter_.reshape((*filter_.shape[:-2], channels, -1))
    out[...] = 0
    for first, last in _image_blocks(xp, source, out):
        padded = windows.pad(xp, widened(source[first:last]), 0.0)
        for place in windows.places:
            part = windows.tap(padded, place)
            split[first:last] += part[..., None] * weights[place]


def _image_blocks(xp: Any, source: Array, out: Array) -> Iterator[tuple[int, int]]:
    """Yield the first and last image of blocks that stay in the cache together."""
    images = source.shape[0]
    limit = _HOST_BLOCK_BYTES if xp is np else _DEVICE_BLOCK_BYTES
    size = max(1, (source.size + out.size) // images * out.dtype.itemsize)
    step = max(1, limit // size)
    for first in range(0, images, step):
        yield first, min(first + step, images)


@KERNELS.plain("Conv2DBackpropFilter")
@KERNELS.plain("Conv3DBackpropFilter")
def conv_backprop_filter(
    xp: Any,
    images: Array,
    filter_sizes: Array,
    grad: Array,
    *,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Array:
    """Return the gradient with respect to the filter."""
    check_rank(images, len(data_format), "input")
    shape = _sized(filter_sizes, data_format, "filter_sizes")
    source = channels_last(images, data_format)
    groups = _groups(source.shape[-1], shape)
    windows = lay_windows(source.shape[1:-1], shape[:-2], strides, dilations, padding)
    outer = _checked_grad(grad, source.shape[0], windows, shape[-1], data_format)
    total = xp.zeros((math.prod(shape[:-1]), shape[-1]), widened(images[:0]).dtype)
    if not outer.size or not total.size:
        pass
    elif groups == 1:
        _to_taps(xp, windows, source, outer, total)
    elif shape[-2] == 1:
        _to_taps_by_channel(xp, windows, source, outer, total.reshape(shape))
    else:
        for mine, theirs in _group_slices(groups, shape):
            part = xp.zeros((total.shape[0], shape[-1] // groups), total.dtype)
            _to_taps(xp, windows, source[..., mine], outer[..., theirs], part)
            total[:, theirs] = part
    return narrowed(total, images.dtype).reshape(shape)


def _to_taps(xp: Any, windows: Windows, source: Array, outer: Array, total: Array) -> None:
    """Add the gradient for a filter [window, out] to ``total``."""
    columns = _Columns(xp, windows, source.shape[0], source.shape[-1], total.dtype)
    for first, last in columns.image_blocks():
        view = columns.view(_padded(xp, windows, source[first:last]))
        for block in columns.blocks(first, last):
            total += xp.matmul(columns.gather(view, block).T, widened(_rows(outer, block)))


def _to_taps_by_channel(
    xp: Any, windows: Windows, source: Array, outer: Array, total: Array
) -> None:
    channels = source.shape[-1]
    weights = total.reshape((*total.shape[:-2], channels, -1))
    split = widened(outer).reshape((*outer.shape[:-1], channels, -1))
    axes = tuple(range(outer.ndim - 1))
    for first, last in _image_blocks(xp, source, outer):
        padded = windows.pad(xp, widened(source[first:last]), 0.0)
        for place in windows.places:
            part = windows.tap(padded, place)
            weights[place] += (part[..., None] * split[first:last]).sum(axes)


@KERNELS.plain("Conv2DBackpropInput")
@KERNELS.plain("Conv3DBackpropInput")
def conv_backprop_input(
    xp: Any,
    input_sizes: Array,
    filter: Array,
    grad: Array,
    *,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Array:
    """Return the gradient with respect to the input."""
    check_rank(filter, len(data_format), "filter")
    shape = _sized(input_sizes, data_format, "input_sizes")
    n, image, channels = shape[0], shape[1:-1], shape[-1]
    if data_format.startswith("NC"):
        image, channels = shape[2:], shape[1]
    groups = _groups(channels, filter.shape)
    windows = lay_windows(image, filter.shape[:-2], strides, dilations, padding)
    outer = _checked_grad(grad, n, windows, filter.shape[-1], data_format)
    _check_stretch(image, windows)
    filter_ = widened(filter)
    out = xp.zeros((n, *image, channels), filter_.dtype)
    if not out.size or not outer.size:
        pass
    elif groups == 1:
        _to_activations(xp, windows, _filter_matrix(filter_), outer, out)
    elif filter.shape[-2] == 1:
        _to_activations_by_channel(xp, windows, filter_, outer, out)
    else:
        for mine, theirs in _group_slices(groups, filter.shape):
            part = xp.zeros((*out.shape[:-1], filter.shape[-2]), out.dtype)
            _to_activations(
                xp, windows, _filter_matrix(filter_[..., theirs]), outer[..., theirs], part
            )
            out[..., mine] = part
    return laid_out(narrowed(out, filter.dtype), data_format)


# Strides may make a large image of a small one; beyond this it is taken for a mistake.
_MOST_PIXELS = 1 << 30
_MOST_STRETCH = 1 << 12


def _check_stretch(image: Sequence[int], windows: Windows) -> None:
    pixels = math.prod(image)
    touched = math.prod(windows.out) * math.prod(windows.sizes)
    if pixels > _MOST_PIXELS and pixels > _MOST_STRETCH * touched:
        raise ValueError(f"input_sizes {list(image)} are too large for {list(windows.out)} windows")


def _to_activations(xp: Any, windows: Windows, filter_: Array, outer: Array, out: Array) -> None:
    """Add the gradient for images, of a filter [window, out], to ``out``."""
    n, channels = out.shape[0], out.shape[-1]
    columns = _Columns(xp, windows, n, channels, filter_.dtype)
    for first, last in columns.image_blocks():
        images = out[first:last]
        if windows.has_padding:
            images = xp.zeros(windows.padded_shape(last - first, channels), filter_.dtype)
        for block in columns.blocks(first, last):
            matrix, parts = columns.place(block)
            part = widened(_rows(outer, block))
            if matrix.flags.c_contiguous:
                xp.matmul(part, filter_.T, out=matrix)
            else:
                xp.matmul(filter_, part.T, out=matrix.T)
            for place in windows.places:
                target = windows.tap(images, place)[:, block.top : block.bottom]
                target += parts[(..., *place, slice(None))]
        if windows.has_padding:
            out[first:last] = windows.inside(images)


def _to_activations_by_channel(
    xp: Any, windows: Windows, filter_: Array, outer: Array, out: Array
) -> None:
    channels = out.shape[-1]
    weights = filter_.reshape((*filter_.shape[:-2], channels, -1))
    split = widened(outer).reshape((*outer.shape[:-1], channels, -1))
    for first, last in _image_blocks(xp, out, outer):
        images = xp.zeros(windows.padded_shape(last - first, channels), out.dtype)
        for place in windows.places:
            target = windows.tap(images, place)
            target += (split[first:last] * weights[place]).sum(-1)
        out[first:last] = windows.inside(images)


def _sized(sizes: Array, data_format: str, label: str) -> tuple[int, ...]:
    dims = dimensions(sizes)
    if len(dims) != len(data_format):
        raise ValueError(f"{label} must have {len(data_format)} elements, got {list(dims)}")
    return dims


def _checked_grad(
    grad: Array, images: int, windows: Windows, channels: int, data_format: str
) -> Array:
    """Return the gradient of a convolution's output as ``[n, *out, channels]``."""
    check_shape(grad, laid_out_sizes(images, windows.out, channels, data_format), "out_backprop")
    return channels_last(grad, data_format)
