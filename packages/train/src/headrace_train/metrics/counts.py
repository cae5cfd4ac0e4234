"""Metrics that count how labels and predictions, true or false, agree."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import ShapeError
from headrace.extend import Tensor
from headrace_train.metrics.inputs import matched
from headrace_train.metrics.state import Metric, listed, metric_variable


def _count(
    kind: str,
    label: bool,
    prediction: bool,
    inputs: tuple[Any, Any, Any],
    metrics_collections: Any,
    updates_collections: Any,
    name: str | None,
) -> Metric:
    """Count where labels and predictions are what they are asked to be."""
    labels, predictions, weights = inputs
    with hr.variable_scope(name, kind, [predictions, labels, weights]):
        made, wanted, factor = matched(
            hr.cast(predictions, hr.bool), hr.cast(labels, hr.bool), weights
        )
        both = hr.logical_and(
            wanted if label else hr.logical_not(wanted),
            made if prediction else hr.logical_not(made),
        )
        count = metric_variable([], hr.float32, "count")
        values = hr.cast(both, hr.float32)
        if factor is not None:
            _check_rank(factor, values)
            values = hr.multiply(values, hr.cast(factor, hr.float32))
        update = count.assign_add(hr.reduce_sum(values))
        return listed(hr.identity(count), update, metrics_collections, updates_collections)


def _check_rank(weights: Tensor, values: Tensor) -> None:
    ranks = weights.shape.rank, values.shape.rank
    if None not in ranks and ranks[0] not in (0, ranks[1]):
        raise ShapeError(
            f"weights of shape {weights.spec.shape} must be a scalar, or have as many axes as "
            "values of "
            f"shape {values.spec.shape}"
        )


def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted number of elements where labels and predictions are both true.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, converted to bool.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the number to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The number so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    inputs = labels, predictions, weights
    collections = metrics_collections, updates_collections
    return _count("true_positives", True, True, inputs, *collections, name)


def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted number of elements where labels are false and predictions true.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, converted to bool.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the number to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The number so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    inputs = labels, predictions, weights
    collections = metrics_collections, updates_collections
    return _count("false_positives", False, True, inputs, *collections, name)


def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted number of elements where labels and predictions are both false.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, converted to bool.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the number to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The number so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    inputs = labels, predictions, weights
    collections = metrics_collections, updates_collections
    return _count("true_negatives", False, False, inputs, *collections, name)


def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted number of elements where labels are true and predictions false.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, converted to bool.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the number to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The number so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    inputs = labels, predictions, weights
    collections = metrics_collections, updates_collections
    return _count("false_negatives", True, False, inputs, *collections, name)


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return of what is predicted, how much is true: ``tp / (tp + fp)``, 0 where nothing is.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, converted to bool.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the value to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The value so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with hr.variable_scope(name, "precision", [predictions, labels, weights]):
        made, wanted, factor = matched(
            hr.cast(predictions, hr.bool), hr.cast(labels, hr.bool), weights
        )
        found, new_found = true_positives(wanted, made, factor)
        others, new_others = false_positives(wanted, made, factor)
        return listed(
            _share(found, others, "value"),
            _share(new_found, new_others, "update_op"),
            metrics_collections,
            updates_collections,
        )


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return of what is true, how much is predicted: ``tp / (tp + fn)``, 0 where nothing is.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, converted to bool.
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the value to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The value so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with hr.variable_scope(name, "recall", [predictions, labels, weights]):
        made, wanted, factor = matched(
            hr.cast(predictions, hr.bool), hr.cast(labels, hr.bool), weights
        )
        found, new_found = true_positives(wanted, made, factor)
        others, new_others = false_negatives(wanted, made, factor)
        return listed(
            _share(found, others, "value"),
            _share(new_found, new_others, "update_op"),
            metrics_collections,
            updates_collections,
        )


def _share(found: Tensor, others: Tensor, name: str) -> Tensor:
    total = found + others
    part = hr.div_no_nan(found, total)
    return hr.where(hr.greater(total, 0.0), part, hr.zeros_like(part), name=name)
