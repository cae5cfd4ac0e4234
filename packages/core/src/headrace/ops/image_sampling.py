"""Random parts of images that show enough of what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace import dtypes
from headrace.arguments import real, whole
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, reshape, shape, stack, tile, unstack
from headrace.ops.assertions import assert_greater_equal, assert_less_equal, assert_positive
from headrace.ops.constant import constant, ones, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import (
    floor,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    maximum,
    minimum,
    rint,
    select,
)
from headrace.ops.extremes import argmax
from headrace.ops.gather import gather
from headrace.ops.identity import identity
from headrace.ops.random import random_uniform
from headrace.ops.reduce import reduce_any
from headrace.ops.transcendental import sqrt


class SampledBoundingBox(NamedTuple):
    """What ``sample_distorted_bounding_box`` returns, ``begin`` and ``size`` as for ``hr.slice``.

    Attributes:
        begin: [3], where the part begins.
        size: [3], its height and width, and -1 for all channels.
        bboxes: [1, 1, 4], float32, its corners (y, x, y, x) as shares of the image.
    """

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> SampledBoundingBox:
    """Draw a part of an image that covers enough of one of its boxes.

    Args:
        image_size: [3], an integer dtype: height, width and channels.
        bounding_boxes: [n, boxes, 4], float32, corners (y, x, y, x) as shares of the image.
        seed: Seeds what is drawn, with ``seed2``.
        seed2: See ``seed``.
        min_object_covered: [], the least share of a box that the part covers.
        aspect_ratio_range: The least and the largest ratio of width to height; 0.75 to 1.33 if
            None.
        area_range: The least and the largest share of the image; 0.05 to 1 if None.
        max_attempts: How many parts are tried before the whole image is taken; 100 if None.
        use_image_if_no_bounding_boxes: Whether the image is the box where there are none; running
            it raises otherwise.
        name: The name of the operations.

    Returns:
        Where the part begins, its size, and its corners as shares of the image.

    Raises:
        ShapeError: if ``image_size`` is not [3], or ``bounding_boxes`` not [n, boxes, 4].
        AttributeValueError: for ranges or numbers of attempts that do not exist.
    """
    ratios = _range(aspect_ratio_range, (0.75, 1.33), "Aspect ratio range")
    areas = _range(area_range, (0.05, 1.0), "Area range")
    if areas[1] > 1:
        raise AttributeValueError(f"Area range must be less then or equal to 1.0, got {areas[1]}")
    attempts = (
        100 if max_attempts is None else whole(max_attempts, "Max attempts", most=_MOST_ATTEMPTS)
    )
    if attempts < 1:
        raise AttributeValueError(f"Max attempts must be positive, got {attempts}")
    with name_scope(name, "sample_distorted_bounding_box"):
        size = convert_to_tensor(image_size)
        if not size.dtype.is_integer:
            raise DTypeError(f"image_size must be an integer, got {size.dtype}")
        if not size.shape.is_compatible_with([3]):
            raise ShapeError(f"image_size must be [3], got shape {size.spec.shape}")
        boxes = convert_to_tensor(bounding_boxes, dtypes.float32)
        if not boxes.shape.is_compatible_with([None, None, 4]):
            raise ShapeError(f"bounding_boxes must be [n, boxes, 4], got shape {boxes.spec.shape}")
        flat = reshape(boxes, [-1, 4])
        if use_image_if_no_bounding_boxes:
            flat = concat([flat, _whole_where_none(flat)], 0)
        needed = ones([], dtypes.int32)
        checks = [
            assert_greater_equal(flat, 0.0, message="box coordinates must be in [0.0, 1.0]"),
            assert_less_equal(flat, 1.0, message="box coordinates must be in [0.0, 1.0]"),
            assert_greater_equal(
                _count(flat),
                needed,
                message="No bounding boxes provided as input. One must enable "
                "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes.",
            ),
            assert_positive(size[:2], message="an image has a height and a width"),
        ]
        with control_dependencies(checks):
            height, width = unstack(cast(identity(size)[:2], dtypes.float32), 2)
        drawn = random_uniform([4, attempts], seed=_seed(seed, seed2))
        tops, lefts, heights, widths, fits = _parts(drawn, height, width, ratios, areas)
        parts = stack([tops, lefts, tops + heights, lefts + widths], 1)
        fits = logical_and(fits, _covers(parts, flat, height, width, min_object_covered))
        entire = stack([zeros_like(height), zeros_like(height), height, width])
        first = gather(parts, argmax(cast(fits, dtypes.int32), 0))
        part = select(reduce_any(fits), first, entire)
        begin = cast(part[:2], size.dtype)
        extent = cast(part[2:] - part[:2], size.dtype)
        all_channels = constant([-1 % 2**8 if size.dtype == dtypes.uint8 else -1], size.dtype)
        begin.set_shape([2])
        extent.set_shape([2])
        corners = part / stack([height, width, height, width])
        return SampledBoundingBox(
            concat([begin, constant([0], size.dtype)], 0),
            concat([extent, all_channels], 0),
            reshape(corners, [1, 1, 4]),
        )


# Each takes a few numbers of memory.
_MOST_ATTEMPTS = 1 << 24


def _range(given: Any, usual: tuple[float, float], what: str) -> tuple[float, float]:
    if given is None:
        return usual
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise AttributeValueError(f"{what} must be two numbers, got {shown(given)}")
    low, high = real(given[0], what), real(given[1], what)
    if low <= 0 or high <= 0:
        raise AttributeValueError(f"{what} must be non-negative, got {shown(given)}")
    return low, high


def _seed(seed: int | None, seed2: int | None) -> int | None:
    return None if not seed and not seed2 else (seed or 0) + 7919 * (seed2 or 0)


def _count(boxes: Tensor) -> Tensor:
    return shape(boxes)[0]


def _whole_where_none(boxes: Tensor) -> Tensor:
    """Return the box of the whole image, as often as there are too few boxes: once or never."""
    whole = constant([[0.0, 0.0, 1.0, 1.0]])
    return tile(whole, stack([cast(less(_count(boxes), 1), dtypes.int32), constant(1)]))


def _parts(
    drawn: Tensor,
    height: Tensor,
    width: Tensor,
    ratios: tuple[float, float],
    areas: tuple[float, float],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return tops, lefts, heights and widths of parts, and which fit into the image."""
    shares = unstack(drawn, 4)
    ratio = shares[0] * (ratios[1] - ratios[0]) + ratios[0]
    least, most = areas[0] * width * height, areas[1] * width * height
    low, high = rint(sqrt(least / ratio)), rint(sqrt(most / ratio))
    too_wide = greater(rint(high * ratio), width)
    narrower = floor((width + 0.5 - 1e-7) / ratio)
    narrower = select(greater(rint(narrower * ratio), width), narrower - 1, narrower)
    high = minimum(select(too_wide, narrower, high), height)
    low = minimum(low, high)
    tall = low + floor(shares[1] * (high - low + 1))
    wide = rint(tall * ratio)
    # What rounding took too much of, or too little.
    taller = tall + cast(less(tall * wide, least), dtypes.float32)
    wide = select(less(tall * wide, least), rint(taller * ratio), wide)
    lower = taller - cast(greater(taller * wide, most), dtypes.float32)
    wide = select(greater(taller * wide, most), rint(lower * ratio), wide)
    area = lower * wide
    fits = logical_and(greater_equal(area, least), less_equal(area, most))
    fits = logical_and(fits, logical_and(less_equal(wide, width), less_equal(lower, height)))
    fits = logical_and(fits, logical_and(greater(wide, 0), greater(lower, 0)))
    top = floor(shares[2] * maximum(height - lower, 0.0))
    left = floor(shares[3] * maximum(width - wide, 0.0))
    return top, left, lower, wide, fits


def _covers(parts: Tensor, boxes: Tensor, height: Tensor, width: Tensor, share: Any) -> Tensor:
    """Return which parts cover the share of a box; boxes of less than a pixel do not count."""
    corners = floor(boxes * stack([height, width, height, width]))
    top, left, bottom, right = (reshape(corners[:, i], [1, -1]) for i in range(4))
    upper, first, lower, last = (reshape(parts[:, i], [-1, 1]) for i in range(4))
    tall = maximum(minimum(bottom, lower) - maximum(top, upper), 0.0)
    wide = maximum(minimum(right, last) - maximum(left, first), 0.0)
    area = (bottom - top) * (right - left)
    counts = logical_and(greater_equal(area, 1.0), greater(bottom, top))
    enough = greater_equal(tall * wide / maximum(area, 1.0), share)
    return reduce_any(logical_and(counts, enough), 1)
