"""The functions that measure and compare images, find edges, and choose boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import rank, reshape, shape
from headrace.ops.complex import abs_ as absolute
from headrace.ops.conversion import cast
from headrace.ops.depthwise import depthwise_conv2d
from headrace.ops.elementwise import add, equal, greater_equal, maximum, power, square
from headrace.ops.identity import ensure_shape
from headrace.ops.image import (
    draw_bounding_boxes_op,
    non_max_suppression_op,
    non_max_suppression_overlaps_op,
    soft_non_max_suppression_op,
)
from headrace.ops.image_color import convert_image_dtype
from headrace.ops.image_crop import image_tensor
from headrace.ops.joining import concat, stack, tile
from headrace.ops.padding import pad
from headrace.ops.pooling import avg_pool
from headrace.ops.reduce import reduce_all, reduce_mean, reduce_prod, reduce_sum
from headrace.ops.report import holding
from headrace.ops.transcendental import log


class PaddedSelection(NamedTuple):
    """What ``non_max_suppression_padded`` returns.

    Attributes:
        selected_indices: [n], int32, the indices of boxes, and zeros behind them.
        valid_outputs: [], int32, how many of these are indices.
    """

    selected_indices: Tensor
    valid_outputs: Tensor


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """Sum up how much neighboring pixels differ.

    Args:
        images: [h, w, c] or [n, h, w, c], numeric.
        name: The name of the operations.

    Returns:
        [] or [n], the dtype of ``images``.

    Raises:
        ShapeError: if the rank is another one.
    """
    with name_scope(name, "total_variation"):
        tensor = image_tensor(images, label="images", unknown=True)
        down = tensor[..., 1:, :, :] - tensor[..., :-1, :, :]
        across = tensor[..., :, 1:, :] - tensor[..., :, :-1, :]
        axes = [-3, -2, -1]
        return add(reduce_sum(absolute(down), axes), reduce_sum(absolute(across), axes))


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Return the differences of each pixel from the one below, and from the one to the right.

    Args:
        image: [n, h, w, c], numeric.

    Returns:
        Two tensors of the shape of ``image``; the last row of the first and the last column of the
        second are 0.

    Raises:
        ShapeError: if the rank is not 4.
    """
    with name_scope(None, "image_gradients"):
        tensor = image_tensor(image, least=4)
        down = tensor[:, 1:] - tensor[:, :-1]
        across = tensor[:, :, 1:] - tensor[:, :, :-1]
        return (
            pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]]),
            pad(across, [[0, 0], [0, 0], [0, 1], [0, 0]]),
        )


# Differences of neighbors across the edge, sums along it.
_SOBEL = np.array(
    [
        [[-1, -2, -1], [0, 0, 0], [1, 2, 1]],
        [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],
    ]
)


