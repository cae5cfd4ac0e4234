"""Cross-entropies and losses of single predictions, against NumPy in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ExecutionError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(1)
KNOWN: dict[str, Any] = {
    "static": lambda shape: shape,
    "ranked": lambda s: [None] * len(s),
    "unknown": lambda s: None,
}


def evaluate(function: Any, values: list[Any], shapes: str = "static") -> list[Any]:
    """Return the value of a function of tensors, and its gradients (None where there is none)."""
    with hr.Graph().as_default(), hr.Session() as session:
        xs = [hr.placeholder(v.dtype, KNOWN[shapes](list(v.shape))) for v in values]
        y = function(*xs)
        gradients = hr.gradients(y, xs)
        feeds = dict(zip(xs, values, strict=True))
        found = session.run([y, *(g for g in gradients if g is not None)], feeds)
    rest = iter(found[1:])
    return [found[0], *(None if g is None else next(rest) for g in gradients)]


def log_softmax(x: Any, axis: int) -> Any:
    return x - np.logaddexp.reduce(x, axis, keepdims=True)


def distributions(shape: Any, axis: int = -1) -> Any:
    drawn = RNG.uniform(0.1, 1, shape)
    return drawn / drawn.sum(axis, keepdims=True)


@pytest.mark.parametrize("shapes", KNOWN)
@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 3), -1), ((4, 3), 0), ((3,), -1), ((2, 3, 4), 1), ((0, 3), -1)]
)
def test_softmax_cross_entropy(shape: Any, axis: int, shapes: str) -> None:
    x, z = RNG.standard_normal(shape), distributions(shape, axis)
    logs = log_softmax(x, axis)
    loss, by_z, by_x = evaluate(
        lambda z, x: hr.nn.softmax_cross_entropy_with_logits_v2(z, x, axis), [z, x], shapes
    )
    np.testing.assert_allclose(loss, -(z * logs).sum(axis), rtol=1e-9)
    np.testing.assert_allclose(by_x, np.exp(logs) - z, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(by_z, -logs, rtol=1e-9)
    first = evaluate(
        lambda z, x: hr.nn.softmax_cross_entropy_with_logits(labels=z, logits=x, dim=axis),
        [z, x],
        shapes,
    )
    np.testing.assert_allclose(first[0], loss)
    assert first[1] is None
    np.testing.assert_allclose(first[2], by_x)


def test_labels_are_repeated_along_axes_of_one() -> None:
    x, z = RNG.standard_normal((4, 3)), distributions((1, 3))
    loss, by_z, _ = evaluate(lambda z, x: hr.nn.softmax_cross_entropy_with_logits_v2(z, x), [z, x])
    logs = log_softmax(x, -1)
    np.testing.assert_allclose(loss, -(z * logs).sum(-1), rtol=1e-9)
    np.testing.assert_allclose(by_z, -logs.sum(0, keepdims=True), rtol=1e-9)


def test_no_classes_cost_nothing() -> None:
    x = np.zeros((2, 3, 0), np.float32)
    for shapes in KNOWN:
        loss, *_ = evaluate(lambda x: hr.nn.softmax_cross_entropy_with_logits_v2(x, x), [x], shapes)
        np.testing.assert_array_equal(loss, np.zeros((2, 3)))


@pytest.mark.parametrize("shapes", KNOWN)
@pytest.mark.parametrize("shape", [(4, 3), (3,), (2, 3, 4), (2, 0, 3)])
def test_sparse_softmax_cross_entropy(shape: Any, shapes: str) -> None:
    x, labels = RNG.standard_normal(shape), RNG.integers(0, shape[-1], shape[:-1])
    logs = log_softmax(x, -1)
    loss, _, by_x = evaluate(
        lambda z, x: hr.nn.sparse_softmax_cross_entropy_with_logits(labels=z, logits=x),
        [labels, x],
        shapes,
    )
    expected = -np.take_along_axis(logs, labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(loss, expected, rtol=1e-9)
    np.testing.assert_allclose(by_x, np.exp(logs) - np.eye(shape[-1])[labels], atol=1e-12)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_sigmoid_cross_entropy() -> None:
    x, z = np.append(RNG.standard_normal(5), [0.0, 20.0, -20.0]), RNG.random(8)
    loss, by_z, by_x = evaluate(
        lambda z, x: hr.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x), [z, x]
    )
    np.testing.assert_allclose(loss, np.logaddexp(0, x) - x * z, rtol=1e-9)
    np.testing.assert_allclose(by_x, sigmoid(x) - z, rtol=1e-9)
    np.testing.assert_allclose(by_z, -x)


def test_sigmoid_cross_entropy_keeps_small_losses() -> None:
    x = np.array([20.0, -20.0, 1e4, -1e4], np.float32)
    z = np.array([1, 0, 1, 0], np.float32)
    loss, *_ = evaluate(
        lambda z, x: hr.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x), [z, x]
    )
    np.testing.assert_allclose(loss, [math.exp(-20), math.exp(-20), 0, 0], rtol=1e-5)


def test_weighted_cross_entropy() -> None:
    x, z, q = np.append(RNG.standard_normal(5), 0.0), RNG.random(6), np.array(3.0)
    loss, by_z, by_x, by_q = evaluate(
        lambda z, x, q: hr.nn.weighted_cross_entropy_with_logits(z, x, q), [z, x, q]
    )
    missed = np.logaddexp(0, -x)
    np.testing.assert_allclose(loss, q * z * missed + (1 - z) * np.logaddexp(0, x), rtol=1e-9)
    np.testing.assert_allclose(by_x, -q * z * sigmoid(-x) + (1 - z) * sigmoid(x), rtol=1e-9)
    np.testing.assert_allclose(by_z, q * missed - np.logaddexp(0, x), rtol=1e-9)
    np.testing.assert_allclose(by_q, (z * missed).sum(), rtol=1e-9)


def test_log_poisson_loss() -> None:
    c, z = RNG.standard_normal(6), np.array([0.0, 0.5, 1.0, 2.0, 7.0, 30.0])
    loss, by_z, by_c = evaluate(lambda z, c: hr.nn.log_poisson_loss(z, c), [z, c])
    np.testing.assert_allclose(loss, np.exp(c) - c * z)
    np.testing.assert_allclose(by_c, np.exp(c) - z)
    np.testing.assert_allclose(by_z, -c)
    full, by_z, _ = evaluate(lambda z, c: hr.nn.log_poisson_loss(z, c, True), [z, c])
    with np.errstate(all="ignore"):
        extra = np.where(z > 1, z * np.log(z) - z + 0.5 * np.log(2 * np.pi * z), 0)
        slope = np.where(z > 1, np.log(z) + 0.5 / z, 0)
    np.testing.assert_allclose(full, loss + extra)
    np.testing.assert_allclose(by_z, slope - c)


def f32(*shape: int) -> Any:
    return hr.placeholder(hr.float32, shape)


REFUSED: dict[str, Any] = {
    "names": (
        lambda: hr.nn.sigmoid_cross_entropy_with_logits(f32(2), f32(2)),
        ShapeError,
        "both by name",
    ),
    "sigmoid shapes": (
        lambda: hr.nn.sigmoid_cross_entropy_with_logits(labels=f32(1), logits=f32(2)),
        ShapeError,
        "must have one shape",
    ),
    "scalar": (
        lambda: hr.nn.softmax_cross_entropy_with_logits(labels=f32(), logits=f32()),
        ShapeError,
        "at least 1 dimension",
    ),
    "sparse scalar": (
        lambda: hr.nn.sparse_softmax_cross_entropy_with_logits(labels=1, logits=f32()),
        ShapeError,
        "at least 1 dimension",
    ),
    "sparse shapes": (
        lambda: hr.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=f32(2, 2, 3)),
        ShapeError,
        "without the last axis",
    ),
    "axis": (
        lambda: hr.nn.softmax_cross_entropy_with_logits_v2(f32(2, 3), f32(2, 3), 2),
        ShapeError,
        "axis 2 is out of range",
    ),
    "axis twice": (
        lambda: hr.nn.softmax_cross_entropy_with_logits_v2(f32(2, 3), f32(2, 3), 1, dim=1),
        AttributeValueError,
        "one of axis and dim",
    ),
    "no weight": (
        lambda: hr.nn.weighted_cross_entropy_with_logits(f32(2), f32(2)),
        AttributeValueError,
        "needs labels, logits and pos_weight",
    ),
    "labels twice": (
        lambda: hr.nn.weighted_cross_entropy_with_logits(f32(2), f32(2), 1, targets=f32(2)),
        AttributeValueError,
        "one of labels and targets",
    ),
    "poisson shapes": (
        lambda: hr.nn.log_poisson_loss(f32(2), f32(3)),
        ShapeError,
        "must have one shape",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    build, error, match = REFUSED[case]
    with hr.Graph().as_default(), pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_out_of_range_are_refused(label: int) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        loss = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=[label], logits=f32(1, 3))
        (x,) = (
            op.outputs[0] for op in hr.get_default_graph().operations if op.type == "Placeholder"
        )
        with pytest.raises(ExecutionError, match=f"index {label} is out of range"):
            session.run(loss, {x: [[1, 2, 3]]})
