"""Kernels of images.

Resizing goes axis by axis: each element along an axis of the result is a weighted sum of a few
elements along that axis of the image, the same few for all rows or columns.

References:
    R. G. Keys, Cubic convolution interpolation for digital image processing, 1981,
    https://doi.org/10.1109/TASSP.1981.1163711
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace.extend.records import dataclass
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    check_rank,
    check_shape,
    dimensions,
    narrowed,
    scalar,
    widened,
)

KERNELS = KernelTable()

# More elements than this in a result are taken for a mistake.
_MOST_ELEMENTS = 1 << 30
# Steps into which the weights of cubic convolution are rounded, as TensorFlow's table has them.
_CUBIC_STEPS = 1 << 10


@dataclass(frozen=True, slots=True)
class _Scale:
    """How coordinates in the result become coordinates in the image, along one axis."""

    size: int
    out: int
    align_corners: bool
    half_pixel_centers: bool
    dtype: Any

    @property
    def ratio(self) -> Any:
        """The distance in the image of two neighbors in the result."""
        if self.align_corners and self.out > 1:
            return self.dtype(self.size - 1) / self.dtype(self.out - 1)
        return self.dtype(self.size) / self.dtype(self.out)

    def places(self) -> Any:
        """Return the coordinate in the image of each element of the result."""
        out = np.arange(self.out).astype(self.dtype)
        if self.half_pixel_centers:
            half = self.dtype(0.5)
            return (out + half) * self.ratio - half
        return out * self.ratio

    def bounded(self, index: Any) -> Any:
        """Return indices, those outside the image moved to its border."""
        return np.clip(index, 0, self.size - 1).astype(np.int64)


# For each term of the weighted sums: the index of the element, and its weight; None for 1.
_Terms = Iterator[tuple[Any, Any]]


def _nearest(scale: _Scale) -> _Terms:
    out = np.arange(scale.out).astype(scale.dtype)
    if scale.half_pixel_centers:
        places = np.floor((out + scale.dtype(0.5)) * scale.ratio)
    elif scale.align_corners:
        places = np.floor(out * scale.ratio + scale.dtype(0.5))
    else:
        places = np.floor(out * scale.ratio)
    yield scale.bounded(places), None


def _bilinear(scale: _Scale) -> _Terms:
    places = scale.places()
    below = np.floor(places)
    share = places - below
    yield scale.bounded(below), scale.dtype(1) - share
    yield scale.bounded(np.ceil(places)), share


def linear_terms(
    size: int, out: int, align_corners: bool, half_pixel_centers: bool, dtype: Any
) -> list[tuple[Any, Any]]:
    """Return the two elements between which each of a result lies, and what it takes of them.

    Args:
        size: How many elements an axis has.
        out: How many the result has.
        align_corners: As the op's.
        half_pixel_centers: As the op's.
        dtype: The type of coordinates and weights.

    Returns:
        For both elements, [out] indices and [out] weights.
    """
    return list(_bilinear(_scale(size, out, "bilinear", align_corners, half_pixel_centers, dtype)))


def _cubic(x: Any, a: float) -> tuple[Any, Any]:
    """Return Keys' kernel at distances ``x`` and ``x + 1``, for 0 <= x <= 1."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    y = x + 1
    return near, ((a * y - 5 * a) * y + 8 * a) * y - 4 * a


def _bicubic(scale: _Scale) -> _Terms:
    places = scale.places()
    below = np.floor(places)
    share = np.rint((places - below) * scale.dtype(_CUBIC_STEPS)) / scale.dtype(_CUBIC_STEPS)
    a = -0.5 if scale.half_pixel_centers else -0.75
    (near, far), (next_near, next_far) = _cubic(share, a), _cubic(1 - share, a)
    weights = [far, near, next_near, next_far]
    index = [below - 1 + k for k in range(4)]
    if scale.half_pixel_centers:
        # Elements outside do not count, and the others make up for them.
        weights = [
            np.where((i >= 0) & (i <= scale.size - 1), w, scale.dtype(0))
            for i, w in zip(index, weights, strict=True)
        ]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        tiny = 1000 * np.finfo(np.float32).tiny
        total = np.where(np.abs(total) >= tiny, total, scale.dtype(1))
        weights = [w / total for w in weights]
    for i, w in zip(index, weights, strict=True):
        yield scale.bounded(i), w.astype(scale.dtype)


def _area(scale: _Scale) -> _Terms:
    # A single element whose corners are aligned has no extent, and is all there is to take.
    ratio = scale.ratio or scale.dtype(scale.size) / scale.dtype(scale.out)
    out = np.arange(scale.out).astype(scale.dtype)
    first, last = out * ratio, (out + 1) * ratio
    start, stop = np.floor(first), np.ceil(last)
    for k in range(int((stop - start).max())):
        i = start + k
        covered = np.minimum(i + 1, last) - np.maximum(i, first)
        yield scale.bounded(i), np.where(i < stop, covered, scale.dtype(0)) / ratio


