"""Ops of images: resizing, its gradient, and the choice of boxes."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.schema import Kind
from headrace.graph.spec import TensorSpec, as_shape, like
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Floating, Index, Real
from headrace.shapes import Shape

METHODS = ("bilinear", "nearest", "bicubic", "area")


def _resized(
    images: TensorSpec,
    size: TensorSpec,
    method: str,
    align_corners: bool,
    half_pixel_centers: bool,
) -> TensorSpec:
    if method not in METHODS:
        raise AttributeValueError(f"method must be one of {list(METHODS)}, got {shown(method)}")
    if align_corners and half_pixel_centers:
        raise AttributeValueError("align_corners and half_pixel_centers exclude one another")
    if method != "nearest" and not images.dtype.is_floating:
        raise DTypeError(f"images must be floating for method {method!r}, got {images.dtype}")
    if images.rank not in (None, 4):
        raise ShapeError(f"images must have 4 dimensions, got shape {images.shape}")
    if size.rank not in (None, 1) or not as_shape(size).is_compatible_with([None, None]):
        raise ShapeError(f"size must be a vector of height and width, got shape {size.shape}")
    if size.value is not None and (size.value <= 0).any():
        raise ShapeError(f"size must be positive, got {size.value.tolist()}")
    wanted = as_shape(size).with_rank(2)
    dims = images.shape.with_rank(4)
    if 0 in (dims[1], dims[2]):
        raise ShapeError(f"images without pixels cannot be resized, got shape {images.shape}")
    return TensorSpec(images.dtype, Shape([dims[0], *wanted, dims[3]]))


@op("Resize", host_inputs=["size"], public="")
def resize_op(
    images: Real,
    size: Index,
    method: str,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Spec:
    """Images resampled to another height and width.

    Args:
        images: [n, h, w, c], a real number; floating unless the method is "nearest".
        size: [2], the new height and width.
        method: "bilinear", "nearest", "bicubic" or "area".
        align_corners: Whether the centers of the corner pixels stay where they are.
        half_pixel_centers: Whether pixels are points at half-integer coordinates.

    Returns:
        ``[n, *size, c]``, the dtype of ``images``.
    """
    return _resized(images, size, method, align_corners, half_pixel_centers)


@op("ResizeGrad", accumulates=True, host_inputs=["size"], public="")
def resize_grad(
    grad: Floating,
    size: Index,
    method: str,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Spec:
    """Gradient of ``Resize``, which is linear: each pixel gets what it gave.

    Args:
        grad: [n, oh, ow, c], the gradient with respect to the output, floating.
        size: [2], the height and width of the images that were resized.
        method: As the resizing's.
        align_corners: As the resizing's.
        half_pixel_centers: As the resizing's.

    Returns:
        ``[n, *size, c]``, the dtype of ``grad``.
    """
    return _resized(grad, size, method, align_corners, half_pixel_centers)


_Single: TypeAlias = Annotated[Any, Kind("float32", lambda d: d == dtypes.float32, unify=False)]

_PICKED = "which boxes are picked is piecewise constant"


@op("NonMaxSuppression", public="", no_gradient=_PICKED)
def non_max_suppression_op(
    boxes: Floating,
    scores: Floating,
    max_output_size: Index,
    iou_threshold: Floating,
    score_threshold: Floating,
) -> Spec:
    """The boxes with the highest scores that overlap little.

    Args:
        boxes: [n, 4], two opposite corners (y, x, y, x) each, floating.
        scores: [n], the dtype of ``boxes``.
        max_output_size: [], how many are picked at most.
        iou_threshold: [], in [0, 1]: the share of two boxes' union that both must not cover.
        score_threshold: [], what a score must exceed.

    Returns:
        [picked], int32, indices of boxes by falling score.
    """
    if not boxes.shape.is_compatible_with([None, 4]):
        raise ShapeError(f"boxes must be [n, 4], got shape {boxes.shape}")
    _check_scores(scores, boxes)
    return _picked(max_output_size, iou_threshold, score_threshold)


@op("SoftNonMaxSuppression", public="", no_gradient=_PICKED)
def soft_non_max_suppression_op(
    boxes: Floating,
    scores: Floating,
    max_output_size: Index,
    iou_threshold: Floating,
    score_threshold: Floating,
    soft_nms_sigma: Floating,
) -> tuple[Spec, Spec]:
    """The boxes with the highest scores, where each box lowers the scores of those it overlaps.

    Args:
        boxes: As for ``NonMaxSuppression``.
        scores: As for ``NonMaxSuppression``.
        max_output_size: As for ``NonMaxSuppression``.
        iou_threshold: As for ``NonMaxSuppression``, whatever ``soft_nms_sigma`` is.
        score_threshold: [], what a score must exceed, after it was lowered.
        soft_nms_sigma: [], >= 0. Scores are multiplied with ``exp(-iou**2 / (2 * sigma))`` for
            each box that was picked before; with 1 where it is 0.

    Returns:
        [picked], int32, indices of boxes by falling score, and their scores, the dtype of
        ``scores``.
    """
    if not boxes.shape.is_compatible_with([None, 4]):
        raise ShapeError(f"boxes must be [n, 4], got shape {boxes.shape}")
    _check_scores(scores, boxes)
    if soft_nms_sigma.rank not in (None, 0):
        raise ShapeError(f"soft_nms_sigma must be a scalar, got shape {soft_nms_sigma.shape}")
    picked = _picked(max_output_size, iou_threshold, score_threshold)
    return picked, TensorSpec(scores.dtype, picked.shape)


@op(
    "CombinedNonMaxSuppression",
    host_inputs=["max_output_size_per_class", "max_total_size"],
    public="",
    no_gradient=_PICKED,
)
def combined_non_max_suppression_op(
    boxes: Floating,
    scores: Floating,
    max_output_size_per_class: Index,
    max_total_size: Index,
    iou_threshold: Floating,
    score_threshold: Floating,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> tuple[Spec, Spec, Spec, Spec]:
    """The boxes with the highest scores of several classes, of which each class overlaps little.

    Args:
        boxes: [batch, n, classes or 1, 4], two opposite corners (y, x, y, x) each, floating.
        scores: [batch, n, classes], the dtype of ``boxes``.
        max_output_size_per_class: [], how many of a class are picked at most.
        max_total_size: [], how many there are in all.
        iou_threshold: [], in [0, 1]: the largest share of two boxes' union that both may cover.
        score_threshold: [], what a score must exceed.
        pad_per_class: Whether results have no more places than the classes can fill.
        clip_boxes: Whether corners are clipped to [0, 1].

    Returns:
        By falling score, with zeros where there are no more: the boxes [batch, k, 4], their scores
        and classes [batch, k], and how many there are [batch], int32.
    """
    if boxes.rank not in (None, 4) or not boxes.shape.is_compatible_with([None, None, None, 4]):
        raise ShapeError(f"boxes must be [batch, n, classes or 1, 4], got shape {boxes.shape}")
    if scores.rank not in (None, 3):
        raise ShapeError(f"scores must be [batch, n, classes], got shape {scores.shape}")
    for label, spec in (
        ("max_output_size_per_class", max_output_size_per_class),
        ("max_total_size", max_total_size),
        ("iou_threshold", iou_threshold),
        ("score_threshold", score_threshold),
    ):
        if spec.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar, got shape {spec.shape}")
    batch = classes = None
    if scores.rank is not None:
        batch, rows, classes = scores.shape
        if boxes.rank is not None:
            batch = boxes.shape[:2].merge_with(Shape([batch, rows]))[0]
            kinds = boxes.shape[2]
            if None not in (kinds, classes) and kinds not in (1, classes):
                raise ShapeError(
                    f"boxes must be of 1 or {classes} classes, as the scores, got {kinds}"
                )
    count = None if max_total_size.value is None else int(max_total_size.value)
    each = max_output_size_per_class.value
    if count is not None and count <= 0:
        raise AttributeValueError(f"max_total_size must be > 0, got {count}")
    if each is not None and each < 0:
        raise AttributeValueError(f"max_output_size_per_class must be >= 0, got {each}")
    if pad_per_class:
        known = count is not None and each is not None and classes is not None
        count = min(count or 0, int(each or 0) * (classes or 0)) if known else None
    return (
        TensorSpec(boxes.dtype, Shape([batch, count, 4])),
        TensorSpec(boxes.dtype, Shape([batch, count])),
        TensorSpec(boxes.dtype, Shape([batch, count])),
        TensorSpec(dtypes.int32, Shape([batch])),
    )


@op("NonMaxSuppressionOverlaps", public="", no_gradient=_PICKED)
def non_max_suppression_overlaps_op(
    overlaps: Floating,
    scores: Floating,
    max_output_size: Index,
    overlap_threshold: Floating,
    score_threshold: Floating,
) -> Spec:
    """The rows with the highest scores that overlap little.

    Args:
        overlaps: [n, n], how much two of them overlap, floating.
        scores: [n], the dtype of ``overlaps``.
        max_output_size: [], how many are picked at most.
        overlap_threshold: [], the overlap that no two that are picked have.
        score_threshold: [], what a score must exceed.

    Returns:
        [picked], int32, indices by falling score.
    """
    if overlaps.rank not in (None, 2) or not overlaps.shape.is_compatible_with(
        [overlaps.shape[1], overlaps.shape[0]]
    ):
        raise ShapeError(f"overlaps must be square, got shape {overlaps.shape}")
    _check_scores(scores, overlaps)
    return _picked(max_output_size, overlap_threshold, score_threshold)


def _check_scores(scores: TensorSpec, rows: TensorSpec) -> None:
    if not scores.shape.is_compatible_with([rows.shape[0]]):
        raise ShapeError(
            f"scores must have shape [{rows.shape[0]}], one for each of {rows.shape}, got "
            f"{scores.shape}"
        )


def _picked(count: TensorSpec, *thresholds: TensorSpec) -> TensorSpec:
    for label, spec in zip(
        ("max_output_size", "the threshold of overlap", "score_threshold"),
        (count, *thresholds),
        strict=True,
    ):
        if spec.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar, got shape {spec.shape}")
    if count.value is not None and count.value < 0:
        raise AttributeValueError(f"max_output_size must be >= 0, got {count.value}")
    return TensorSpec(dtypes.int32, Shape([None]))


@op(
    "DrawBoundingBoxes",
    public="",
    no_gradient="a drawing is piecewise constant",
    host_inputs=["boxes"],
)
def draw_bounding_boxes_op(images: Floating, boxes: _Single, colors: _Single | None = None) -> Spec:
    """Draw the borders of boxes onto images.

    Args:
        images: [n, h, w, c], floating, with 1, 3 or 4 channels.
        boxes: [n, boxes, 4], float32: upper, left, lower and right border, from 0 to 1.
        colors: [colors, at least c], float32, used in turn; ten that differ if there are none.

    Returns:
        [n, h, w, c], the dtype of ``images``.
    """
    for spec, rank, label in ((images, 4, "images"), (boxes, 3, "boxes"), (colors, 2, "colors")):
        if spec is not None and spec.rank not in (None, rank):
            raise ShapeError(f"{label} must have {rank} dimensions, got shape {spec.shape}")
    if images.rank is not None and images.shape[3] not in (None, 1, 3, 4):
        raise ShapeError(f"images must have 1, 3 or 4 channels, got shape {images.shape}")
    if boxes.rank is not None and boxes.shape[2] not in (None, 4):
        raise ShapeError(f"boxes must have shape [n, boxes, 4], got {boxes.shape}")
    return like(images)
