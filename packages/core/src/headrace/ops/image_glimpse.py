"""Windows at places of their own in each image."""

from __future__ import annotations

import math
from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, reshape, shape
from headrace.ops.constant import range as range_of
from headrace.ops.constant import zeros
from headrace.ops.conversion import cast
from headrace.ops.elementwise import greater_equal, less, logical_and, select, square
from headrace.ops.gather import gather
from headrace.ops.identity import ensure_shape, stop_gradient
from headrace.ops.joining import stack
from headrace.ops.random import random_normal, random_uniform
from headrace.ops.reduce import reduce_max, reduce_mean, reduce_min
from headrace.ops.transcendental import sqrt

# More elements than this in a result are taken for a mistake.
_MOST_ELEMENTS = 1 << 30
_NOISES = ("uniform", "gaussian", "zero")


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
    noise: str | None = None,
) -> Tensor:
    """Cut a window out of each image, at a place of its own; what is outside is noise.

    Args:
        input: [n, h, w, c], float32.
        size: [2], int32: height and width of the windows.
        offsets: [n, 2], float32: y and x of each window's middle.
        centered: Whether offset 0 is the middle of the image; else it is the upper left corner.
        normalized: Whether offsets are in units of the image's size; where it is centered, too, 1
            is the lower or right border. Otherwise they are in pixels (half pixels if centered).
        uniform_noise: Whether noise is uniform between the image's extremes; else it is normal,
            with the image's mean and deviation.
        name: The name of the operations.
        noise: "uniform", "gaussian", or "zero" for zeros; as ``uniform_noise`` says if None.

    Returns:
        ``[n, *size, c]``, float32.

    Raises:
        AttributeValueError: if there is no such noise.
        ShapeError: if shapes do not fit.
    """
    kind = noise if noise is not None else "uniform" if uniform_noise else "gaussian"
    if kind not in _NOISES:
        raise AttributeValueError(f"noise must be one of {', '.join(_NOISES)}, got {shown(noise)}")
    with name_scope(name, "extract_glimpse"):
        images = cast(convert_to_tensor(input), dtypes.float32)
        target = convert_to_tensor(size, preferred_dtype=dtypes.int32)
        places = convert_to_tensor(offsets, preferred_dtype=dtypes.float32)
        for tensor, wanted, label in (
            (images, [None] * 4, "input"),
            (target, [2], "size"),
            (places, [images.spec.shape[0] if images.shape.rank == 4 else None, 2], "offsets"),
        ):
            if not tensor.shape.is_compatible_with(wanted):
                raise ShapeError(
                    f"extract_glimpse: {label} must have shape {wanted}, got {tensor.spec.shape}"
                )
        if target.spec.value is not None and (target.spec.value <= 0).any():
            raise ShapeError(f"size must be positive, got {target.spec.value.tolist()}")
        count = images.spec.shape[0]
        if count is None and places.shape.rank is not None:
            count = places.spec.shape[0]
        known = [count, *as_shape(target.spec).with_rank(2), images.spec.shape[3]]
        if math.prod(d for d in known if d) > _MOST_ELEMENTS:
            raise ShapeError(f"extract_glimpse: windows of shape {known} are too large")
        sizes = shape(images)
        extent = cast(sizes[1:3], dtypes.float32)
        if normalized:
            places = places * extent
        if centered:
            places = places / 2 + extent / 2
        # Towards 0, as integers are made of floats.
        first = cast(places - cast(target, dtypes.float32) / 2, dtypes.int32)
        ys = expand_dims(first[:, 0], 1) + range_of(target[0])
        xs = expand_dims(first[:, 1], 1) + range_of(target[1])
        inside_y = logical_and(greater_equal(ys, 0), less(ys, sizes[1]))
        inside_x = logical_and(greater_equal(xs, 0), less(xs, sizes[2]))
        lines = reshape(range_of(sizes[0]), [-1, 1]) * sizes[1] + select(inside_y, ys, 0)
        at = expand_dims(lines, 2) * sizes[2] + expand_dims(select(inside_x, xs, 0), 1)
        pixels = reshape(images, stack([sizes[0] * sizes[1] * sizes[2], sizes[3]]))
        found = gather(pixels, at)
        inside = logical_and(expand_dims(inside_y, 2), expand_dims(inside_x, 1))
        outside = _noise(images, shape(found), kind)
        return ensure_shape(select(expand_dims(inside, 3), found, outside), known)


def _noise(images: Tensor, sizes: Tensor, kind: str) -> Tensor:
    """Return noise like the values of images, through which no gradients go, or zeros."""
    if kind == "zero":
        return zeros(sizes)
    values = stop_gradient(images)
    if kind == "uniform":
        low, high = reduce_min(values), reduce_max(values)
        return random_uniform(sizes) * (high - low) + low
    mean = reduce_mean(values)
    return random_normal(sizes) * sqrt(reduce_mean(square(values - mean))) + mean
