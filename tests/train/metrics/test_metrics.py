"""What metrics promise beyond TensorFlow's tables: collections, resets, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

M = hr.metrics


BUILDS: dict[str, Callable[..., Any]] = {
    "mean": lambda **k: M.mean([1.0, 2.0], **k),
    "mean_tensor": lambda **k: M.mean_tensor([1.0, 2.0], **k),
    "accuracy": lambda **k: M.accuracy([1, 2], [1, 3], **k),
    "root_mean_squared_error": lambda **k: M.root_mean_squared_error([1.0], [2.0], **k),
    "mean_cosine_distance": lambda **k: M.mean_cosine_distance([[1.0]], [[1.0]], 1, **k),
    "mean_iou": lambda **k: M.mean_iou([0, 1], [0, 1], 2, **k),
    "mean_per_class_accuracy": lambda **k: M.mean_per_class_accuracy([0, 1], [0, 1], 2, **k),
    "true_positives": lambda **k: M.true_positives([True], [True], **k),
    "recall": lambda **k: M.recall([True], [True], **k),
    "auc": lambda **k: M.auc([True], [0.5], **k),
    "precision_at_thresholds": lambda **k: M.precision_at_thresholds([True], [0.5], [0.2], **k),
    "false_negatives_at_thresholds": lambda **k: M.false_negatives_at_thresholds(
        [True], [0.5], [0.2], **k
    ),
    "sensitivity_at_specificity": lambda **k: M.sensitivity_at_specificity([True], [0.5], 0.5, **k),
    "precision_at_k": lambda **k: M.precision_at_k([[1]], [[0.1, 0.9]], 1, **k),
    "average_precision_at_k": lambda **k: M.average_precision_at_k([[1]], [[0.1, 0.9]], 1, **k),
}


@pytest.mark.parametrize("name", list(BUILDS))
def test_values_and_updates_are_listed_where_asked_for(name: str) -> None:
    value, update = BUILDS[name](
        metrics_collections=["values"], updates_collections=["updates", "all"], name="scope"
    )
    assert [t is value for t in hr.get_collection("values")] == [True]
    assert [t is update for t in hr.get_collection("updates")] == [True]
    assert [t is update for t in hr.get_collection("all")] == [True]
    local = hr.local_variables()
    assert local
    assert all(v.name.startswith("scope/") and not v.trainable for v in local)
    assert hr.global_variables() == []


def test_metrics_start_again_where_their_variables_are_initialized() -> None:
    values = hr.placeholder(hr.float32, [None])
    mean, update = M.mean(values)
    with hr.Session() as session:
        session.run(hr.local_variables_initializer())
        assert session.run(mean) == 0.0
        assert session.run(update, {values: [1, 2, 3]}) == 2.0
        assert session.run(update, {values: [8]}) == 3.5
        session.run(hr.variables_initializer(hr.get_collection(hr.GraphKeys.METRIC_VARIABLES)))
        assert session.run(update, {values: [5]}) == 5.0
        assert session.run(mean) == 5.0


RANKS = [
    ([2, 3], [2, 3], [2, 3]),
    ([2, 3, 1], [2, 3], [2, 3]),
    ([2, 3], [2, 3, 1], [2, 1]),
    ([2, 3], [2, 3], []),
    ([2, 3], [2, 3], [2]),
    ([2, 3], [2, 3], [2, 3, 1]),
]


@pytest.mark.parametrize("shapes", RANKS, ids=range(len(RANKS)))
def test_ranks_need_not_be_known(shapes: list[list[int]]) -> None:
    rng = np.random.default_rng(0)
    data = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    known = M.mean_squared_error(*(hr.constant(value) for value in data))[1]
    given = [hr.placeholder(hr.float32) for _ in shapes]
    unknown = M.mean_squared_error(*given)[1]
    with hr.Session() as session:
        session.run(hr.local_variables_initializer())
        expected = session.run(known)
        found = session.run(unknown, dict(zip(given, data, strict=True)))
    assert found == pytest.approx(expected, rel=1e-6)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "shapes": (
        lambda: M.accuracy([1, 2, 3], [1, 2]),
        r"labels and predictions must have one shape, got \[3\] and \[2\]",
    ),
    "last axis": (
        lambda: M.mean_squared_error([1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]),
        "have one axis more than shape",
    ),
    "weights": (
        lambda: M.mean(hr.ones([2, 3]), hr.ones([2, 2])),
        r"weights of shape \[2, 2\] do not fit values of shape \[2, 3\]",
    ),
    "weights' rank": (lambda: M.mean(hr.ones([2, 3, 4]), hr.ones([4])), "weights of shape"),
    "count weights": (
        lambda: M.precision(hr.ones([2, 3, 4]), hr.ones([2, 3, 4]), hr.ones([4])),
        "must be a scalar, or have as many axes",
    ),
    "normalizer": (
        lambda: M.mean_relative_error([1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]),
        "normalizer of shape",
    ),
    "mean_tensor": (
        lambda: M.mean_tensor(hr.placeholder(hr.float32, [None, 2])),
        "the shape of values must be known",
    ),
    "mean_iou": (lambda: M.mean_iou([0, 1], [0, 1, 1], 2), "must have one shape"),
    "curve": (lambda: M.auc([True], [0.5], curve="AUC"), "curve must be 'ROC' or 'PR', got 'AUC'"),
    "method": (
        lambda: M.auc([True], [0.5], summation_method="simpson"),
        "one of trapezoidal, careful_interpolation, minoring, majoring, got 'simpson'",
    ),
    "num_thresholds": (
        lambda: M.auc([True], [0.5], num_thresholds=1),
        "must be at least 2, got 1",
    ),
    "specificity": (
        lambda: M.sensitivity_at_specificity([True], [0.5], 1.5),
        r"specificity must be in \[0, 1\], got 1.5",
    ),
    "sensitivity": (
        lambda: M.specificity_at_sensitivity([True], [0.5], -0.5),
        r"sensitivity must be in \[0, 1\], got -0.5",
    ),
    "k": (lambda: M.average_precision_at_k([[1]], [[0.5, 0.1]], 0), "k must be positive, got 0"),
    "precision k": (lambda: M.precision_at_k([[1]], [[0.5, 0.1]], 0), "k must be positive"),
    "labels' rank": (
        lambda: M.recall_at_k([1], [[[0.5, 0.1]]], 1),
        "must have as many axes as predictions, 3, or one less",
    ),
    "unknown rank": (
        lambda: M.recall_at_k(hr.placeholder(hr.int64), [[0.5, 0.1]], 1),
        "ranks of labels and predictions must be known",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_does_not_fit_is_refused(name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("thresholds", [0.5, "many", None])
def test_thresholds_are_a_list(thresholds: Any) -> None:
    with pytest.raises(TypeError, match="thresholds must be a list of numbers, got"):
        M.recall_at_thresholds([True], [0.5], thresholds)


@pytest.mark.parametrize("wrong", [-0.1, 1.1])
def test_predictions_out_of_range_fail_the_step_and_count_nothing(wrong: float) -> None:
    predictions = hr.placeholder(hr.float32, [None])
    value, update = M.true_positives_at_thresholds([True, True], predictions, [0.5])
    with hr.Session() as session:
        session.run(hr.local_variables_initializer())
        with pytest.raises(hr.errors.InvalidArgumentError, match=r"must be in \[0, 1\]"):
            session.run(update, {predictions: [0.9, wrong]})
        assert session.run(value).tolist() == [0.0]
        assert session.run(update, {predictions: [0.9, 0.2]}).tolist() == [1.0]


def test_weights_that_do_not_fit_a_batch_fail_the_step_and_count_nothing() -> None:
    values, weights = hr.placeholder(hr.float32), hr.placeholder(hr.float32)
    mean, update = M.mean(values, weights)
    with hr.Session() as session:
        session.run(hr.local_variables_initializer())
        for bad in (np.ones([3]), np.ones([2, 2]), np.ones([1, 1, 1, 1, 1])):
            with pytest.raises(hr.errors.InvalidArgumentError, match="weights do not fit"):
                session.run(update, {values: np.ones([2, 3, 4]), weights: bad})
        assert session.run(mean) == 0.0
        assert session.run(update, {values: np.ones([2, 3]), weights: np.ones([2, 1])}) == 1.0


@pytest.mark.parametrize("kind", [hr.SparseTensor, hr.SparseTensorValue])
def test_sparse_labels_need_no_room_for_all_classes(kind: Any) -> None:
    """As where labels are rows of a sparse matrix of 0 and 1."""
    labels = kind([[0, 0], [0, 4], [1, 2]], np.int64([7, 7, 3]), [2, 5])
    value, update = M.recall_at_top_k(labels, [[7, 1], [2, 0]])
    with hr.Session() as session:
        session.run(hr.local_variables_initializer())
        # Class 7 is one label, though it is there twice.
        assert session.run(update) == 0.5
        assert session.run(value) == 0.5
