"""Kernels of pooling: windows are taken element by element, all windows at once.

Maxima and sums of boxes are those of rows of maxima and sums of columns, so axis follows axis, and
a window of k x k elements takes 2 k passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace.extend.ops import Padding
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


def _lay(
    images: Array,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    dilations: Sequence[int] | None = None,
) -> Windows:
    return lay_windows(images.shape[1:-1], ksize, strides, dilations, padding)


def _folded(windows: Windows, padded: Array, combine: Callable[[Array, Array], Array]) -> Array:
    """Combine the elements of each window, one axis after the other."""
    if not padded.size:
        # NumPy takes its time with many rows of nothing.
        return padded.reshape((padded.shape[0], *windows.out, padded.shape[-1]))
    for axis in range(len(windows.sizes)):
        first, *rest = (_along(windows, padded, axis, at) for at in _used(windows, axis))
        for part in rest:
            first = combine(first, part)
        padded = first
    return padded


def _along(windows: Windows, images: Array, axis: int, at: int) -> Array:
    """Return the view of one element of each window along one axis."""
    first, stride = at * windows.dilations[axis], windows.strides[axis]
    count = windows.out[axis]
    part = slice(first, first + (count - 1) * stride + 1 if count else first, stride)
    return images[(slice(None),) * (axis + 1) + (part,)]


def _used(windows: Windows, axis: int) -> Sequence[int]:
    """Return the places in a window along one axis that are inside the image in some window."""
    size, step, stride = windows.sizes[axis], windows.dilations[axis], windows.strides[axis]
    before, image = windows.before[axis], windows.image[axis]
    # The last window's place `at` lies at this distance behind the first one's.
    reach = (windows.out[axis] - 1) * stride
    low = max(0, -(-(before - reach) // step))
    high = min(size, -(-(before + image) // step))
    return range(low, high) if low < high else range(1)


def _places(windows: Windows) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for axis in range(len(windows.sizes)):
        found = [(*place, at) for place in found for at in _used(windows, axis)]
    return found


def _lowest(dtype: Any) -> Any:
    """Return what loses against every other value of a dtype."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


@KERNELS.plain("MaxPool")
def max_pool(
    xp: Any,
    value: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Return the maximum of each window; NaN where it holds one."""
    check_rank(value, len(data_format), "input")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding, dilations)
    largest = _largest(xp, windows, windows.pad(xp, images, _lowest(images.dtype)))
    return laid_out(narrowed(largest, value.dtype), data_format)


def _largest(xp: Any, windows: Windows, padded: Array) -> Array:
    # Padding loses against all numbers.
    return _folded(windows, padded, xp.maximum)


def _hits(xp: Any, windows: Windows, images: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield each place in a window, with ``[n, *out, c]``: where the first maximum is there.

    NaN counts as the maximum, and padding never does, not even where all numbers are -inf.
    """
    padded = windows.pad(xp, images, _lowest(images.dtype))
    largest = _largest(xp, windows, padded)
    free = xp.ones(largest.shape, np.bool_)
    undefined = xp.isnan(largest) if images.dtype.kind == "f" else None
    # Looking first is quicker on the host; on other devices it would wait for them.
    has_nan = undefined is not None and (xp is not np or undefined.any())
    if windows.has_padding:
        inside = windows.pad(xp, xp.ones((1, *windows.image, 1), np.bool_), 0.0)
    for place in _places(windows):
        rival = windows.tap(padded, place)
        hit = rival == largest
        if has_nan:
            hit |= undefined & xp.isnan(rival)
        if windows.has_padding:
            hit &= windows.tap(inside, place)
        hit &= free
        free ^= hit
        yield place, hit


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
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Add the gradient of each window at its first maximum."""
    check_rank(value, len(data_format), "input")
    check_rank(grad, len(data_format), "the gradient")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding, dilations)
    outer = widened(channels_last(grad, data_format))
    check_shape(outer, (images.shape[0], *windows.out, images.shape[-1]), "the gradient")
    total = xp.zeros(windows.padded_shape(images.shape[0], images.shape[-1]), outer.dtype)
    for place, hit in _hits(xp, windows, images):
        target = windows.tap(total, place)
        target += _where(hit, outer).view(outer.dtype)
    return laid_out(narrowed(windows.inside(total), value.dtype), data_format)


@KERNELS.plain("MaxPoolGradGrad")
def max_pool_grad_grad(
    xp: Any,
    value: Array,
    grad: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Read ``grad`` at the first maximum of each window of ``value``."""
    check_rank(value, len(data_format), "input")
    check_rank(grad, len(data_format), "the gradient")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding, dilations)
    outer = channels_last(grad, data_format)
    check_shape(outer, images.shape, "the gradient")
    padded = windows.pad(xp, outer, 0.0)
    shape = (images.shape[0], *windows.out, images.shape[-1])
    read = xp.zeros(shape, np.dtype(f"int{8 * outer.dtype.itemsize}"))
    for place, hit in _hits(xp, windows, images):
        read |= _where(hit, windows.tap(padded, place))
    return laid_out(read.view(outer.dtype), data_format)


