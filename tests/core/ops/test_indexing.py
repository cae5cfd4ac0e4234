"""Python's indices, blocks and strided slices, and assignment to slices of variables."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ExecutionError, GraphError, ShapeError
from tests.core.ops.values import evaluate, fed, same

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(12.0).reshape(3, 4)


VALUES = {
    "tensor": (lambda: hr.constant(X)[:, fed(np.int32(2), [])], X[:, 2]),
    "bounds": (lambda: hr.constant(X)[fed(np.int32(1), []) :, : fed(np.int64(-1), [])], X[1:, :-1]),
    "step": (lambda: hr.constant(X)[:: fed(np.int32(-1), [])], X[::-1]),
    "newaxis": (lambda: hr.constant(X)[hr.newaxis, ..., 1, hr.newaxis], X[None, ..., 1, None]),
    "mask": (lambda: hr.constant(X)[hr.constant(X) > 5], X[X > 5]),
    "mask array": (lambda: hr.constant(X)[np.array([True, False, True])], X[[0, 2]]),
    "array": (lambda: hr.constant(X)[np.array(1), np.int64(2)], X[1, 2]),
    "slice": (lambda: hr.slice(X, [0, 1], [2, -1]), X[:2, 1:]),
    "slice fed": (lambda: hr.slice(X, fed(np.int32([0, 1])), [2, 2]), X[:2, 1:3]),
    "slice mixed": (lambda: hr.slice(X, [0, fed(np.int32(1), [])], [-1, 2]), X[:, 1:3]),
    "strided": (lambda: hr.strided_slice(X, [2, 3], [0, 0], [-1, -2]), X[2:0:-1, 3:0:-2]),
    "strided masks": (
        lambda: hr.strided_slice(X, [1, 1], [2, 3], begin_mask=2, shrink_axis_mask=1),
        X[1, :3],
    ),
    "strided new": (lambda: hr.strided_slice(X, [0, 1], [0, 2], new_axis_mask=1), X[None, 1:2]),
    "strided ellipsis": (lambda: hr.strided_slice(X, [0, 1], [0, 3], ellipsis_mask=1), X[..., 1:3]),
    "strided fed length": (
        lambda: hr.strided_slice(X, fed(np.int32([1]), [None]), fed(np.int32([2]), [None])),
        X[1:2],
    ),
    "strided fed": (lambda: hr.strided_slice(X, fed(np.int32([0, 1]), [2]), [2, 3]), X[:2, 1:3]),
}

ERRORS = {
    "fraction": (lambda: hr.constant(X)[1.5], AttributeValueError, "indexed by integers"),
    "bound": (lambda: hr.constant(X)[1:2.5], AttributeValueError, "indexed by integers"),
    "list": (lambda: hr.constant(X)[[True, False, True]], AttributeValueError, "use hr.gather"),
    "vector": (lambda: hr.constant(X)[hr.constant([0, 1])], AttributeValueError, "use hr.gather"),
    "slice": (lambda: hr.slice(X, [0, 5], [2, -1]), ShapeError, "do not lie within axis 1"),
    "slice fed": (
        lambda: hr.slice(X, fed(np.int32([0, 3])), [2, 2]),
        ExecutionError,
        "do not lie within axis 1",
    ),
    "slice count": (lambda: hr.slice(X, [0], [2]), ShapeError, "one entry per dimension"),
    "strided": (
        lambda: hr.strided_slice(X, [0, 1], [2, 3], [1, 0]),
        AttributeValueError,
        "must not be 0",
    ),
    "strided many": (lambda: hr.strided_slice(X, [0, 0, 0], [1, 1, 1]), ShapeError, "3 indices"),
    "strided ellipses": (
        lambda: hr.strided_slice(X, [0, 1], [2, 3], ellipsis_mask=3),
        AttributeValueError,
        "at most one bit",
    ),
    "strided element": (
        lambda: hr.strided_slice(X, [1], [2], [-1], shrink_axis_mask=1),
        AttributeValueError,
        "must be 1",
    ),
    "strided unknown": (
        lambda: hr.strided_slice(
            X, fed(np.int32([0]), [None]), fed(np.int32([2]), [None]), shrink_axis_mask=1
        ),
        ShapeError,
        "known length",
    ),
    "assign": (lambda: hr.constant(X)[0].assign(X[0]), GraphError, "no slice of a variable"),
}

SHAPES = {
    "tensor": (lambda: hr.constant(X)[:, hr.placeholder(hr.int32, [])], [3]),
    "bound": (lambda: hr.constant(X)[:, hr.placeholder(hr.int32, []) :], [3, None]),
    "slice": (lambda: hr.slice(X, hr.placeholder(hr.int32, [2]), [2, 3]), [2, 3]),
    "unknown": (lambda: hr.placeholder(hr.int32, [None, 4])[::2, 1:3], [None, 2]),
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


def test_assignment_to_slices_of_a_variable():
    with hr.Graph().as_default(), hr.Session() as session:
        variable = hr.Variable(X)
        at = hr.placeholder(hr.int32, [])
        block = variable[1:, ::2].assign([[1.0, 2.0], [3.0, 4.0]])
        element = variable[at, -1].assign(9.0)
        row = hr.strided_slice(variable, [0], [1], var=variable).assign(X[:1] * 2)
        session.run(variable.initializer)
        expected = X.copy()
        expected[1:, ::2] = [[1, 2], [3, 4]]
        same(session.run(block), expected)
        expected[2, -1] = 9
        same(session.run(element, {at: 2}), expected)
        expected[0] *= 2
        same(session.run(row), expected)
        same(session.run(variable), expected)
        with pytest.raises(ExecutionError, match="out of range"):
            session.run(element, {at: 3})
        same(session.run(variable), expected)
        with pytest.raises(ShapeError, match=r"the slice has shape \[4\]"):
            variable[0].assign([1.0, 2.0])


def test_second_gradient_of_a_backward_slice():
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.constant(X)
        part = x[::-2, 1::2]
        (first,) = hr.gradients(hr.reduce_sum(part**3), [x])
        (second,) = hr.gradients(hr.reduce_sum(first * first), [x])
        expected = np.zeros_like(X)
        expected[::-2, 1::2] = 36 * X[::-2, 1::2] ** 3
        np.testing.assert_allclose(session.run(second), expected)
