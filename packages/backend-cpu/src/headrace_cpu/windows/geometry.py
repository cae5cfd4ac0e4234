"""Where the windows of a convolution or a pool lie over images with the channels last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.extend.ops import padding_of, window_padding
from headrace.extend.records import dataclass


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of images, windows and results; pairs are of height and width.

    Attributes:
        images: How many images there are.
        image: The size of an image.
        channels: Of the images.
        window: The size of a window.
        out: How many windows there are.
        strides: Steps between windows.
        dilations: Steps between the elements of a window.
        before: Padding in front; negative where the first window begins inside the image.
        filters: Channels of the result of a convolution; those of the images for a pool.
    """

    images: int
    image: tuple[int, int]
    channels: int
    window: tuple[int, int]
    out: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    before: tuple[int, int]
    filters: int

    @property
    def rows(self) -> int:
        """How many windows there are in all images."""
        return self.images * math.prod(self.out)

    @property
    def depth(self) -> int:
        """How many elements a window has."""
        return math.prod(self.window) * self.channels

    @property
    def flops(self) -> int:
        """Floating-point operations of a convolution."""
        return 2 * self.rows * self.depth * self.filters

    @property
    def is_matmul(self) -> bool:
        """Whether the images are already the matrix of their windows."""
        return (
            self.window == (1, 1)
            and self.strides == (1, 1)
            and self.before == (0, 0)
            and self.out == self.image
        )

    def transposed(self) -> Geometry:
        """Return the convolution, of a transposed filter, that computes the input's gradient.

        Raises:
            ValueError: if the convolution has strides, so that there is no such convolution.
        """
        if self.strides != (1, 1):
            raise ValueError(f"a convolution must have strides of 1, got {self.strides}")
        reach = [(k - 1) * d for k, d in zip(self.window, self.dilations, strict=True)]
        return replace(
            self,
            image=self.out,
            out=self.image,
            channels=self.filters,
            filters=self.channels,
            before=(reach[0] - self.before[0], reach[1] - self.before[1]),
        )


def geometry(
    images: Sequence[int], window: Sequence[int], filters: int, attrs: Mapping[str, Any]
) -> Geometry:
    """Return the geometry of an operation on windows.

    Args:
        images: The shape of the images, [n, h, w, c].
        window: The height and width of a window.
        filters: Channels of the result.
        attrs: The attributes of the operation.
    """
    dilations = attrs.get("dilations") or (1, 1)
    laid = [
        window_padding(
            images[axis + 1],
            window[axis],
            attrs["strides"][axis],
            dilations[axis],
            padding_of(attrs["padding"], axis),
        )
        for axis in range(2)
    ]
    return Geometry(
        images=images[0],
        image=(images[1], images[2]),
        channels=images[3],
        window=(window[0], window[1]),
        out=(laid[0][0], laid[1][0]),
        strides=(attrs["strides"][0], attrs["strides"][1]),
        dilations=(dilations[0], dilations[1]),
        before=(laid[0][1], laid[1][1]),
        filters=filters,
    )