_TERMS: dict[str, Callable[[_Scale], _Terms]] = {
    "nearest": _nearest,
    "bilinear": _bilinear,
    "bicubic": _bicubic,
    "area": _area,
}


def _scale(size: int, out: int, method: str, align: bool, half: bool, dtype: Any) -> _Scale:
    # Which pixel is nearest does not depend on what the pixels hold.
    number = np.float64 if dtype == np.float64 and method != "nearest" else np.float32
    return _Scale(size, out, align, half, number)


def _sizes(images: Array, size: Array) -> tuple[int, int]:
    """Return the height and width that a tensor holds."""
    check_rank(images, 4, "images")
    wanted = dimensions(size)
    if len(wanted) != 2 or min(wanted) < 1:
        raise ValueError(f"size must be a positive height and width, got {list(wanted)}")
    if 0 in images.shape[1:3]:
        raise ValueError(f"images of shape {list(images.shape)} have no pixels to resize")
    if images.shape[0] * wanted[0] * wanted[1] * images.shape[3] > _MOST_ELEMENTS:
        raise ValueError(f"{images.shape[0]} images of size {list(wanted)} are too large")
    if max(wanted) >= 1 << 31:
        raise ValueError(f"size {list(wanted)} is too large")
    return wanted[0], wanted[1]


@KERNELS.plain("Resize")
def resize(
    xp: Any,
    images: Array,
    size: Array,
    *,
    method: str,
    align_corners: bool,
    half_pixel_centers: bool,
) -> Array:
    """Resample along the width, then along the height."""
    wanted = _sizes(images, size)
    result = images if method == "nearest" else widened(images)
    if not images.size:
        return xp.zeros((images.shape[0], *wanted, images.shape[3]), images.dtype)
    for axis in (2, 1):
        scale = _scale(
            images.shape[axis],
            wanted[axis - 1],
            method,
            align_corners,
            half_pixel_centers,
            images.dtype,
        )
        result = _resampled(xp, result, scale, method, axis)
    return narrowed(result, images.dtype)


def _resampled(xp: Any, images: Array, scale: _Scale, method: str, axis: int) -> Array:
    shape = (-1,) + (1,) * (3 - axis)
    terms = _TERMS[method](scale)
    if method == "bilinear":
        (low, _), (high, share) = terms
        first = images.take(xp.asarray(low), axis)
        slope = images.take(xp.asarray(high), axis) - first
        return first + slope * xp.asarray(share).reshape(shape)
    total: Array = None
    for index, weight in terms:
        part = images.take(xp.asarray(index), axis)
        if weight is not None:
            part = part * xp.asarray(weight).reshape(shape)
            if method == "area" and not weight.all():
                # What does not count may be infinite.
                counts = xp.asarray(weight != 0).reshape(shape)
                part = xp.where(counts, part, part.dtype.type(0))
        total = part if total is None else total + part
    return total


@KERNELS.plain("ResizeGrad")
def resize_grad(
    xp: Any,
    grad: Array,
    size: Array,
    *,
    method: str,
    align_corners: bool,
    half_pixel_centers: bool,
) -> Array:
    """Give back along the height, then along the width."""
    wanted = _sizes(grad, size)
    if not grad.size:
        return xp.zeros((grad.shape[0], *wanted, grad.shape[3]), grad.dtype)
    result = widened(grad)
    for axis in (1, 2):
        scale = _scale(
            wanted[axis - 1],
            grad.shape[axis],
            method,
            align_corners,
            half_pixel_centers,
            grad.dtype,
        )
        outer = xp.moveaxis(result, axis, 0)
        rows = outer.reshape((outer.shape[0], -1))
        total = xp.zeros((scale.size, rows.shape[1]), rows.dtype)
        for index, weight in _TERMS[method](scale):
            part = rows if weight is None else rows * xp.asarray(weight)[:, None]
            add_rows(xp, total, xp.asarray(index), part)
        result = xp.moveaxis(total.reshape((scale.size, *outer.shape[1:])), 0, axis)
    return narrowed(result, grad.dtype)


def _on_host(xp: Any, x: Array) -> Any:
    # Not wider than given: an overlap of a tenth is to be equal to a threshold of a tenth.
    array = np.asarray(x if xp is np else x.get())
    return np.array(array, np.float64 if array.dtype == np.float64 else np.float32)


