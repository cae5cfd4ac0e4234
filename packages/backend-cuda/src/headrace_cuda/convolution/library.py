"""What convolves images on a GPU, as instructions see it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

Pair = tuple[int, int]


class Direction(Enum):
    """What of a convolution is computed, from which two operands."""

    FORWARD = "the result, of the activations and the filter"
    TO_ACTIVATIONS = "the gradient of the activations, of the result's gradient and the filter"
    TO_FILTER = "the gradient of the filter, of the activations and the result's gradient"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionShape:
    """A convolution of float32, or one of its gradients; pairs are of height and width.

    Activations and results lie as [images, height, width, channels], filters as [filters, height,
    width, channels / groups].

    Attributes:
        direction: What is computed.
        images: How many images there are.
        image: The size of an image.
        channels: Of the activations.
        window: The size of the filter.
        out: The size of the result.
        filters: Channels of the result.
        strides: Steps between windows.
        dilations: Steps between the elements of a window.
        before: Padding in front.
        after: Padding behind.
        groups: Into how many groups the channels fall, each a convolution of its own.
        precision: "highest", or "tf32" for 10 bits of the fraction.
        deterministic: Whether equal operands must give equal bits.
        bias: Whether a vector [filters] is added to each pixel of a result.
        relu: Whether negative elements of a result become 0.
    """

    direction: Direction
    images: int
    image: Pair
    channels: int
    window: Pair
    out: Pair
    filters: int
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    before: Pair = (0, 0)
    after: Pair = (0, 0)
    groups: int = 1
    precision: str = "highest"
    deterministic: bool = False
    bias: bool = False
    relu: bool = False

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        depth = math.prod(self.window) * self.channels // self.groups
        return 2 * self.images * math.prod(self.out) * self.filters * depth

    def __str__(self) -> str:
        """Say what is convolved, for messages."""
        image = f"[{self.images}, {self.image[0]}, {self.image[1]}, {self.channels}]"
        taps = [*self.window, self.channels // self.groups, self.filters]
        marks = [
            self.direction.name.lower().replace("_", " "),
            f"strides {list(self.strides)}",
            f"dilations {list(self.dilations)}",
            f"padding {[list(pair) for pair in zip(self.before, self.after, strict=True)]}",
            self.precision,
            *(name for name in ("deterministic", "bias", "relu") if getattr(self, name)),
        ]
        return f"a convolution of {image} with {taps}, {', '.join(marks)}"


@dataclass(frozen=True, slots=True)
class ConvolutionPlaces:
    """Addresses of the operands of a convolution, in the layouts of ``ConvolutionShape``.

    Attributes:
        activations: The activations, or their gradient.
        filter: The filter, or its gradient.
        out: The result, or its gradient.
        bias: The bias, 0 where there is none.
    """

    activations: int
    filter: int
    out: int
    bias: int = 0


class Convolution(Protocol):
    """A convolution for which everything is prepared.

    Attributes:
        scratch: Bytes of scratch memory that it needs while it runs.
        name: What computes it, for explanations.
    """

    scratch: int
    name: str

    def start(self, places: ConvolutionPlaces, scratch: int) -> None:
        """Start it on the GPU's stream; allocates nothing, and waits for nothing.

        Args:
            places: Where the operands are, aligned to 16 bytes.
            scratch: The address of its scratch memory, aligned to 256 bytes.

        Raises:
            ExecutionError: if the library refuses it.
        """


class ConvolutionLibrary(Protocol):
    """Something that convolves images on a GPU."""

    def plan(self, shape: ConvolutionShape) -> Convolution | None:
        """Prepare a convolution; None where the library has none of this kind.

        Raises:
            ExecutionError: if the library fails.
        """
