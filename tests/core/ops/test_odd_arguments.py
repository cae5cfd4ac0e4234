"""Odd arguments that TensorFlow 1.15 takes: values as there, compiled and plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "io", "train")

X = np.arange(12.0, dtype=np.float32).reshape(2, 3, 2)


def _fed(k: Any, dtype: Any = hr.int32) -> Any:
    """Return a value that is not known before the step."""
    return hr.placeholder_with_default(hr.constant(k, dtype), None)


VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "rot90 by a fed number": (lambda: hr.image.rot90(X, _fed(1)), np.rot90(X)),
    "rot90 by a negative fed number": (lambda: hr.image.rot90(X, _fed(-1)), np.rot90(X, -1)),
    "rot90 by a large fed number": (lambda: hr.image.rot90(X, _fed(6)), np.rot90(X, 2)),
    "rot90 by no turn": (lambda: hr.image.rot90(X, _fed(0)), X),
    "gather over no batch": (lambda: hr.gather(X, [1], axis=0, batch_dims=None), X[[1]]),
    "gather of columns": (lambda: hr.gather(X, [1], axis=1, batch_dims=None), X[:, [1]]),
    "gather_nd over no batch": (lambda: hr.gather_nd(X, [[1, 0]], batch_dims=0), X[[1], [0]]),
    "size of a placeholder": (lambda: hr.size(hr.placeholder(hr.float32, [0, 3])), 0),
    "shape of a placeholder": (lambda: hr.shape(hr.placeholder(hr.float32, [0, 3])), [0, 3]),
    "rank of a placeholder": (lambda: hr.rank(hr.placeholder(hr.float32, [None, 3])), 2),
    "rank of a matrix of none": (lambda: hr.rank(hr.placeholder(hr.float32, [None, None])), 2),
    "empty constant": (lambda: hr.constant(1.0, shape=[2, 0]), np.zeros((2, 0))),
    "empty constant of vectors": (lambda: hr.constant([1.0], shape=[0]), np.zeros(0)),
    "empty constant of cubes": (lambda: hr.constant(1, shape=[0, 2, 2]), np.zeros((0, 2, 2))),
    "sum over an axis twice": (lambda: hr.reduce_sum(X, axis=[0, 0]), X.sum(0)),
    "maximum over an axis twice": (lambda: hr.reduce_max(X, axis=[1, 1]), X.max(1)),
    "mean over an axis by two names": (lambda: hr.reduce_mean(X, axis=[2, -1]), X.mean(2)),
    "all of no booleans": (lambda: hr.reduce_all(np.zeros([0], bool)), True),
    "booleans from a list": (
        lambda: hr.subtract([1.0, 2.0], np.array([True, False])),
        np.float32([0, 2]),
    ),
    "a list and a list of booleans": (lambda: hr.add([1.0], [True]), np.float32([2])),
    "a boolean added to a number": (lambda: hr.add(np.int32(1), np.bool_(True)), np.int32(2)),
    "numbers beside booleans": (
        lambda: hr.greater_equal(np.float32([1, 0.5]), np.array([True, True])),
        [True, False],
    ),
    "divided by nothing": (lambda: hr.math.reciprocal_no_nan([0.0, 2.0]), [0.0, 0.5]),
    "divided by nothing, doubles": (
        lambda: hr.math.reciprocal_no_nan(hr.constant([0.0, 4.0], hr.float64)),
        [0.0, 0.25],
    ),
}


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("case", VALUES)
def test_odd_arguments_are_taken(case: str, executor: str) -> None:
    make, wanted = VALUES[case]
    with hr.Graph().as_default():
        tensor = make()
        with hr.Session(config=hr.Config(executor=executor, compile_after=0)) as sess:
            for _ in range(2):
                np.testing.assert_array_equal(sess.run(tensor), wanted)


STATIC: dict[str, tuple[Callable[[], Any], Any]] = {
    "equal numbers": (lambda: hr.equal(1, 1), True),
    "unequal numbers": (lambda: hr.equal(1, 2), False),
    "shape": (lambda: hr.shape(hr.placeholder(hr.float32, [2, 3])), [2, 3]),
    "unknown": (lambda: hr.placeholder(hr.float32, []), None),
}


@pytest.mark.parametrize("case", STATIC)
def test_values_that_are_known(case: str) -> None:
    make, wanted = STATIC[case]
    with hr.Graph().as_default():
        found = hr.get_static_value(make())
        assert (found is None) if wanted is None else np.array_equal(found, wanted)


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_a_queue_of_any_length(executor: str) -> None:
    with hr.Graph().as_default():
        queue = hr.FIFOQueue(-1, hr.float32, shapes=[[]])
        into, out = queue.enqueue_many([np.ones(500, np.float32)]), queue.dequeue_many(500)
        with hr.Session(config=hr.Config(executor=executor)) as sess:
            sess.run(into)
            assert sess.run(queue.size()) == 500
            assert sess.run(out).sum() == 500


def test_what_a_graph_tells_of_its_parts() -> None:
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float32, [2], name="x")
        y = hr.add(x, 1.0, name="y")
        assert graph.is_feedable(x)
        assert graph.is_feedable(y)
        graph.prevent_feeding(y)
        assert not graph.is_feedable(y)
        assert graph.is_feedable(x)
        assert y.op.node_def.name == "y"
        assert y.op.node_def.input[0] == "x"
        assert x.op.node_def.op == "Placeholder"


def test_gather_needs_an_axis_or_shared_axes() -> None:
    with pytest.raises(hr.errors.DTypeError, match="batch_dims must hold integers, got None"):
        hr.gather(X, [1], batch_dims=None)


def test_booleans_come_before_no_numbers() -> None:
    with hr.Graph().as_default(), pytest.raises(TypeError, match=r"x must be numeric.*, got bool"):
        hr.add(np.array([True]), [1.0])
