"""Samples of resizing and of the choice of boxes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import NDArray, array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = ("uint8", "int32", "bfloat16", "float32", "float64")


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _weights(
    size: int, out: int, method: str, align_corners: bool, half_pixel_centers: bool
) -> NDArray:
    """Return the matrix [out, size] that resamples along one axis."""
    matrix = np.zeros((out, size))
    ratio = (size - 1) / (out - 1) if align_corners and out > 1 else size / out
    for i in range(out):
        place = (i + 0.5) * ratio - 0.5 if half_pixel_centers else i * ratio
        if method == "nearest":
            at = place + 0.5 if align_corners or half_pixel_centers else place
            matrix[i, min(size - 1, math.floor(at))] = 1
        elif method == "area":
            for k in range(math.ceil((i + 1) * ratio)):
                covered = max(0.0, min(k + 1, (i + 1) * ratio) - max(k, i * ratio))
                # Beyond the image its border repeats.
                matrix[i, min(k, size - 1)] += covered / ratio
        else:
            a = -0.5 if half_pixel_centers else -0.75
            for k in range(math.floor(place) - 1, math.floor(place) + 3):
                near = max(0.0, 1 - abs(place - k)) if method == "bilinear" else 0.0
                weight = _cubic(place - k, a) if method == "bicubic" else near
                if method == "bicubic" and half_pixel_centers and not 0 <= k < size:
                    continue
                matrix[i, min(max(k, 0), size - 1)] += weight
            matrix[i] /= matrix[i].sum()
    return matrix


def _resize(images: NDArray, size: NDArray, **attrs: Any) -> NDArray:
    down = _weights(images.shape[1], int(size[0]), **attrs)
    across = _weights(images.shape[2], int(size[1]), **attrs)
    return np.asarray(np.einsum("oh,nhwc,pw->nopc", down, images, across), images.dtype)


def _resize_grad(grad: NDArray, size: NDArray, **attrs: Any) -> NDArray:
    down = _weights(int(size[0]), grad.shape[1], **attrs)
    across = _weights(int(size[1]), grad.shape[2], **attrs)
    return np.asarray(np.einsum("oh,nopc,pw->nhwc", down, grad, across))


# Sizes are such that the ratios are exact in every dtype, and the weights of cubic convolution
# fall on the steps of its table.
_SIZES = {
    "larger": ((2, 3, 2, 2), (6, 8)),
    "smaller": ((1, 8, 6, 1), (2, 3)),
    "mixed": ((1, 2, 8, 1), (8, 2)),
    "one": ((1, 3, 4, 2), (1, 1)),
}
_FLAGS = {
    "plain": (False, False),
    "corners": (True, False),
    "centers": (False, True),
}


def _resize_rows(method: str) -> list[Row]:
    rows: list[Row] = []
    for flag, (align, half) in _FLAGS.items():
        if method == "area" and half:
            continue
        for label, (shape, size) in _SIZES.items():
            if flag != "plain" and label in ("mixed", "one"):
                continue
            if align:
                shape, size = {
                    "larger": ((2, 3, 2, 2), (5, 5)),
                    "smaller": ((1, 9, 5, 1), (3, 3)),
                }[label]
            attrs = {"method": method, "align_corners": align, "half_pixel_centers": half}
            wanted, before = array(size, "int32"), array(shape[1:3], "int64")
            name = f"{method}_{flag}_{label}"
            numbers = _NUMBERS if method == "nearest" else _FLOATS
            images, grad = uniform(shape, -9, 9), uniform((shape[0], *size, shape[3]))
            rows += [
                Sample("Resize", [images, wanted], attrs, _resize, label=name, dtypes=numbers),
                Sample("ResizeGrad", [grad, before], attrs, _resize_grad, label=name),
            ]
    return rows


_IMAGE = integers((1, 3, 3, 2), 0, 9, "float32")
_LINEAR = {"method": "bilinear"}


def _size(*values: int) -> Any:
    return array(list(values), "int32")


REJECTS: list[Row] = [
    Reject("Resize", [_IMAGE, _size(2, 2)], {"method": "best"}, AttributeValueError, "must be one"),
    Reject(
        "Resize",
        [_IMAGE, _size(2, 2)],
        {**_LINEAR, "align_corners": True, "half_pixel_centers": True},
        AttributeValueError,
        "exclude one another",
        label="flags",
    ),
    Reject(
        "Resize",
        [integers((1, 3, 3, 2), 0, 9), _size(2, 2)],
        _LINEAR,
        DTypeError,
        "must be floating",
        label="dtype",
    ),
    Reject(
        "Resize",
        [integers((3, 3, 2), 0, 9, "float32"), _size(2, 2)],
        _LINEAR,
        ShapeError,
        "4 dimensions",
        label="rank",
    ),
    Reject("Resize", [_IMAGE, _size(2, 2, 2)], _LINEAR, ShapeError, "height and", label="sizes"),
    Reject("Resize", [_IMAGE, _size(2, 0)], _LINEAR, ShapeError, "positive", label="no_size"),
    Reject(
        "Resize",
        [integers((1, 0, 3, 2), 0, 9, "float32"), _size(2, 2)],
        _LINEAR,
        ShapeError,
        "without pixels",
        label="no_pixels",
    ),
    Reject(
        "Resize",
        [_IMAGE, _size(1 << 30, 1 << 30)],
        _LINEAR,
        ExecutionError,
        "too large",
        when="run",
        label="hostile",
    ),
    Reject("ResizeGrad", [_IMAGE, _size(-1, 2)], _LINEAR, ShapeError, "positive"),
]


def _iou(a: NDArray, b: NDArray) -> float:
    def span(box: NDArray, axis: int) -> tuple[float, float]:
        return min(box[axis], box[axis + 2]), max(box[axis], box[axis + 2])

    both, areas = 1.0, [1.0, 1.0]
    for axis in (0, 1):
        (low_a, high_a), (low_b, high_b) = span(a, axis), span(b, axis)
        both *= max(0.0, min(high_a, high_b) - max(low_a, low_b))
        areas = [areas[0] * (high_a - low_a), areas[1] * (high_b - low_b)]
    return both / (sum(areas) - both) if min(areas) > 0 else 0.0


def _picked(overlaps: Any, scores: NDArray, most: Any, limit: Any, least: Any) -> NDArray:
    kept: list[int] = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        fits = all(overlaps(i, j) < limit for j in kept)
        if scores[i] > least and fits and len(kept) < most:
            kept.append(i)
    return np.array(kept, np.int32)


def _suppressed(boxes: NDArray, scores: NDArray, *rest: Any) -> NDArray:
    return _picked(lambda i, j: _iou(boxes[i], boxes[j]), scores, *rest)


def _softly_suppressed(
    boxes: NDArray, scores: NDArray, most: Any, limit: Any, least: Any, sigma: Any
) -> tuple[NDArray, NDArray]:
    left = {i: float(score) for i, score in enumerate(scores) if score > least}
    kept: list[tuple[int, float]] = []
    while left and len(kept) < most:
        best = max(left, key=lambda i: (left[i], -i))
        kept.append((best, left.pop(best)))
        for i in list(left):
            share = _iou(boxes[best], boxes[i])
            left[i] *= math.exp(-(share**2) / (2 * sigma)) if sigma else 1.0
            if not left[i] > least or share >= limit:
                del left[i]
    return np.array([i for i, _ in kept], np.int32), np.array([score for _, score in kept])


def _suppressed_overlaps(overlaps: NDArray, scores: NDArray, *rest: Any) -> NDArray:
    return _picked(lambda i, j: overlaps[i, j], scores, *rest)


_BOXES = array(
    [
        [0.0, 0.0, 1.0, 1.0],
        [0.125, 0.0, 1.125, 1.0],
        [1.0, 1.0, 0.0, 0.125],
        [0.0, 10.0, 1.0, 11.0],
        [0.0, 10.0, 1.0, 11.0],
        [3.0, 3.0, 3.0, 3.0],
    ]
)
_SCORES = array([0.5, 0.75, 0.25, 0.5, 0.5, 0.125])


def _thresholds(most: int, limit: float, least: float) -> list[Any]:
    return [array(most, "int32"), array(limit), array(least)]


def _rejected(rows: tuple[int, int], scores: int, limit: float) -> list[Any]:
    return [
        integers(rows, 0, 9, "float32"),
        integers((scores,), 0, 9, "float32"),
        array(1, "int32"),
        array(limit, "float32"),
        array(0.0, "float32"),
    ]


def _drawn(images: Any, boxes: Any, colors: Any = None) -> Any:
    """Draw by asking each pixel whether it is on the border of a box."""
    drawn = images.copy()
    height, width, depth = images.shape[1:]
    for i, rows in enumerate(np.asarray(boxes, np.float32)):
        for number, box in enumerate(rows):
            top, left, bottom, right = np.trunc(
                box * np.array([height - 1, width - 1, height - 1, width - 1], np.float32)
            )
            for y in range(height):
                for x in range(width):
                    inside = top <= y <= bottom and left <= x <= right
                    if inside and (y in (top, bottom) or x in (left, right)):
                        drawn[i, y, x] = colors[number % len(colors)][:depth]
    return drawn


_FRAMES = array(
    [[[0.1, 0.1, 0.8, 0.7], [-0.5, 0.3, 0.4, 1.5]], [[0, 0, 1, 1], [0.9, 0, 0.1, 1]]], "float32"
)
_TINTS = [[0.25, 0.5, 0.75, 1.0]]

BOXES: list[Row] = [
    Sample(
        "DrawBoundingBoxes",
        [uniform((2, 6, 8, 3)), _FRAMES, array(_TINTS, "float32")],
        {},
        _drawn,
    ),
    Sample(
        "DrawBoundingBoxes",
        [uniform((2, 6, 8, 1)), _FRAMES, None],
        {},
        lambda images, boxes, colors=None: _drawn(images, boxes, [[1.0]]),
        label="white",
    ),
    Reject(
        "DrawBoundingBoxes",
        [array(np.zeros((1, 2, 2, 2)), "float32"), array(np.zeros((1, 1, 4)), "float32"), None],
        {},
        ShapeError,
        "must have 1, 3 or 4 channels",
        label="channels",
    ),
    Sample(
        "NonMaxSuppression",
        [_BOXES, _SCORES, *_thresholds(6, 0.5, -np.inf)],
        {},
        _suppressed,
        exact_shape=False,
    ),
    Sample(
        "NonMaxSuppression",
        [_BOXES, _SCORES, *_thresholds(2, 1.0, 0.25)],
        {},
        _suppressed,
        exact_shape=False,
        label="few",
    ),
    Sample(
        "NonMaxSuppression",
        [array(np.zeros((0, 4))), array(np.zeros((0,))), *_thresholds(2, 0.5, 0.0)],
        {},
        _suppressed,
        exact_shape=False,
        label="empty",
    ),
    Sample(
        "SoftNonMaxSuppression",
        [_BOXES, _SCORES, *_thresholds(6, 0.875, 0.0), array(0.5)],
        {},
        _softly_suppressed,
        dtypes=("float32", "float64"),
        exact_shape=False,
    ),
    Sample(
        "SoftNonMaxSuppression",
        [_BOXES, _SCORES, *_thresholds(4, 0.5, -np.inf), array(0.0)],
        {},
        _softly_suppressed,
        exact_shape=False,
        label="hard",
    ),
    Reject(
        "SoftNonMaxSuppression",
        [*_rejected((3, 4), 3, 0.5), array([1.0], "float32")],
        {},
        ShapeError,
        "soft_nms_sigma must be a scalar",
    ),
    *(
        Sample(
            "CombinedNonMaxSuppression",
            [
                array(
                    [[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.125, 1.0, 1.125]], [[0.0, 2.0, 1.0, 3.0]]]]
                ),
                array([[[0.75, 0.125], [0.5, 0.25], [0.625, 0.0]]]),
                array(2, "int32"),
                array(5, "int32"),
                array(0.5),
                array(0.0625),
            ],
            attrs,
            lambda *_, boxes=boxes, scores=scores, classes=classes, **__: (
                np.array([boxes]),
                np.array([scores]),
                np.array([classes]),
                np.array([3], np.int32),
            ),
            dtypes=("float32", "float64"),
            label=label,
        )
        for label, attrs, boxes, scores, classes in (
            (
                "",
                {},
                [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0.125, 1, 1], [0] * 4, [0] * 4],
                [0.75, 0.625, 0.25, 0, 0],
                [0, 0, 1, 0, 0],
            ),
            (
                "padded",
                {"pad_per_class": True, "clip_boxes": False},
                [[0, 0, 1, 1], [0, 2, 1, 3], [0, 0.125, 1, 1.125], [0] * 4],
                [0.75, 0.625, 0.25, 0],
                [0, 0, 1, 0],
            ),
        )
    ),
    Reject(
        "CombinedNonMaxSuppression",
        [
            array(np.zeros((1, 2, 3, 4)), "float32"),
            array(np.zeros((1, 2, 2)), "float32"),
            array(1, "int32"),
            array(1, "int32"),
            array(0.5, "float32"),
            array(0.0, "float32"),
        ],
        {},
        ShapeError,
        "1 or 2 classes",
    ),
    Sample(
        "NonMaxSuppressionOverlaps",
        [
            array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.75], [0.0, 0.75, 1.0]]),
            array([0.25, 0.5, 0.25]),
            *_thresholds(3, 0.5, 0.0),
        ],
        {},
        _suppressed_overlaps,
        exact_shape=False,
    ),
    Reject(
        "NonMaxSuppression",
        _rejected((3, 3), 3, 0.5),
        {},
        ShapeError,
        r"boxes must be \[n, 4\]",
    ),
    Reject(
        "NonMaxSuppression",
        _rejected((3, 4), 3, 1.5),
        {},
        ExecutionError,
        r"in \[0, 1\]",
        when="run",
        label="threshold",
    ),
    Reject(
        "NonMaxSuppressionOverlaps",
        _rejected((3, 3), 2, 0.5),
        {},
        ShapeError,
        "scores must have shape",
    ),
]

SAMPLES: list[Row] = [
    *(row for method in ("bilinear", "nearest", "bicubic", "area") for row in _resize_rows(method)),
    *BOXES,
    *REJECTS,
]
