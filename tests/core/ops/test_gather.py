"""Picking by indices, tuples and masks, scattering, and sorting into parts."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from tests.core.ops.values import evaluate, fed, same

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(12.0).reshape(3, 4)


VALUES = {
    "gather": (lambda: hr.gather(X, [2, 0], axis=-1), X[:, [2, 0]]),
    "gather fed axis": (lambda: hr.gather(X, [1, 0], axis=fed(np.int32(1), [])), X[:, [1, 0]]),
    "gather batch": (
        lambda: hr.gather(X, [[1, 0], [0, 0], [3, 2]], batch_dims=1),
        np.take_along_axis(X, np.array([[1, 0], [0, 0], [3, 2]]), 1),
    ),
    "gather batch end": (
        lambda: hr.gather(X, [[1], [0], [3]], batch_dims=-1),
        X[[0, 1, 2], [1, 0, 3]][:, None],
    ),
    "batch_gather": (lambda: hr.batch_gather(X, [[1], [0], [3]]), X[[0, 1, 2], [1, 0, 3]][:, None]),
    "gather_nd": (lambda: hr.gather_nd(X, [[0, 1], [2, 3]]), X[[0, 2], [1, 3]]),
    "gather_nd slices": (lambda: hr.gather_nd(X, [[2], [0]]), X[[2, 0]]),
    "gather_nd batch": (
        lambda: hr.gather_nd(X, [[1], [0], [3]], batch_dims=1),
        X[[0, 1, 2], [1, 0, 3]],
    ),
    "scatter_nd": (lambda: hr.scatter_nd([[0], [2], [0]], [1, 2, 3], [4]), np.int32([4, 0, 2, 0])),
    "scatter_nd fed": (
        lambda: hr.scatter_nd([[1]], X[:1], fed(np.int32([2, 4]))),
        np.stack([0 * X[0], X[0]]),
    ),
    "scatter_nd strings": (
        lambda: hr.scatter_nd([[1], [1]], ["a", "b"], [2]),
        np.array([b"", b"ab"], object),
    ),
    "update": (lambda: hr.tensor_scatter_update(X, [[0, 1]], [9.0])[0], np.array([0.0, 9, 2, 3])),
    "add": (
        lambda: hr.tensor_scatter_add(X, [[0, 1], [0, 1]], [9.0, 1])[0],
        np.array([0.0, 11, 2, 3]),
    ),
    "sub": (lambda: hr.tensor_scatter_sub(X, [[0, 1]], [9.0])[0], np.array([0.0, -8, 2, 3])),
    "mask": (lambda: hr.boolean_mask(X, X > 5), X[X > 5]),
    "mask axis": (lambda: hr.boolean_mask(X, [True, False, True, True], axis=-1), X[:, [0, 2, 3]]),
    "mask numbers": (lambda: hr.boolean_mask(X, [1, 0, 2]), X[[0, 2]]),
    "mask fed": (
        lambda: hr.boolean_mask(fed(X), fed(np.array([True, False, True]), [None])),
        X[[0, 2]],
    ),
    "where": (lambda: hr.where(X > 5), np.argwhere(X > 5)),
    "partition": (lambda: hr.dynamic_partition(X, [1, 0, 1], 2), [X[[1]], X[[0, 2]]]),
    "stitch": (lambda: hr.dynamic_stitch([[0, 2], [1]], [X[:2], X[2:]]), X[[0, 2, 1]]),
    "stitch twice": (lambda: hr.dynamic_stitch([[0, 1], [1]], [[1, 2], [3]]), np.int32([1, 3])),
    "parallel": (lambda: hr.parallel_stitch([[0, 2], [1]], [X[:2], X[2:]]), X[[0, 2, 1]]),
}

ERRORS = {
    "gather": (lambda: hr.gather(X, [-1]), ExecutionError, "index -1 is out of range"),
    "gather axis": (lambda: hr.gather(X, [0], axis=2), ShapeError, "axis 2"),
    "gather batch": (lambda: hr.gather(X, [[0], [0]], batch_dims=1), ShapeError, "incompatible"),
    "gather fed batch": (
        lambda: hr.gather(fed(X), fed(np.int32([[0], [0]])), axis=1, batch_dims=1),
        ExecutionError,
        "share the first 1",
    ),
    "gather_nd": (lambda: hr.gather_nd(X, [[0, 0, 0]]), ShapeError, "2 axes only"),
    "gather_nd batch": (
        lambda: hr.gather_nd(fed(X), fed(np.int32([[0], [0]]), [None, 1]), batch_dims=1),
        ExecutionError,
        "broadcast",
    ),
    "mask": (lambda: hr.boolean_mask(X, [True, False]), ShapeError, "incompatible"),
    "mask fed": (
        lambda: hr.boolean_mask(fed(X), fed(np.array([True, False]), [None])),
        ExecutionError,
        "one -1|do not fit",
    ),
    "mask scalar": (lambda: hr.boolean_mask(X, True), ShapeError, "rank above 0"),
    "mask strings": (lambda: hr.boolean_mask(X, ["a", "b", "c"]), DTypeError, "bool or numeric"),
    "parts": (lambda: hr.dynamic_partition(X, [0, 0, 0], 0), AttributeValueError, "between 1 and"),
    "stitch": (
        lambda: hr.dynamic_stitch([fed(np.int32([0, -1]))], [[1, 2]]),
        ExecutionError,
        "must be >= 0",
    ),
}

SHAPES = {
    "batch": (
        lambda: hr.gather(
            hr.placeholder(hr.int32, [None, 4]), hr.placeholder(hr.int32, [3, 2]), batch_dims=1
        ),
        [3, 2],
    ),
    "of a shape": (
        lambda: hr.zeros(hr.gather(hr.shape(hr.placeholder(hr.int32, [None, 4])), [1, 0])),
        [4, None],
    ),
    "mask": (lambda: hr.boolean_mask(X, [True, False, True]), [None, 4]),
    "where": (lambda: hr.where(hr.placeholder(hr.bool, [None, 2])), [None, 2]),
    "constant": (lambda: hr.where([True, False, True]), [2, 1]),
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


def test_slices_that_others_replaced_have_no_gradient():
    with hr.Graph().as_default(), hr.Session() as session:
        first, second = hr.constant([1.0, 2.0]), hr.constant([3.0])
        stitched = hr.dynamic_stitch([[0, 1], [1]], [first, second])
        slopes = hr.gradients(hr.reduce_sum(stitched * stitched), [first, second])
        same(session.run(slopes), [np.array([2.0, 0.0]), np.array([6.0])])
        base, updates = hr.constant([0.0, 5.0]), hr.constant([1.0, 2.0])
        updated = hr.tensor_scatter_update(base, [[0], [0]], updates)
        slopes = hr.gradients(hr.reduce_sum(updated * updated), [base, updates])
        same(session.run(slopes), [np.array([0.0, 10.0]), np.array([0.0, 4.0])])


def test_gradient_of_gather_is_row_sparse_along_the_first_axis_only():
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.constant(X)
        (rows,) = hr.gradients(hr.gather(x, [2, 0, 2]), [x])
        assert isinstance(rows, hr.IndexedSlices)
        same(session.run([rows.values, rows.indices]), [np.ones((3, 4)), np.array([2, 0, 2])])
        (dense,) = hr.gradients(hr.gather(x, [2, 0, 2], axis=1), [x])
        same(session.run(dense), np.array([[1.0, 0, 2, 0]] * 3))
