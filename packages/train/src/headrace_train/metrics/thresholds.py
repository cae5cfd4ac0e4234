"""Metrics of predictions between 0 and 1 that are compared with thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, shown
from headrace.extend import Tensor
from headrace_train.metrics.inputs import broadcast_weights, matched
from headrace_train.metrics.state import Metric, listed, metric_variable

# What is counted, and whether labels and predictions are true there.
_KINDS = {
    "tp": ("true_positives", True, True),
    "fn": ("false_negatives", True, False),
    "tn": ("true_negatives", False, False),
    "fp": ("false_positives", False, True),
}

# Keeps from dividing by 0.
_EPSILON = 1e-7

Counts = dict[str, Tensor]


def counts_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, kinds: Sequence[str]
) -> tuple[Counts, Counts]:
    """Count true and false positives and negatives at each threshold.

    Args:
        labels: [...], converted to bool.
        predictions: [...], in [0, 1]; true where larger than a threshold.
        thresholds: The thresholds.
        weights: As for ``mean``.
        kinds: Of "tp", "fn", "tn" and "fp" those to count.

    Returns:
        By kind, what was counted so far, [thresholds], and tensors that take in a batch.

    Raises:
        DTypeError: if ``thresholds`` is no list.
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    if not isinstance(thresholds, list | tuple | np.ndarray):
        raise DTypeError(f"thresholds must be a list of numbers, got {shown(thresholds)}")
    given = hr.convert_to_tensor(predictions)
    message = "predictions must be in [0, 1]"
    checks = [
        hr.assert_greater_equal(given, hr.cast(0.0, given.dtype), message=message),
        hr.assert_less_equal(given, hr.cast(1.0, given.dtype), message=message),
    ]
    with hr.control_dependencies(checks):
        made, wanted, factor = matched(
            hr.cast(given, hr.float32), hr.cast(labels, hr.bool), weights
        )
    if factor is not None:
        factor = hr.reshape(broadcast_weights(factor, made), [1, -1])
    limits = hr.constant(list(thresholds), hr.float32, [len(thresholds), 1])
    positive = hr.greater(hr.reshape(made, [1, -1]), limits)
    true = hr.reshape(wanted, [1, -1])
    values, updates = {}, {}
    for kind in kinds:
        name, label, prediction = _KINDS[kind]
        variable = metric_variable([len(thresholds)], hr.float32, name)
        both = hr.logical_and(
            true if label else hr.logical_not(true),
            positive if prediction else hr.logical_not(positive),
        )
        counted = hr.cast(both, hr.float32)
        if factor is not None:
            counted = counted * factor
        updates[kind] = variable.assign_add(hr.reduce_sum(counted, 1))
        values[kind] = variable.value()
    return values, updates


def _counted(
    kind: str,
    inputs: tuple[Any, Any, Any, Any],
    metrics_collections: Any,
    updates_collections: Any,
    name: str | None,
) -> Metric:
    labels, predictions, thresholds, weights = inputs
    with hr.variable_scope(name, _KINDS[kind][0], [predictions, labels, weights]):
        values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, [kind])
        value = hr.identity(values[kind])
        return listed(value, updates[kind], metrics_collections, updates_collections)


def _share(
    other: str,
    what: str,
    inputs: tuple[Any, Any, Any, Any],
    metrics_collections: Any,
    updates_collections: Any,
    name: str | None,
) -> Metric:
    labels, predictions, thresholds, weights = inputs
    with hr.variable_scope(name, f"{what}_at_thresholds", [predictions, labels, weights]):
        values, updates = counts_at_thresholds(
            labels, predictions, thresholds, weights, ["tp", other]
        )

        def share(counts: Counts, last: str) -> Tensor:
            total = _EPSILON + counts["tp"] + counts[other]
            return hr.divide(counts["tp"], total, name=f"{what}_{last}")

        value, update = share(values, "value"), share(updates, "update_op")
        return listed(value, update, metrics_collections, updates_collections)


def true_positives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return at each threshold how many labels and predictions are both true, weighted.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1]; what is larger than a
            threshold counts as true.
        thresholds: The thresholds, a list of numbers.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the numbers to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The numbers so far, [thresholds], float32, and a tensor that takes in a batch and yields
        the new numbers.

    Raises:
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    inputs = labels, predictions, thresholds, weights
    return _counted("tp", inputs, metrics_collections, updates_collections, name)


def false_positives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return at each threshold how many labels are false and predictions true, weighted.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1]; what is larger than a
            threshold counts as true.
        thresholds: The thresholds, a list of numbers.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the numbers to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The numbers so far, [thresholds], float32, and a tensor that takes in a batch and yields
        the new numbers.

    Raises:
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    inputs = labels, predictions, thresholds, weights
    return _counted("fp", inputs, metrics_collections, updates_collections, name)


def true_negatives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return at each threshold how many labels and predictions are both false, weighted.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1]; what is larger than a
            threshold counts as true.
        thresholds: The thresholds, a list of numbers.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the numbers to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The numbers so far, [thresholds], float32, and a tensor that takes in a batch and yields
        the new numbers.

    Raises:
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    inputs = labels, predictions, thresholds, weights
    return _counted("tn", inputs, metrics_collections, updates_collections, name)


def false_negatives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return at each threshold how many labels are true and predictions false, weighted.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1]; what is larger than a
            threshold counts as true.
        thresholds: The thresholds, a list of numbers.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the numbers to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The numbers so far, [thresholds], float32, and a tensor that takes in a batch and yields
        the new numbers.

    Raises:
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    inputs = labels, predictions, thresholds, weights
    return _counted("fn", inputs, metrics_collections, updates_collections, name)


def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return at each threshold how much of what is predicted is true.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1]; what is larger than a
            threshold counts as true.
        thresholds: The thresholds, a list of numbers.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the shares to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The shares so far, [thresholds], float32, and a tensor that takes in a batch and yields
        the new shares.

    Raises:
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    inputs = labels, predictions, thresholds, weights
    return _share("fp", "precision", inputs, metrics_collections, updates_collections, name)


def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return at each threshold how much of what is true is predicted.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1]; what is larger than a
            threshold counts as true.
        thresholds: The thresholds, a list of numbers.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the shares to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The shares so far, [thresholds], float32, and a tensor that takes in a batch and yields
        the new shares.

    Raises:
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    inputs = labels, predictions, thresholds, weights
    return _share("fn", "recall", inputs, metrics_collections, updates_collections, name)
