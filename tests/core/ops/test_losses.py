"""Weighted losses, their reductions, and the collection that holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError
from headrace.losses import Reduction

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(0)
LABELS, FOUND = RNG.random((4, 3)), RNG.random((4, 3))
CLASSES = np.array([0, 2, 1, 1])


def log_softmax(x: Any) -> Any:
    return x - np.logaddexp.reduce(x, -1, keepdims=True)


ERROR = np.abs(FOUND - LABELS)
SIGNS = 2 * np.round(LABELS) - 1
LOSSES: dict[str, Any] = {
    "absolute_difference": (lambda **k: hr.losses.absolute_difference(LABELS, FOUND, **k), ERROR),
    "mean_squared_error": (lambda **k: hr.losses.mean_squared_error(LABELS, FOUND, **k), ERROR**2),
    "huber_loss": (
        lambda **k: hr.losses.huber_loss(LABELS, FOUND, delta=0.3, **k),
        np.where(ERROR < 0.3, ERROR**2 / 2, 0.3 * ERROR - 0.045),
    ),
    "log_loss": (
        lambda **k: hr.losses.log_loss(LABELS, FOUND, **k),
        -LABELS * np.log(FOUND + 1e-7) - (1 - LABELS) * np.log(1 - FOUND + 1e-7),
    ),
    "hinge_loss": (
        lambda **k: hr.losses.hinge_loss(np.round(LABELS), FOUND, **k),
        np.maximum(1 - SIGNS * FOUND, 0),
    ),
    "cosine_distance": (
        lambda **k: hr.losses.cosine_distance(LABELS, FOUND, axis=1, **k),
        1 - (LABELS * FOUND).sum(1, keepdims=True),
    ),
    "sigmoid_cross_entropy": (
        lambda **k: hr.losses.sigmoid_cross_entropy(LABELS, FOUND, label_smoothing=0.2, **k),
        np.logaddexp(0, FOUND) - FOUND * (0.8 * LABELS + 0.1),
    ),
    "softmax_cross_entropy": (
        lambda **k: hr.losses.softmax_cross_entropy(
            np.eye(3)[CLASSES], FOUND, label_smoothing=0.3, **k
        ),
        -((0.7 * np.eye(3)[CLASSES] + 0.1) * log_softmax(FOUND)).sum(1),
    ),
    "sparse_softmax_cross_entropy": (
        lambda **k: hr.losses.sparse_softmax_cross_entropy(CLASSES[:, None], FOUND, **k),
        -log_softmax(FOUND)[np.arange(4), CLASSES],
    ),
}


def run(tensors: Any) -> Any:
    with hr.Session(graph=hr.get_default_graph()) as session:
        return session.run(tensors)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_elements_and_their_reductions(name: str) -> None:
    build, each = LOSSES[name]
    weights = np.array([1.0, 0.0, 2.0, 0.5]).reshape([4] + [1] * (each.ndim - 1))
    spread = np.broadcast_to(weights, each.shape)
    total = (each * spread).sum()
    expected = {
        Reduction.NONE: each * spread,
        Reduction.SUM: total,
        Reduction.MEAN: total / spread.sum(),
        Reduction.SUM_OVER_BATCH_SIZE: total / each.size,
        Reduction.SUM_BY_NONZERO_WEIGHTS: total / np.count_nonzero(spread),
    }
    with hr.Graph().as_default():
        found = run({r: build(weights=weights, reduction=r) for r in expected})
        plain = run(build())
        assert len(hr.get_collection("losses")) == len(expected) + 1
    for reduction, value in expected.items():
        np.testing.assert_allclose(found[reduction], value, rtol=1e-5)
    np.testing.assert_allclose(plain, each.mean(), rtol=1e-5)


def test_no_weight_is_no_loss() -> None:
    with hr.Graph().as_default():
        zero = [
            hr.losses.mean_squared_error(LABELS, FOUND, weights=weights, reduction=reduction)
            for weights in (0.0, np.zeros((4, 1)))
            for reduction in (Reduction.MEAN, Reduction.SUM_BY_NONZERO_WEIGHTS)
        ]
        nothing = hr.losses.compute_weighted_loss(np.zeros((0, 3), np.float32))
        assert run([*zero, nothing]) == [0] * 5


def test_pairwise_errors() -> None:
    errors = FOUND - LABELS
    pairs = [
        np.mean([(e[i] - e[j]) ** 2 for i in range(3) for j in range(3) if i != j]) for e in errors
    ]
    with hr.Graph().as_default():
        found = run(hr.losses.mean_pairwise_squared_error(LABELS, FOUND))
    assert found == pytest.approx(np.sum(pairs), 1e-5)


def test_the_total_loss_sums_what_was_collected() -> None:
    with hr.Graph().as_default():
        with pytest.raises(AttributeValueError, match="collected no losses"):
            hr.losses.get_total_loss()
        assert run(hr.losses.get_regularization_loss()) == 0
        one = hr.losses.mean_squared_error(LABELS, FOUND, scope="mine")
        two = hr.losses.absolute_difference(LABELS, FOUND)
        left_out = hr.losses.absolute_difference(LABELS, FOUND, loss_collection=None)
        hr.losses.add_loss(hr.constant(3.0), hr.GraphKeys.REGULARIZATION_LOSSES)
        assert left_out not in hr.losses.get_losses()
        assert hr.losses.get_losses("mine") == [one]
        a, b, whole, part = run(
            [one, two, hr.losses.get_total_loss(), hr.losses.get_total_loss(False)]
        )
    assert whole == pytest.approx(a + b + 3)
    assert part == pytest.approx(a + b)


def test_gradients_reach_predictions_and_weights() -> None:
    with hr.Graph().as_default():
        found, weight = hr.constant(FOUND), hr.constant(np.full((4, 1), 2.0))
        loss = hr.losses.mean_squared_error(LABELS, found, weight, reduction=Reduction.SUM)
        slope, by_weight = run(hr.gradients(loss, [found, weight]))
    np.testing.assert_allclose(slope, 4 * (FOUND - LABELS), rtol=1e-4)
    np.testing.assert_allclose(by_weight, (ERROR**2).sum(1, keepdims=True), rtol=1e-4)


REFUSED: dict[str, Any] = {
    "shapes": (
        lambda: hr.losses.mean_squared_error(LABELS, FOUND[:2]),
        ShapeError,
        "must have one shape",
    ),
    "weights": (
        lambda: hr.losses.mean_squared_error(LABELS, FOUND, np.ones(4)),
        ShapeError,
        "must be a scalar, or have the rank",
    ),
    "reduction": (
        lambda: hr.losses.hinge_loss(LABELS, FOUND, reduction="mean"),
        AttributeValueError,
        "reduction must be one of none, weighted_sum",
    ),
    "missing": (
        lambda: hr.losses.huber_loss(None, FOUND),
        AttributeValueError,
        "labels must not be None",
    ),
    "axis": (
        lambda: hr.losses.cosine_distance(LABELS, FOUND),
        AttributeValueError,
        "one of axis and dim",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    build, error, match = REFUSED[case]
    with hr.Graph().as_default(), pytest.raises(error, match=match):
        build()