def _greedy(
    scores: Any,
    count: Any,
    score_threshold: Any,
    overlap: Callable[[int, Any], Any],
    suppressed: Callable[[Any], Any],
) -> Any:
    """Return indices by falling score, of which none overlaps one before too much."""
    most = int(scalar(count, "max_output_size"))
    if most < 0:
        raise ValueError(f"max_output_size must be >= 0, got {most}")
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > float(scalar(score_threshold, "score_threshold"))]
    picked: list[int] = []
    while order.size and len(picked) < most:
        best, order = int(order[0]), order[1:]
        picked.append(best)
        order = order[~suppressed(overlap(best, order))]
    return np.array(picked, np.int32)


@KERNELS.plain("NonMaxSuppression")
def non_max_suppression(
    xp: Any,
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
) -> Array:
    """Pick boxes on the host: each choice depends on those before."""
    limit = _checked_limit(boxes, scores, iou_threshold)
    shares = _shares(_on_host(xp, boxes))
    marks = _on_host(xp, scores)
    picked = _greedy(marks, max_output_size, score_threshold, shares, lambda x: x >= limit)
    return xp.asarray(picked)


def _checked_limit(boxes: Array, scores: Array, iou_threshold: Array) -> float:
    """Check the shapes of boxes and scores, and return the overlap that is too much."""
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes must be [n, 4], got shape {list(boxes.shape)}")
    check_shape(scores, boxes.shape[:1], "scores")
    limit = float(scalar(iou_threshold, "iou_threshold"))
    if not 0 <= limit <= 1:
        raise ValueError(f"iou_threshold must be in [0, 1], got {limit}")
    return limit


def _shares(boxes: Any) -> Callable[[int, Any], Any]:
    """Return a function of one box and some: the share of each pair's union that both cover."""
    corners = boxes.reshape((-1, 2, 2))
    low, high = corners.min(1), corners.max(1)
    areas = (high - low).prod(1)

    def shares(best: int, rest: Any) -> Any:
        sides = np.minimum(high[best], high[rest]) - np.maximum(low[best], low[rest])
        both = np.maximum(sides, 0).prod(1)
        union = areas[best] + areas[rest] - both
        empty = (areas[best] <= 0) | (areas[rest] <= 0)
        return np.where(empty, 0.0, both / np.where(union > 0, union, 1.0))

    return shares


@KERNELS.plain("SoftNonMaxSuppression")
def soft_non_max_suppression(
    xp: Any,
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    soft_nms_sigma: Array,
) -> tuple[Array, Array]:
    """Pick boxes on the host, each of which lowers the scores of the others."""
    limit = _checked_limit(boxes, scores, iou_threshold)
    most = int(scalar(max_output_size, "max_output_size"))
    least = float(scalar(score_threshold, "score_threshold"))
    sigma = float(scalar(soft_nms_sigma, "soft_nms_sigma"))
    if most < 0:
        raise ValueError(f"max_output_size must be >= 0, got {most}")
    if not sigma >= 0:
        raise ValueError(f"soft_nms_sigma must be >= 0, got {sigma}")
    shares, marks = _shares(_on_host(xp, boxes)), _on_host(xp, scores)
    if sigma:
        kept = _softened(marks, most, least, shares, limit, sigma)
    else:
        best = _greedy(marks, max_output_size, score_threshold, shares, lambda x: x >= limit)
        kept = [(int(i), float(marks[i])) for i in best]
    picked, found = [i for i, _ in kept], [score for _, score in kept]
    return xp.asarray(np.array(picked, np.int32)), xp.asarray(np.array(found).astype(scores.dtype))


def _softened(
    scores: Any,
    most: int,
    least: float,
    shares: Callable[[int, Any], Any],
    limit: float,
    sigma: float,
) -> list[tuple[int, float]]:
    """Return boxes with their scores, lowered by those before when their turn comes.

    A lowered score waits for its turn again, which matters where negative ones are not lowered
    but raised.
    """
    waiting = [(-float(s), i, 0) for i, s in enumerate(scores) if s > least]
    heapq.heapify(waiting)
    kept: list[tuple[int, float]] = []
    while waiting and len(kept) < most:
        negated, box, seen = heapq.heappop(waiting)
        score = -negated
        share = shares(box, np.array([i for i, _ in kept[seen:]], np.intp))
        if (share >= limit).any():
            continue
        lowered = float(score * np.exp(-0.5 / sigma * share.astype(np.float64) ** 2).prod())
        if lowered == score:
            kept.append((box, score))
        elif lowered > least:
            heapq.heappush(waiting, (-lowered, box, len(kept)))
    return kept


