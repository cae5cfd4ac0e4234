"""Shapes and rearrangements: all forms that TensorFlow takes, and shapes known before a step."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from tests.core.ops.values import evaluate, fed, same

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(12.0).reshape(3, 4)


VALUES = {
    "reshape": (lambda: hr.reshape(X, [2, -1]), X.reshape(2, 6)),
    "reshape computed": (lambda: hr.reshape(X, hr.shape(X)[::-1]), X.reshape(4, 3)),
    "reshape fed": (lambda: hr.reshape(X, fed(np.int32([6, -1]), [2])), X.reshape(6, 2)),
    "reshape empty": (lambda: hr.reshape(X[:0], [0, -1]), X[:0]),
    "reshape empty fed": (lambda: hr.reshape(fed(X[:0]), fed(np.int32([0, -1]))), X[:0]),
    "reshape mixed": (lambda: hr.reshape(X, [fed(np.int32(6), []), 2]), X.reshape(6, 2)),
    "transpose": (lambda: hr.transpose(X), X.T),
    "transpose fed": (lambda: hr.transpose(X, fed(np.int32([1, 0]), [2])), X.T),
    "transpose negative": (lambda: hr.transpose(X, perm=[-1, 0]), X.T),
    "transpose conjugate": (
        lambda: hr.transpose([[1 + 2j, 3j]], conjugate=True),
        np.array([[1 - 2j], [-3j]]),
    ),
    "expand_dims": (lambda: hr.expand_dims(X, -1), X[..., None]),
    "expand_dims dim": (lambda: hr.expand_dims(X, dim=1), X[:, None]),
    "expand_dims fed": (lambda: hr.expand_dims(X, fed(np.int32(-2), [])), X[:, None]),
    "squeeze": (lambda: hr.squeeze(X[None, :, None]), X),
    "squeeze_dims": (lambda: hr.squeeze(X[None, :, None], squeeze_dims=[0]), X[:, None]),
    "broadcast_to": (
        lambda: hr.broadcast_to([1, 2], fed(np.int64([3, 2]))),
        np.int32([[1, 2]] * 3),
    ),
    "broadcast_dynamic_shape": (
        lambda: hr.broadcast_dynamic_shape(fed(np.int32([2, 1])), [3]),
        np.int32([2, 3]),
    ),
    "shape_n": (
        lambda: hr.shape_n([X, hr.constant(1)], out_type=hr.int64),
        [np.int64([3, 4]), np.zeros(0, np.int64)],
    ),
    "size": (lambda: hr.size(fed(X), out_type=hr.int64), 12),
    "rank": (lambda: hr.rank(fed(X)), 2),
    "ensure_shape": (lambda: hr.ensure_shape(fed(X), [None, 4]), X),
    "guarantee_const": (lambda: hr.guarantee_const(X), X),
    "sparse shape": (lambda: hr.shape(hr.SparseTensor([[0, 1]], [1.0], [2, 3])), np.int32([2, 3])),
    "sparse size": (lambda: hr.size(hr.SparseTensor([[0, 1]], [1.0], [2, 3])), 6),
    "sparse rank": (lambda: hr.rank(hr.SparseTensor([[0, 1]], [1.0], [2, 3])), 2),
}

ERRORS = {
    "expand_dims none": (lambda: hr.expand_dims(X), AttributeValueError, "'axis' is missing"),
    "expand_dims both": (
        lambda: hr.expand_dims(X, 0, dim=1),
        AttributeValueError,
        "names of one argument",
    ),
    "squeeze tensor": (
        lambda: hr.squeeze(X, fed(np.int32([0]))),
        AttributeValueError,
        "while the graph is built",
    ),
    "out_type": (lambda: hr.shape(X, out_type=hr.float32), DTypeError, "int32 or int64"),
    "shape fraction": (lambda: hr.reshape(X, [1.5, 8]), DTypeError, "int32 or int64"),
    "perm": (lambda: hr.transpose(X, fed(np.int32([0, 0]), [2])), ExecutionError, "no permutation"),
    "ensure": (lambda: hr.ensure_shape(fed(X), [2, None]), ExecutionError, "expected shape"),
    "static": (lambda: hr.ensure_shape(X, [2, None]), ShapeError, "incompatible"),
    "broadcast": (lambda: hr.broadcast_static_shape([2], [3]), ShapeError, "do not broadcast"),
}

SHAPES = {
    "reshape partly": (lambda: hr.reshape(X, [hr.placeholder(hr.int32, []), 2]), [6, 2]),
    "reshape unknown": (
        lambda: hr.reshape(hr.placeholder(hr.float32, [None, 4]), [-1, 2, 2]),
        [None, 2, 2],
    ),
    "reshape arithmetic": (lambda: hr.reshape(X, hr.shape(X) * [2, 1] // [1, 2]), [6, 2]),
    "transpose": (lambda: hr.transpose(X, hr.placeholder(hr.int32, [2])), [None, None]),
    "expand_dims": (lambda: hr.expand_dims(X, hr.placeholder(hr.int32, [])), [None, None, None]),
    "broadcast_to": (lambda: hr.broadcast_to([1, 2, 3], hr.placeholder(hr.int32, [2])), [None, 3]),
    "zeros": (lambda: hr.zeros([hr.shape(hr.placeholder(hr.int32, [None, 4]))[1], 2]), [4, 2]),
    "squeeze": (lambda: hr.squeeze(hr.placeholder(hr.int32, [None, 3]), 0), [3]),
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
