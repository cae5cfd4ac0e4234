"""The layers that networks are made of, the parameters they have, and the shapes between them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

# Height, width and channels of one image, or the features of one example.
Size: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Conv:
    """A convolution with a square kernel, zeros at the border, and a bias unless told otherwise."""

    kernel: int
    filters: int
    stride: int = 1
    padding: int = 0
    bias: bool = True


@dataclass(frozen=True)
class Norm:
    """Batch normalisation by the batch's own mean and variance, with scale and offset."""

    epsilon: float = 1e-3


@dataclass(frozen=True)
class Relu:
    """``max(x, 0)``."""


@dataclass(frozen=True)
class MaxPool:
    """The largest value of each square window; what lies over the border counts for nothing."""

    window: int
    stride: int
    padding: int = 0


@dataclass(frozen=True)
class GlobalMean:
    """The mean of each channel over all positions."""


@dataclass(frozen=True)
class Flatten:
    """All values of an image in one row: by height, then width, then channel."""


@dataclass(frozen=True)
class Dense:
    """A matrix product and a bias."""

    units: int


@dataclass(frozen=True)
class Residual:
    """The sum of two paths from one input; an empty path passes it on as it is."""

    body: Layers
    shortcut: Layers = ()


Layer: TypeAlias = Conv | Norm | Relu | MaxPool | GlobalMean | Flatten | Dense | Residual
Layers: TypeAlias = tuple[Layer, ...]


@dataclass(frozen=True)
class Parameter:
    """An array that is trained.

    Attributes:
        shape: kernels are [height, width, channels in, channels out], matrices [in, out].
        scale: standard deviation of the first values, which are normally distributed.
        mean: mean of the first values.
        image: size of the image that was flattened into the rows of this matrix, or ().
    """

    shape: Size
    scale: float = 0.0
    mean: float = 0.0
    image: Size = ()


def border(padding: int) -> list[list[int]]:
    """Return the padding of a batch of images [batch, height, width, channels], per axis."""
    return [[0, 0], [padding, padding], [padding, padding], [0, 0]]


def output_size(layer: Layer, size: Size) -> Size:
    """Return the size of one example after a layer."""
    match layer:
        case Conv():
            return (*_windows(size, layer.kernel, layer.stride, layer.padding), layer.filters)
        case MaxPool():
            return (*_windows(size, layer.window, layer.stride, layer.padding), size[2])
        case GlobalMean():
            return size[-1:]
        case Flatten():
            return (math.prod(size),)
        case Dense():
            return (layer.units,)
        case Residual():
            for inner in layer.body:
                size = output_size(inner, size)
            return size
        case _:
            return size


def walk(layers: Layers, size: Size) -> Iterator[tuple[Layer, Size]]:
    """Yield each layer with the size of its input, the inner layers of a residual too."""
    for layer in layers:
        if isinstance(layer, Residual):
            yield from walk(layer.body, size)
            yield from walk(layer.shortcut, size)
        else:
            yield layer, size
        size = output_size(layer, size)


def parameters(layers: Layers, size: Size) -> Iterator[Parameter]:
    """Yield the parameters of a network in the order of its layers, a kernel before its bias.

    First values are those of He et al., "Delving deep into rectifiers" (2015). Those of the last
    layer are a tenth of it, so that training begins near the loss of guessing, and is steady
    enough for rounding errors to stay small in the losses that are compared.
    """
    flattened: Size = ()
    for layer, before in walk(layers, size):
        match layer:
            case Conv():
                shape = (layer.kernel, layer.kernel, before[2], layer.filters)
                yield Parameter(shape, math.sqrt(2 / math.prod(shape[:3])))
                if layer.bias:
                    yield Parameter((layer.filters,))
            case Norm():
                yield Parameter(before[-1:], mean=1.0)
                yield Parameter(before[-1:])
            case Flatten():
                flattened = before
            case Dense():
                scale = math.sqrt(2 / before[0]) * (0.1 if layer is layers[-1] else 1.0)
                yield Parameter((before[0], layer.units), scale, image=flattened)
                yield Parameter((layer.units,))
                flattened = ()
            case _:
                pass


def _windows(size: Size, window: int, stride: int, padding: int) -> Size:
    """Return how many windows there are in height and width."""
    return tuple((extent + 2 * padding - window) // stride + 1 for extent in size[:2])