@KERNELS.plain("CombinedNonMaxSuppression")
def combined_non_max_suppression(
    xp: Any,
    boxes: Array,
    scores: Array,
    max_output_size_per_class: Array,
    max_total_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> tuple[Array, Array, Array, Array]:
    """Pick boxes of each class on the host, and the best of these."""
    check_rank(scores, 3, "scores")
    batch, count, classes = scores.shape
    kinds = boxes.shape[2] if boxes.ndim == 4 else 0
    if kinds not in (1, classes):
        raise ValueError(f"boxes must be of 1 or {classes} classes, got shape {list(boxes.shape)}")
    check_shape(boxes, (batch, count, kinds, 4), "boxes")
    each = int(scalar(max_output_size_per_class, "max_output_size_per_class"))
    places = int(scalar(max_total_size, "max_total_size"))
    if each < 0 or places <= 0:
        raise ValueError(f"max_total_size must be > 0, got {places}, and {each} per class")
    limit = float(scalar(iou_threshold, "iou_threshold"))
    if not 0 <= limit <= 1:
        raise ValueError(f"iou_threshold must be in [0, 1], got {limit}")
    if pad_per_class:
        places = min(places, each * classes)
    corners, marks = _on_host(xp, boxes), _on_host(xp, scores)
    picked = np.zeros((batch, places, 4), corners.dtype)
    found = np.zeros((2, batch, places), corners.dtype)
    numbers = np.zeros(batch, np.int32)
    size = np.asarray(each, np.int32)
    for b in range(batch):
        rows: list[tuple[float, int, int]] = []
        for c in range(classes):
            shares = _shares(corners[b, :, c % kinds])
            # Of several classes, boxes at the threshold are kept.
            best = _greedy(marks[b, :, c], size, score_threshold, shares, lambda x: x > limit)
            rows += [(float(marks[b, i, c]), c, int(i)) for i in best]
        rows.sort(key=lambda row: -row[0])
        numbers[b] = min(len(rows), places)
        for place, (score, c, i) in enumerate(rows[:places]):
            picked[b, place] = corners[b, i, c % kinds]
            found[:, b, place] = score, c
    if clip_boxes:
        picked = np.clip(picked, 0, 1)
    kept = [xp.asarray(part.astype(boxes.dtype)) for part in (picked, found[0], found[1])]
    return kept[0], kept[1], kept[2], xp.asarray(numbers)


@KERNELS.plain("NonMaxSuppressionOverlaps")
def non_max_suppression_overlaps(
    xp: Any,
    overlaps: Array,
    scores: Array,
    max_output_size: Array,
    overlap_threshold: Array,
    score_threshold: Array,
) -> Array:
    """Pick rows on the host: each choice depends on those before."""
    if overlaps.ndim != 2 or overlaps.shape[0] != overlaps.shape[1]:
        raise ValueError(f"overlaps must be square, got shape {list(overlaps.shape)}")
    check_shape(scores, overlaps.shape[:1], "scores")
    limit = float(scalar(overlap_threshold, "overlap_threshold"))
    table = _on_host(xp, overlaps)
    picked = _greedy(
        _on_host(xp, scores),
        max_output_size,
        score_threshold,
        lambda best, rest: table[rest, best],
        lambda x: x >= limit,
    )
    return xp.asarray(picked)


# One after the other for the boxes of an image: red, green, blue and opacity.
_COLORS = (
    *((1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1)),
    *((0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1)),
)


@KERNELS.plain("DrawBoundingBoxes")
def draw_bounding_boxes(xp: Any, images: Array, boxes: Array, colors: Array | None) -> Array:
    """Draw the four borders of each box, as far as they lie in the image."""
    check_rank(images, 4, "images")
    count, height, width, depth = images.shape
    if depth not in (1, 3, 4):
        raise ValueError(f"images must have 1, 3 or 4 channels, got shape {list(images.shape)}")
    check_rank(boxes, 3, "boxes")
    check_shape(boxes, (count, boxes.shape[1], 4), "boxes")
    if colors is None:
        paint = np.array(_COLORS, np.float32) if depth > 1 else np.ones((1, 1), np.float32)
    else:
        paint = colors
        check_rank(paint, 2, "colors")
        if not paint.shape[0] or paint.shape[1] < depth:
            raise ValueError(
                f"colors must have shape [at least 1, at least {depth}], got {list(paint.shape)}"
            )
    drawn = xp.array(images)
    tints = xp.asarray(paint[:, :depth], images.dtype)
    sizes = np.array([height - 1, width - 1] * 2, np.float32)
    # Truncated as pixels are counted; what is no number, or far outside, is no box.
    places = boxes * sizes
    for number, image in enumerate(places):
        for box, corners in enumerate(image):
            if height and width and np.isfinite(corners).all():
                _draw(drawn[number], corners, tints[box % len(tints)])
    return drawn


def _draw(image: Array, corners: Array, tint: Array) -> None:
    height, width = image.shape[:2]
    top, left, bottom, right = (int(corner) for corner in corners)
    if top > bottom or left > right:
        return
    if top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    if top >= 0:
        image[top, columns] = tint
    if bottom < height:
        image[bottom, columns] = tint
    if left >= 0:
        image[rows, left] = tint
    if right < width:
        image[rows, right] = tint
