"""Windows over images: where they lie, and images with the padding that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.ops.conv import window_padding
from headrace_cpu.kernels.numeric import Array


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one size over images of one size.

    Attributes:
        sizes: Height and width of a window, in elements.
        strides: Steps between windows.
        dilations: Steps between the elements of a window.
        out: How many windows there are, down and across.
        before: Padding above and to the left.
        image: Height and width of an image.
        padded: Height and width of an image with its padding.
    """

    sizes: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    out: tuple[int, int]
    before: tuple[int, int]
    image: tuple[int, int]
    padded: tuple[int, int]

    @property
    def has_padding(self) -> bool:
        """Whether any window reaches beyond the image."""
        return self.padded != self.image

    def tap(self, images: Array, row: int, column: int) -> Array:
        """Return the view of padded images that holds one element of every window.

        Args:
            images: [n, *padded, c].
            row: Of the element in its window.
            column: Of the element in its window.

        Returns:
            [n, *out, c].
        """
        top, left = row * self.dilations[0], column * self.dilations[1]
        bottom = top + (self.out[0] - 1) * self.strides[0] + 1
        right = left + (self.out[1] - 1) * self.strides[1] + 1
        if 0 in self.out:
            bottom, right = top, left
        return images[:, top : bottom : self.strides[0], left : right : self.strides[1]]

    def inside(self, images: Array) -> Array:
        """Return the view of padded images without the padding."""
        top, left = self.before
        return images[:, top : top + self.image[0], left : left + self.image[1]]

    def pad(self, xp: Any, images: Array, border: float) -> Array:
        """Return images with their padding; without any, the images themselves.

        Args:
            xp: The array module.
            images: [n, *image, c].
            border: What the padding holds.
        """
        if not self.has_padding:
            return images
        shape = (images.shape[0], *self.padded, images.shape[3])
        padded = xp.full(shape, border, images.dtype) if border else xp.zeros(shape, images.dtype)
        self.inside(padded)[...] = images
        return padded


def lay_windows(
    image: Sequence[int],
    sizes: Sequence[int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    padding: str,
) -> Windows:
    """Return the windows over an image.

    Raises:
        ValueError: if a window does not fit into an image that is not padded.
    """
    out, before, padded = [], [], []
    for axis in (0, 1):
        reach = (sizes[axis] - 1) * dilations[axis] + 1
        if padding == "VALID" and image[axis] < reach:
            raise ValueError(
                f"a window that reaches over {reach} elements does not fit into an image of shape "
                f"{list(image)}"
            )
        count, head, tail = window_padding(
            image[axis], sizes[axis], strides[axis], dilations[axis], padding
        )
        out.append(count)
        before.append(head)
        padded.append(head + image[axis] + tail)
    return Windows(
        (sizes[0], sizes[1]),
        strides,
        dilations,
        (out[0], out[1]),
        (before[0], before[1]),
        (image[0], image[1]),
        (padded[0], padded[1]),
    )


def channels_last(images: Array, data_format: str) -> Array:
    """Return images of a layout as [n, h, w, c], sharing memory."""
    return images.transpose(0, 2, 3, 1) if data_format == "NCHW" else images


def laid_out(images: Array, data_format: str) -> Array:
    """Return images [n, h, w, c] in a layout, sharing memory."""
    return images.transpose(0, 3, 1, 2) if data_format == "NCHW" else images
