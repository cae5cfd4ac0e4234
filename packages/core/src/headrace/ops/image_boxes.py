"""Functions that pick boxes of several classes."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace import dtypes
from headrace.graph.convert import convert_to_tensor
from headrace.graph.tensor import Tensor
from headrace.ops.image import combined_non_max_suppression_op


class CombinedNonMaxSuppression(NamedTuple):
    """What ``combined_non_max_suppression`` returns, by falling score.

    Attributes:
        nmsed_boxes: [batch, k, 4], the boxes; zeros where there are no more.
        nmsed_scores: [batch, k], their scores.
        nmsed_classes: [batch, k], their classes.
        valid_detections: [batch], int32, how many there are.
    """

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Pick the boxes with the highest scores of several classes, of which each overlaps little.

    Args:
        boxes: [batch, n, classes or 1, 4], float32, two opposite corners (y, x, y, x) each.
        scores: [batch, n, classes], float32.
        max_output_size_per_class: [], how many of a class are picked at most.
        max_total_size: [], how many there are in all.
        iou_threshold: [], in [0, 1]: the largest share of two boxes' union that both may cover.
        score_threshold: [], what a score must exceed.
        pad_per_class: Whether results have no more places than the classes can fill.
        clip_boxes: Whether corners are clipped to [0, 1].
        name: The name of the operation.

    Returns:
        The boxes, their scores and classes, with zeros where there are no more, and how many there
        are.

    Raises:
        ShapeError: if shapes do not fit each other.
        AttributeValueError: if there are to be fewer boxes than none, or none in all.
    """
    corners = convert_to_tensor(boxes, preferred_dtype=dtypes.float32)
    found = combined_non_max_suppression_op(
        corners,
        convert_to_tensor(scores, preferred_dtype=corners.dtype),
        max_output_size_per_class,
        max_total_size,
        convert_to_tensor(iou_threshold, preferred_dtype=corners.dtype),
        convert_to_tensor(score_threshold, preferred_dtype=corners.dtype),
        pad_per_class,
        clip_boxes,
        name=name or "combined_non_max_suppression/CombinedNonMaxSuppression",
    )
    return CombinedNonMaxSuppression(*found)