def sobel_edges(image: Any) -> Tensor:
    """Return how steep images are, down and across.

    Args:
        image: [n, h, w, c], floating; at least 2 pixels high and wide.

    Returns:
        [n, h, w, c, 2], the dtype of ``image``.

    Raises:
        ShapeError: if the rank is not 4.
    """
    with name_scope(None, "sobel_edges"):
        tensor = image_tensor(image, least=4)
        filter_ = _SOBEL.transpose(1, 2, 0)[:, :, None, :].astype(tensor.dtype.numpy)
        filters = _per_channel(filter_, tensor)
        padded = pad(tensor, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
        edges = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
        return reshape(edges, [*_sizes(tensor), 2])


def _per_channel(window: Any, images: Tensor) -> Tensor:
    """Return a filter [h, w, 1, m] as one for each channel of images, [h, w, c, m]."""
    channels = images.spec.shape[-1]
    if channels is None:
        return tile(convert_to_tensor(window), stack([1, 1, shape(images)[-1], 1]))
    return convert_to_tensor(np.tile(window, (1, 1, channels, 1)))


def _sizes(tensor: Tensor) -> list[Any]:
    """Return the dimensions: numbers where they are known, else scalar tensors."""
    dims = tensor.shape.as_list()
    if None not in dims:
        return list(dims)
    sizes = shape(tensor)
    return [sizes[i] if d is None else d for i, d in enumerate(dims)]


def _flat(images: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return images with one axis of images, and what gives their like the axes that they had."""
    if images.shape.rank is not None:
        before = _sizes(images)
        flat = reshape(images, [-1, *before[-3:]])
        return flat, lambda made: reshape(made, [*before[:-3], *_sizes(made)[1:]])
    sizes = shape(images)
    # Their rank is known by this.
    flat = ensure_shape(reshape(images, concat([[-1], sizes[-3:]], 0)), [None] * 4)
    return flat, lambda made: reshape(made, concat([sizes[:-3], shape(made)[1:]], 0))


def _pair(a: Any, b: Any, max_val: Any, function: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return two sets of images and their largest value on the scale of float32."""
    first, second = convert_to_tensor(a), convert_to_tensor(b)
    for tensor in (first, second):
        if tensor.shape.rank is not None and tensor.shape.rank < 3:
            raise ShapeError(
                f"{function}: images must have 3 dimensions at least, got {tensor.spec.shape}"
            )
    if not first.spec.shape[-3:].is_compatible_with(second.spec.shape[-3:]):
        raise ShapeError(
            f"{function}: images {first.spec.shape} and {second.spec.shape} must match"
        )
    tails = [tensor.spec.shape[-3:] for tensor in (first, second)]
    if not all(tail.is_fully_defined() for tail in tails):
        told = [f"{function}: images must match, got shapes", shape(first), shape(second)]
        first, second = (
            tensor if tensor.shape.rank else holding(tensor, greater_equal(rank(tensor), 3), told)
            for tensor in (first, second)
        )
        same = reduce_all(equal(shape(first)[-3:], shape(second)[-3:]))
        first = holding(first, same, told)
    largest = cast(convert_to_tensor(max_val), first.dtype)
    return (
        convert_image_dtype(first, dtypes.float32),
        convert_image_dtype(second, dtypes.float32),
        convert_image_dtype(largest, dtypes.float32),
    )


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Return the peak signal-to-noise ratio of images, in decibels.

    Args:
        a: [..., h, w, c], a real number.
        b: The same.
        max_val: The difference of the largest and the smallest value that is possible.
        name: The name of the operations.

    Returns:
        [...], float32.

    Raises:
        ShapeError: if shapes do not match.
    """
    with name_scope(name, "PSNR"):
        first, second, largest = _pair(a, b, max_val, "psnr")
        error = reduce_mean(square(first - second), [-3, -2, -1])
        scale = 10 / float(np.log(10.0))
        found: Tensor = log(largest) * (2 * scale) - log(error) * scale
        return found


# Windows are constants of the graph.
_LARGEST_WINDOW = 1 << 10


def _gauss(size: int, sigma: float) -> Any:
    """Return a window [size, size] of weights that sum to 1."""
    along = np.arange(size, dtype=np.float64) - (size - 1) / 2.0
    with np.errstate(all="ignore"):
        weights = np.exp(-0.5 * (along / np.float64(sigma)) ** 2)
        table = np.outer(weights, weights)
        return (table / table.sum()).astype(np.float32)


def _similarity(
    first: Tensor,
    second: Tensor,
    largest: Tensor,
    size: int,
    sigma: float,
    k1: float,
    k2: float,
) -> tuple[Tensor, Tensor]:
    """Return the similarity, and its part that is contrast and structure, by image and channel."""
    if not 1 <= size <= _LARGEST_WINDOW:
        raise ShapeError(f"ssim: filter_size must be from 1 to {_LARGEST_WINDOW}, got {size}")
    height, width = first.spec.shape[-3], first.spec.shape[-2]
    if height is None or width is None:
        few = [f"ssim: images must be {size} pixels high and wide at least, got", shape(first)]
        first = holding(first, reduce_all(greater_equal(shape(first)[-3:-1], size)), few)
    if any(d is not None and d < size for d in (height, width)):
        raise ShapeError(
            f"ssim: images {first.spec.shape} must be {size} pixels high and wide at least"
        )
    weights = _per_channel(_gauss(size, sigma)[:, :, None, None], first)

    def smooth(x: Tensor) -> Tensor:
        flat, as_before = _flat(x)
        return as_before(depthwise_conv2d(flat, weights, [1, 1, 1, 1], "VALID"))

    mean_first, mean_second = smooth(first), smooth(second)
    c1, c2 = square(largest * k1), square(largest * k2)
    product = mean_first * mean_second * 2.0
    squares = square(mean_first) + square(mean_second)
    luminance = (product + c1) / (squares + c1)
    both = smooth(first * second) * 2.0
    spread = smooth(square(first) + square(second))
    structure = (both - product + c2) / (spread - squares + c2)
    axes = [-3, -2]
    return reduce_mean(luminance * structure, axes), reduce_mean(structure, axes)


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Return the structural similarity of images.

    Args:
        img1: [..., h, w, c], a real number; at least ``filter_size`` pixels high and wide.
        img2: The same.
        max_val: The difference of the largest and the smallest value that is possible.
        filter_size: The size of the window.
        filter_sigma: The width of the Gaussian in the window.
        k1: Keeps from dividing by 0 where images are dark.
        k2: Keeps from dividing by 0 where images are even.

    Returns:
        [...], float32: the mean over pixels and channels.

    Raises:
        ShapeError: if shapes do not match, or images are too small.

    References:
        Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, Image quality assessment: from error
        visibility to structural similarity, 2004, https://doi.org/10.1109/TIP.2003.819861
    """
    with name_scope(None, "SSIM"):
        images = _pair(img1, img2, max_val, "ssim")
        per_channel, _ = _similarity(*images, filter_size, filter_sigma, k1, k2)
        return reduce_mean(per_channel, [-1])


# The weights of the scales, as in the paper.
_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Return the structural similarity of images at several scales, each half of the one before.

    Args:
        img1: [..., h, w, c], a real number.
        img2: The same.
        max_val: The difference of the largest and the smallest value that is possible.
        power_factors: The power of each scale.
        filter_size: As for ``ssim``; the smallest scale must have as many pixels.
        filter_sigma: As for ``ssim``.
        k1: As for ``ssim``.
        k2: As for ``ssim``.

    Returns:
        [...], float32: the mean over channels.

    Raises:
        ShapeError: if shapes do not match, or images are too small.

    References:
        Z. Wang, E. P. Simoncelli, A. C. Bovik, Multiscale structural similarity for image quality
        assessment, 2003, https://doi.org/10.1109/ACSSC.2003.1292216
    """
    if not len(power_factors):
        raise AttributeValueError("ssim_multiscale: power_factors must not be empty")
    with name_scope(None, "MS-SSIM"):
        first, second, largest = _pair(img1, img2, max_val, "ssim_multiscale")
        parts = []
        for scale in range(len(power_factors)):
            if scale:
                first, second = _halved(first), _halved(second)
            similarity, structure = _similarity(
                first, second, largest, filter_size, filter_sigma, k1, k2
            )
            parts.append(maximum(structure, 0))
        parts[-1] = maximum(similarity, 0)
        with np.errstate(all="ignore"):
            powers = convert_to_tensor(np.array(power_factors, np.float32))
        return reduce_mean(reduce_prod(power(stack(parts, -1), powers), [-1]), [-1])


def _halved(images: Tensor) -> Tensor:
    """Return images of half the size; odd ones are padded with their last row and column."""
    flat, as_before = _flat(images)
    height, width = (d % 2 for d in _sizes(flat)[1:3])
    if isinstance(height, Tensor) or isinstance(width, Tensor) or height or width:
        flat = pad(flat, [[0, 0], [0, height], [0, width], [0, 0]], mode="SYMMETRIC")
    return as_before(avg_pool(flat, 2, 2, "VALID"))


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """Pick the boxes with the highest scores that overlap little.

    Args:
        boxes: [n, 4], floating: y and x of one corner, y and x of the other.
        scores: [n], the dtype of ``boxes``.
        max_output_size: [], how many are picked at most.
        iou_threshold: [], in [0, 1]: the share of two boxes' union that both must not cover.
        score_threshold: [], what a score must exceed.
        name: The name of the operation.

    Returns:
        [picked], int32: indices of boxes by falling score; of equal scores the first.

    Raises:
        ShapeError: if shapes do not fit.
    """
    return non_max_suppression_op(
        boxes, scores, max_output_size, iou_threshold, score_threshold, name=name
    )


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """Pick what has the highest scores and overlaps little, by a table of overlaps.

    Args:
        overlaps: [n, n], floating: how much two overlap.
        scores: [n], the dtype of ``overlaps``.
        max_output_size: [], how many are picked at most.
        overlap_threshold: [], the overlap that no two that are picked have.
        score_threshold: [], what a score must exceed.
        name: The name of the operation.

    Returns:
        [picked], int32: indices by falling score; of equal scores the first.

    Raises:
        ShapeError: if shapes do not fit.
    """
    return non_max_suppression_overlaps_op(
        overlaps, scores, max_output_size, overlap_threshold, score_threshold, name=name
    )


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Pick boxes with high scores, where each lowers the scores of those that it overlaps.

    Args:
        boxes: As for ``non_max_suppression``.
        scores: As for ``non_max_suppression``.
        max_output_size: As for ``non_max_suppression``.
        iou_threshold: As for ``non_max_suppression``, whatever ``soft_nms_sigma`` is.
        score_threshold: [], what a score must exceed, after it was lowered.
        soft_nms_sigma: [], how gently scores are lowered: by ``exp(-iou**2 / (2 * sigma))``; not at
            all where it is 0.
        name: The name of the operation.

    Returns:
        The indices, int32, by falling score, and the scores.

    Raises:
        ShapeError: if shapes do not fit.

    References:
        N. Bodla, B. Singh, R. Chellappa, L. S. Davis, Soft-NMS: improving object detection with one
        line of code, 2017, https://arxiv.org/abs/1704.04503
    """
    return soft_non_max_suppression_op(
        boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma, name=name
    )


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> PaddedSelection:
    """Pick boxes as ``non_max_suppression`` does, with zeros behind the last index.

    Args:
        boxes: As for ``non_max_suppression``.
        scores: As for ``non_max_suppression``.
        max_output_size: As for ``non_max_suppression``.
        iou_threshold: As for ``non_max_suppression``.
        score_threshold: As for ``non_max_suppression``.
        pad_to_max_output_size: Whether the result always has ``max_output_size`` elements.
        name: The name of the operations.

    Returns:
        A tuple with the fields ``selected_indices``, int32, and ``valid_outputs``, int32: how many
        of them were picked.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(name, "non_max_suppression_padded"):
        picked = non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)
        count = shape(picked)[0]
        if pad_to_max_output_size:
            most = cast(convert_to_tensor(max_output_size), dtypes.int32)
            picked = pad(picked, [[0, most - count]])
            if most.spec.value is not None:
                picked = reshape(picked, [int(most.spec.value)])
        return PaddedSelection(picked, count)


def draw_bounding_boxes(
    images: Any, boxes: Any, name: str | None = None, colors: Any = None
) -> Tensor:
    """Draw the borders of boxes onto images.

    Args:
        images: [n, h, w, c], float32 or another floating dtype, with 1, 3 or 4 channels.
        boxes: [n, boxes, 4], float32: upper, left, lower and right border of each, from 0 to 1.
            Borders outside the image are not drawn, nor are boxes that end before they begin.
        name: The name of the operation.
        colors: [colors, at least c], float32: what the boxes are drawn in, in turn; ten colours
            if None. Images with one channel are drawn in white then.

    Returns:
        [n, h, w, c], the dtype of ``images``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    images = convert_to_tensor(images, preferred_dtype=dtypes.float32)
    boxes = convert_to_tensor(boxes, dtypes.float32)
    if colors is not None:
        colors = convert_to_tensor(colors, dtypes.float32)
    return draw_bounding_boxes_op(images, boxes, colors, name=name)
