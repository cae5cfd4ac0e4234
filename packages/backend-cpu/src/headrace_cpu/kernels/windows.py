"""Windows over images of any number of axes: where they lie, and images with their padding."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import product
from typing import Any

from headrace.extend.ops import Padding, padding_of, window_padding
from headrace.extend.records import dataclass
from headrace_cpu.kernels.numeric import Array

# Images may be padded to this many elements, or to so many times their own size; more is refused
# before memory is taken for it.
_MOST_ELEMENTS = 1 << 26
_MOST_TIMES = 16
# Geometries that are kept, and views of each: a step has the same ones again and again.
_KEPT = 256
_KEPT_TAPS = 1024


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one size over images of one size; all tuples are by spatial axis.

    Attributes:
        sizes: Of a window, in elements.
        strides: Steps between windows.
        dilations: Steps between the elements of a window.
        out: How many windows there are.
        before: Padding in front.
        image: The size of an image.
        padded: The size of an image with its padding.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    out: tuple[int, ...]
    before: tuple[int, ...]
    image: tuple[int, ...]
    padded: tuple[int, ...]
    _taps: dict[tuple[int, ...], tuple[slice, ...]] = field(default_factory=dict, compare=False)

    @property
    def has_padding(self) -> bool:
        """Whether any window reaches beyond the image."""
        return self.padded != self.image

    @property
    def places(self) -> list[tuple[int, ...]]:
        """The places of the elements in a window, in order."""
        return list(product(*map(range, self.sizes)))

    def tap(self, images: Array, place: tuple[int, ...]) -> Array:
        """Return the view of padded images that holds one element of every window.

        Args:
            images: ``[n, *padded, c]``.
            place: Of the element in its window.

        Returns:
            ``[n, *out, c]``.
        """
        index = self._taps.get(place)
        if index is None:
            index = self._tap_index(place)
            if len(self._taps) < _KEPT_TAPS:
                self._taps[place] = index
        return images[index]

    def _tap_index(self, place: tuple[int, ...]) -> tuple[slice, ...]:
        parts = [slice(None)]
        for at, step, stride, count in zip(
            place, self.dilations, self.strides, self.out, strict=True
        ):
            first = at * step
            parts.append(slice(first, first + (count - 1) * stride + 1 if count else first, stride))
        return tuple(parts)

    def inside(self, images: Array) -> Array:
        """Return the view of padded images without the padding."""
        parts = [slice(a, a + n) for a, n in zip(self.before, self.image, strict=True)]
        return images[(slice(None), *parts)]

    def padded_shape(self, images: int, channels: int) -> tuple[int, ...]:
        """Return the shape of images with their padding.

        Raises:
            ValueError: if it is many times larger than that of the images.
        """
        shape = (images, *self.padded, channels)
        _check_padded((images, *self.image, channels), shape)
        return shape

    def pad(self, xp: Any, images: Array, border: float) -> Array:
        """Return images with their padding; without any, the images themselves.

        Args:
            xp: The array module.
            images: ``[n, *image, c]``.
            border: What the padding holds.
        """
        if not self.has_padding:
            return images
        shape = self.padded_shape(images.shape[0], images.shape[-1])
        padded = xp.full(shape, border, images.dtype) if border else xp.zeros(shape, images.dtype)
        self.inside(padded)[...] = images
        return padded


def _check_padded(image: Sequence[int], padded: Sequence[int]) -> None:
    if math.prod(padded) > max(_MOST_ELEMENTS, _MOST_TIMES * math.prod(image)):
        raise ValueError(
            f"images of shape {list(image)} would be padded to {list(padded)}, many times their "
            "size; take smaller windows, dilations or padding"
        )


def lay_windows(
    image: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int] | None,
    padding: Padding,
) -> Windows:
    """Return the windows over an image.

    Raises:
        ValueError: if a window does not fit into an image that is not padded, or the padding is
            many times larger than the image.
    """
    rule = padding if isinstance(padding, str) else tuple(map(tuple, padding))
    steps = (1,) * len(sizes) if dilations is None else tuple(dilations)
    return _laid(tuple(image), tuple(sizes), tuple(strides), steps, rule)


@functools.lru_cache(_KEPT)
def _laid(
    image: tuple[int, ...],
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    steps: tuple[int, ...],
    padding: Padding,
) -> Windows:
    out, before, padded = [], [], []
    for axis, size in enumerate(image):
        rule = padding_of(padding, axis)
        reach = (sizes[axis] - 1) * steps[axis] + 1
        room = size if isinstance(rule, str) else size + sum(rule)
        if rule != "SAME" and room < reach:
            raise ValueError(
                f"a window that reaches over {reach} elements does not fit into an image of shape "
                f"{list(image)}"
            )
        count, head, tail = window_padding(size, sizes[axis], strides[axis], steps[axis], rule)
        out.append(count)
        before.append(head)
        padded.append(head + size + tail)
    _check_padded(image, padded)
    return Windows(sizes, strides, steps, tuple(out), tuple(before), image, tuple(padded))


def is_refused(images: Sequence[int], sizes: Sequence[int], attrs: Mapping[str, Any]) -> bool:
    """Whether windows over images [n, ..., c] are refused, as those that need vast padding are."""
    try:
        laid = lay_windows(
            *(images[1:-1], sizes, attrs["strides"]), attrs.get("dilations"), attrs["padding"]
        )
        laid.padded_shape(images[0], images[-1])
    except ValueError:
        return True
    return False


def channels_last(images: Array, data_format: str) -> Array:
    """Return images of a layout as [n, ..., c], sharing memory."""
    if not data_format.startswith("NC"):
        return images
    return images.transpose(0, *range(2, images.ndim), 1)


def laid_out(images: Array, data_format: str) -> Array:
    """Return images [n, ..., c] in a layout, sharing memory."""
    if not data_format.startswith("NC"):
        return images
    return images.transpose(0, images.ndim - 1, *range(1, images.ndim - 1))


def laid_out_sizes(n: int, sizes: Sequence[int], c: int, data_format: str) -> tuple[int, ...]:
    """Return the shape of images in a layout."""
    return (n, c, *sizes) if data_format.startswith("NC") else (n, *sizes, c)
