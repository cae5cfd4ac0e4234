"""Joining, splitting, repeating and bordering, with numbers and tensors as arguments."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from tests.core.ops.values import evaluate, fed, same

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.arange(12.0).reshape(3, 4)


VALUES = {
    "concat": (lambda: hr.concat([X, X[:1]], axis=0), np.concatenate([X, X[:1]])),
    "concat one": (lambda: hr.concat(X, 0), X),
    "concat scalar": (lambda: hr.concat([hr.constant(1)], 0), 1),
    "concat axis": (lambda: hr.concat([X, X], fed(np.int32(-1), [])), np.concatenate([X, X], 1)),
    "stack": (lambda: hr.stack([X, X], axis=-1), np.stack([X, X], -1)),
    "stack tensor": (lambda: hr.stack(hr.constant(X)), X),
    "stack nothing": (lambda: hr.stack([]), np.zeros(0, np.float32)),
    "parallel_stack": (lambda: hr.parallel_stack([X, X]), np.stack([X, X])),
    "unstack": (lambda: hr.unstack(X, axis=1), list(X.T)),
    "unstack num": (lambda: hr.unstack(fed(X), num=3), list(X)),
    "split": (lambda: hr.split(X, 2, -1), np.split(X, 2, 1)),
    "split sizes": (lambda: hr.split(X, [1, -1], 1), [X[:, :1], X[:, 1:]]),
    "split fed sizes": (lambda: hr.split(X, fed(np.int32([1, -1]), [2])), [X[:1], X[1:]]),
    "split fed num": (lambda: hr.split(X, fed(np.int32([1, 2]), [None]), num=2), [X[:1], X[1:]]),
    "split fed axis": (lambda: hr.split(X, 2, fed(np.int32(-1), [])), np.split(X, 2, 1)),
    "split unknown": (lambda: hr.split(fed(X), 2, 1), np.split(X, 2, 1)),
    "tile": (lambda: hr.tile(X, [2, 1]), np.tile(X, (2, 1))),
    "tile fed": (lambda: hr.tile(fed(X), fed(np.int64([2, 3]))), np.tile(X, (2, 3))),
    "tile strings": (lambda: hr.tile(["a", "b"], [2]), np.array([b"a", b"b"] * 2, object)),
    "pad": (
        lambda: hr.pad(X, [[1, 2], [0, 1]], constant_values=7),
        np.pad(X, [(1, 2), (0, 1)], constant_values=7),
    ),
    "pad fed": (lambda: hr.pad(X, fed(np.int32([[1, 2], [0, 1]]))), np.pad(X, [(1, 2), (0, 1)])),
    "pad reflect": (
        lambda: hr.pad(X, [[1, 2], [0, 1]], "reflect"),
        np.pad(X, [(1, 2), (0, 1)], "reflect"),
    ),
    "pad symmetric": (
        lambda: hr.pad(X, [[3, 2], [0, 1]], "Symmetric"),
        np.pad(X, [(3, 2), (0, 1)], "symmetric"),
    ),
    "pad strings": (
        lambda: hr.pad(["a"], [[1, 0]], constant_values="z"),
        np.array([b"z", b"a"], object),
    ),
    "pad bools": (lambda: hr.pad([True], [[1, 0]]), np.array([False, True])),
    "pad scalar": (lambda: hr.pad(5, []), 5),
    "pad one": (
        lambda: hr.pad(X, [[fed(np.int32(1), []), 0], [0, 0]]),
        np.pad(X, [(1, 0), (0, 0)]),
    ),
}

ERRORS = {
    "concat scalars": (lambda: hr.concat([1, 2], 0), ShapeError, "use stack"),
    "concat axes": (lambda: hr.concat([X, X], [0]), ShapeError, "must be one integer"),
    "split parts": (lambda: hr.split(fed(X), 5, 1), ExecutionError, "do not divide axis 1"),
    "split sum": (lambda: hr.split(X, [1, 4], 1), ShapeError, "add up to 5"),
    "split two free": (lambda: hr.split(X, [-1, -1]), ShapeError, "do not divide"),
    "split tensor": (
        lambda: hr.split(X, hr.constant(3)),
        ShapeError,
        "must be a number, not a tensor",
    ),
    "split unknown": (lambda: hr.split(X, fed(np.int32([1, 2]), [None])), ShapeError, "pass num="),
    "unstack": (lambda: hr.unstack(fed(X, [None, 4])), ShapeError, "pass num="),
    "tile": (lambda: hr.tile(X, fed(np.int32([-1, 1]))), ExecutionError, "integers >= 0"),
    "pad fed": (
        lambda: hr.pad(X, fed(np.int32([[-1, 1], [0, 0]]))),
        ExecutionError,
        "must be >= 0",
    ),
    "pad reflect fed": (
        lambda: hr.pad(X, fed(np.int32([[3, 1], [0, 0]])), "REFLECT"),
        ExecutionError,
        "at most 2",
    ),
    "pad value": (
        lambda: hr.pad([1, 2], [[1, 1]], constant_values=1.5),
        DTypeError,
        "expected int32",
    ),
    "pad mode": (lambda: hr.pad(X, [[1, 1], [1, 1]], "edge"), AttributeValueError, "mode must be"),
}

SHAPES = {
    "concat": (
        lambda: hr.concat([hr.placeholder(hr.int32, [None, 4]), hr.constant([[1, 2, 3, 4]])], 1),
        [1, 8],
    ),
    "concat ranks": (
        lambda: hr.concat([hr.placeholder(hr.float64), hr.constant(X)], -1),
        [3, None],
    ),
    "split": (lambda: hr.split(X, hr.placeholder(hr.int32, [2]))[0], [None, 4]),
    "tile": (lambda: hr.tile(hr.placeholder(hr.int32, [None, 4]), [2, 3]), [None, 12]),
    "pad": (lambda: hr.pad(X, [[hr.placeholder(hr.int32, []), 2], [0, 1]]), [None, 5]),
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


@pytest.mark.parametrize(
    "build",
    [
        lambda x: hr.concat([x, 2 * x], fed(np.int32(1), [])),
        lambda x: hr.split(x, fed(np.int32([1, 2]), [2]))[1],
        lambda x: hr.tile(x, fed(np.int32([2, 3]), [2])),
        lambda x: hr.pad(x, fed(np.int32([[1, 2], [0, 1]])), "SYMMETRIC"),
        lambda x: hr.pad(x, fed(np.int32([[1, 2], [0, 1]])), constant_values=3.0),
    ],
    ids=["concat", "split", "tile", "mirror", "pad"],
)
def test_gradient_with_arguments_that_only_a_step_knows(build):
    step = 1e-6
    direction = np.random.default_rng(3).standard_normal(X.shape)
    with hr.Graph().as_default() as graph, hr.Session() as session:
        x = hr.placeholder(hr.float64, [3, 4])
        y = build(x)
        loss = hr.reduce_sum(y * y * y)
        (slope,) = hr.gradients(loss, [x])
        assert slope.shape == [3, 4]
        feeds = graph.test_feeds
        ahead, behind = (session.run(loss, {**feeds, x: X + s * direction}) for s in (step, -step))
        got = float(np.sum(session.run(slope, {**feeds, x: X}) * direction))
        assert got == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)
