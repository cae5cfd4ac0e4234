"""Reversing, rolling, blocks, grids and repeats."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ExecutionError, ShapeError
from tests.core.ops.values import evaluate, fed, same

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(12.0).reshape(3, 4)
IMAGE = np.arange(64.0).reshape(1, 4, 4, 4)


VALUES = {
    "reverse": (lambda: hr.reverse(X, [-1]), X[:, ::-1]),
    "reverse fed": (lambda: hr.reverse_v2(X, fed(np.int32([0, 1]))), X[::-1, ::-1]),
    "reverse_sequence": (
        lambda: hr.reverse_sequence(X, [1, 2, 4], seq_dim=1, batch_dim=0),
        np.array([[0.0, 1, 2, 3], [5, 4, 6, 7], [11, 10, 9, 8]]),
    ),
    "roll": (lambda: hr.roll(X, [1, -2], [0, 1]), np.roll(X, (1, -2), (0, 1))),
    "roll fed": (lambda: hr.roll(X, fed(np.int32(1), []), -1), np.roll(X, 1, 1)),
    "invert": (lambda: hr.invert_permutation(fed(np.int32([2, 0, 1]))), np.int32([1, 2, 0])),
    "unravel": (lambda: hr.unravel_index([5, 7], [3, 4]), np.int32([[1, 1], [1, 3]])),
    "space_to_depth": (
        lambda: hr.space_to_depth(np.arange(16).reshape(1, 4, 4, 1), 2)[0, 0],
        np.array([[0, 1, 4, 5], [2, 3, 6, 7]]),
    ),
    "space_to_depth NCHW": (
        lambda: hr.space_to_depth(np.arange(16).reshape(1, 1, 4, 4), 2, data_format="NCHW")[
            0, :, 0
        ],
        np.array([[0, 2], [1, 3], [4, 6], [5, 7]]),
    ),
    "depth_to_space": (
        lambda: hr.depth_to_space(hr.space_to_depth(fed(IMAGE, [None] * 4), 2), 2),
        IMAGE,
    ),
    "depth NCHW": (
        lambda: hr.depth_to_space(
            hr.space_to_depth(IMAGE, 2, data_format="NCHW"), 2, data_format="NCHW"
        ),
        IMAGE,
    ),
    "space_to_batch": (
        lambda: hr.space_to_batch(np.arange(4).reshape(1, 2, 2, 1), [[0, 0], [0, 0]], 2),
        np.arange(4).reshape(4, 1, 1, 1),
    ),
    "batch and back": (
        lambda: hr.batch_to_space_nd(
            hr.space_to_batch_nd(fed(IMAGE, [None] * 4), [2, 3], [[1, 1], [2, 0]]),
            [2, 3],
            [[1, 1], [2, 0]],
        ),
        IMAGE,
    ),
    "batch and back, fed": (
        lambda: hr.batch_to_space_nd(
            hr.space_to_batch_nd(
                fed(IMAGE, [None] * 4), fed(np.int32([2]), [1]), fed(np.int32([[1, 1]]), [1, 2])
            ),
            fed(np.int32([2]), [1]),
            fed(np.int32([[1, 1]]), [1, 2]),
        ),
        IMAGE,
    ),
    "required": (
        lambda: list(hr.required_space_to_batch_paddings([5, 7], [2, 4])),
        [np.int32([[0, 1], [0, 1]])] * 2,
    ),
    "meshgrid": (
        lambda: hr.meshgrid([1, 2], [3, 4, 5]),
        [np.int32(g) for g in np.meshgrid([1, 2], [3, 4, 5])],
    ),
    "meshgrid ij": (
        lambda: hr.meshgrid([1, 2], fed(np.int32([3, 4, 5])), indexing="ij"),
        [np.int32(g) for g in np.meshgrid([1, 2], [3, 4, 5], indexing="ij")],
    ),
    "repeat": (lambda: hr.repeat(X, 2, axis=1), X.repeat(2, 1)),
    "repeat each": (lambda: hr.repeat(X, [1, 0, 2], axis=0), X.repeat([1, 0, 2], 0)),
    "repeat fed": (lambda: hr.repeat(X, fed(np.int32([1, 0, 2])), axis=0), X.repeat([1, 0, 2], 0)),
    "repeat flat": (lambda: hr.repeat(["a", "b"], [2, 1]), np.array([b"a", b"a", b"b"], object)),
    "edit_distance": (
        lambda: hr.edit_distance(
            hr.SparseTensor([[0, 0], [0, 1]], ["a", "b"], [2, 2]),
            hr.SparseTensor([[0, 0], [1, 0]], ["a", "c"], [2, 2]),
        ),
        np.float32([1, 1]),
    ),
}

ERRORS = {
    "reverse": (lambda: hr.reverse(X, [0, -2]), ShapeError, "names an axis twice"),
    "reverse scalar": (lambda: hr.reverse(X, 0), ShapeError, "must be a vector"),
    "sequence": (lambda: hr.reverse_sequence(X, [1, 2, 5], 1), ExecutionError, "out of range"),
    "sequence axes": (
        lambda: hr.reverse_sequence(X, [1, 2, 3]),
        AttributeValueError,
        "'seq_axis' is missing",
    ),
    "roll": (lambda: hr.roll(X, [1], 0), ShapeError, "one shape"),
    "blocks": (
        lambda: hr.space_to_depth(np.zeros((1, 3, 3, 1)), 2),
        ShapeError,
        "does not divide by 2",
    ),
    "block size": (
        lambda: hr.space_to_depth(np.zeros((1, 3, 3, 1)), 1),
        AttributeValueError,
        "integer >= 2",
    ),
    "format": (
        lambda: hr.depth_to_space(np.zeros((1, 2, 2, 4)), 2, data_format="HWC"),
        AttributeValueError,
        "NHWC or NCHW",
    ),
    "block rank": (lambda: hr.space_to_depth(X, 2), ShapeError, "must have rank 4"),
    "batch": (
        lambda: hr.space_to_batch(np.zeros((1, 3, 4, 1)), [[0, 0], [0, 0]], 2),
        ShapeError,
        "does not divide",
    ),
    "crops": (
        lambda: hr.batch_to_space(np.zeros((4, 2, 2, 1)), [[3, 3], [0, 0]], 2),
        ShapeError,
        "crops 3 and 3",
    ),
    "crops fed": (
        lambda: hr.batch_to_space(
            np.zeros((4, 2, 2, 1)), fed(np.int32([[3, 2], [0, 0]]), [2, 2]), 2
        ),
        ExecutionError,
        "do not lie",
    ),
    "meshgrid": (lambda: hr.meshgrid([1], [2], indexing="yx"), AttributeValueError, "'xy' or 'ij'"),
    "meshgrid other": (lambda: hr.meshgrid([1], [2], sparse=True), AttributeValueError, "sparse"),
    "repeat": (lambda: hr.repeat(X, [1, 2], axis=0), (ShapeError, ExecutionError), "broadcast"),
    "repeat negative": (lambda: hr.repeat(X, -1), AttributeValueError, "must be >= 0"),
    "invert": (
        lambda: hr.invert_permutation(fed(np.int32([0, 0]))),
        ExecutionError,
        "occurs twice",
    ),
    "unravel": (lambda: hr.unravel_index([12], [3, 4]), ExecutionError, "out of range"),
}

SHAPES = {
    "blocks": (
        lambda: hr.space_to_depth(hr.placeholder(hr.int32, [None, None, 4, 3]), 2),
        [None, None, 2, 12],
    ),
    "batch": (
        lambda: hr.space_to_batch(hr.placeholder(hr.int32, [None, 4, 4, 3]), [[0, 0], [1, 1]], 2),
        [None, 2, 3, 3],
    ),
    "repeat": (lambda: hr.repeat(X, [1, 0, 2], axis=0), [3, 4]),
    "meshgrid": (lambda: hr.meshgrid(hr.placeholder(hr.int32, [None]), [1, 2, 3])[0], [3, None]),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    build, expected = VALUES[name]
    same(evaluate(build)[1], expected)


@pytest.mark.parametrize("name", ERRORS)
def test_refused(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        evaluate(build)


@pytest.mark.parametrize("name", SHAPES)
def test_static_shape(name):
    build, expected = SHAPES[name]
    with hr.Graph().as_default():
        assert build().shape == expected