@KERNELS.plain("MaxPoolWithArgmax")
def max_pool_with_argmax(
    xp: Any,
    value: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    output_type: DType,
    include_batch_in_index: bool,
) -> tuple[Array, Array]:
    """Return the maximum of each window, and its place in the flattened images."""
    check_rank(value, len(data_format), "input")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding)
    largest = _largest(xp, windows, windows.pad(xp, images, _lowest(images.dtype)))
    places = xp.zeros((images.shape[0], *windows.out, images.shape[-1]), np.int64)
    for place, hit in _hits(xp, windows, images):
        flat: Array = np.zeros((1,), np.int64)
        for axis, at in enumerate(place):
            start = at - windows.before[axis]
            along = np.arange(windows.out[axis], dtype=np.int64) * windows.strides[axis] + start
            flat = (flat[:, None] * windows.image[axis] + along).reshape(-1)
        pixels = xp.asarray(flat).reshape((1, *windows.out, 1))
        places += xp.where(hit, pixels, np.int64(0))
    if include_batch_in_index:
        first = xp.arange(images.shape[0], dtype=np.int64) * math.prod(windows.image)
        places += first.reshape((-1,) + (1,) * (images.ndim - 1))
    places *= images.shape[-1]
    places += xp.arange(images.shape[-1], dtype=np.int64)
    return (
        laid_out(narrowed(largest, value.dtype), data_format),
        laid_out(places.astype(output_type.numpy), data_format),
    )


def _counts(windows: Windows, axis: int) -> Array:
    """Return how many elements of each window along an axis are no padding, at least 1."""
    step = windows.dilations[axis]
    start = np.arange(windows.out[axis]) * windows.strides[axis] - windows.before[axis]
    low = np.maximum(0, -(start // step))
    high = np.minimum(windows.sizes[axis], -((start - windows.image[axis]) // step))
    return np.maximum(1, high - low)


def _shared(xp: Any, windows: Windows, sums: Array) -> Array:
    """Return sums over windows, or what is to be shared by their elements, by their counts."""
    dtype = sums.dtype
    if not windows.has_padding:
        return sums / dtype.type(math.prod(windows.sizes))
    for axis in range(len(windows.sizes)):
        counts = _counts(windows, axis).astype(dtype)
        shape = (-1,) + (1,) * (len(windows.sizes) - axis)
        sums = sums / xp.asarray(counts).reshape(shape)
    return sums


@KERNELS.plain("AvgPool")
def avg_pool(
    xp: Any,
    value: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Return the mean of each window."""
    check_rank(value, len(data_format), "input")
    images = widened(channels_last(value, data_format))
    windows = _lay(images, ksize, strides, padding, dilations)
    sums = _folded(windows, windows.pad(xp, images, 0.0), xp.add)
    return laid_out(narrowed(_shared(xp, windows, sums), value.dtype), data_format)


@KERNELS.plain("AvgPoolGrad")
def avg_pool_grad(
    xp: Any,
    input_sizes: Array,
    grad: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Spread the gradient of each window over its elements."""
    n, image, channels = _image_sizes(input_sizes, data_format)
    windows = lay_windows(image, ksize, strides, dilations, padding)
    check_shape(grad, laid_out_sizes(n, windows.out, channels, data_format), "the gradient")
    parts = _shared(xp, windows, widened(channels_last(grad, data_format)))
    windows.padded_shape(n, channels)
    # Axis by axis, the last one first: the transpose of `_folded`.
    for axis in reversed(range(len(windows.sizes))):
        shape = list(parts.shape)
        shape[axis + 1] = windows.padded[axis]
        wider = xp.zeros(shape, parts.dtype)
        for at in _used(windows, axis):
            target = _along(windows, wider, axis, at)
            target += parts
        parts = wider
    return laid_out(narrowed(windows.inside(parts), grad.dtype), data_format)


def _image_sizes(sizes: Array, data_format: str) -> tuple[int, tuple[int, ...], int]:
    """Return the number, the size and the channels of images whose shape is given."""
    dims = dimensions(sizes)
    if len(dims) != len(data_format):
        raise ValueError(f"input_sizes must have {len(data_format)} elements, got {list(dims)}")
    if data_format.startswith("NC"):
        return dims[0], dims[2:], dims[1]
    return dims[0], dims[1:-1], dims[-1]


# More elements than this in an output are taken for a mistake.
_MOST_PATCH_ELEMENTS = 1 << 30


@KERNELS.plain("ExtractPatches")
def extract_patches(
    xp: Any,
    images: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Copy the elements of each window beside one another."""
    check_rank(images, len(data_format), "input")
    windows = _lay(images, ksize, strides, padding, dilations)
    shape = (images.shape[0], *windows.out, *ksize, images.shape[-1])
    if math.prod(shape) > _MOST_PATCH_ELEMENTS:
        raise ValueError(f"patches of shape {list(shape)} are too large")
    patches = xp.zeros(shape, images.dtype)
    padded = windows.pad(xp, images, 0.0)
    for place in _places(windows):
        patches[(..., *place, slice(None))] = windows.tap(padded, place)
    return patches.reshape((*shape[: images.ndim - 1], -1)) if patches.size else _empty(patches)


def _empty(patches: Array) -> Array:
    count = (patches.ndim - 2) // 2 + 1
    return patches.reshape((*patches.shape[:count], math.prod(patches.shape[count:])))


@KERNELS.plain("ExtractPatchesGrad")
def extract_patches_grad(
    xp: Any,
    input_sizes: Array,
    grad: Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Array:
    """Add patches up where they were taken."""
    n, image, channels = _image_sizes(input_sizes, data_format)
    windows = lay_windows(image, ksize, strides, dilations, padding)
    check_shape(grad, (n, *windows.out, math.prod(ksize) * channels), "the gradient")
    patches = widened(grad).reshape((n, *windows.out, *ksize, channels))
    total = xp.zeros(windows.padded_shape(n, channels), patches.dtype)
    for place in _places(windows):
        target = windows.tap(total, place)
        target += patches[(..., *place, slice(None))]
    return narrowed(windows.inside(total), grad.dtype)
