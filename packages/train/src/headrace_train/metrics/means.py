"""Metrics that are means over all elements seen: of values, matches and errors."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import ShapeError
from headrace.extend import Tensor
from headrace_train.metrics.inputs import broadcast_weights, fitted, matched, same_rank
from headrace_train.metrics.state import Metric, listed, metric_variable


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted mean of all values seen, and what takes in a batch of them.

    Args:
        values: [...], numeric.
        weights: A scalar, or of the rank of ``values`` and broadcasting to it; 1 if None.
        metrics_collections: Collections to add the mean to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The mean so far, [], float32, 0 where nothing was seen; and a tensor that takes in
        ``values`` and yields the new mean.

    Raises:
        ShapeError: if the weights do not fit the values.
    """
    with hr.variable_scope(name, "mean", [values, weights]):
        found = hr.cast(values, hr.float32)
        total = metric_variable([], hr.float32, "total")
        count = metric_variable([], hr.float32, "count")
        if weights is None:
            added = hr.cast(hr.size(found), hr.float32)
        else:
            factor = broadcast_weights(fitted(weights, found), found)
            found = hr.multiply(found, factor)
            added = hr.reduce_sum(factor)
        new_total = total.assign_add(hr.reduce_sum(found))
        new_count = count.assign_add(added)
        return listed(
            _ratio(total.value(), count.value(), "value"),
            _ratio(new_total, new_count, "update_op"),
            metrics_collections,
            updates_collections,
        )


def _ratio(total: Tensor, count: Tensor, name: str) -> Tensor:
    return hr.div_no_nan(total, hr.maximum(count, 0.0), name=name)


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted mean of all batches seen, element by element.

    Args:
        values: [...], numeric, of a shape that is known.
        weights: As for ``mean``.
        metrics_collections: Collections to add the mean to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The mean so far, the shape of ``values``, float32, and a tensor that takes in a batch and
        yields the new one.

    Raises:
        ShapeError: if the weights do not fit the values, or their shape is not known.
    """
    with hr.variable_scope(name, "mean", [values, weights]):
        found = hr.cast(values, hr.float32)
        if not found.shape.is_fully_defined():
            raise ShapeError(f"mean_tensor: the shape of values must be known, got {found.shape}")
        total = metric_variable(found.shape, hr.float32, "total_tensor")
        count = metric_variable(found.shape, hr.float32, "count_tensor")
        added = hr.ones_like(found)
        if weights is not None:
            added = broadcast_weights(fitted(weights, found), found)
            found = hr.multiply(found, added)
        new_total, new_count = total.assign_add(found), count.assign_add(added)
        return listed(
            _ratio(total.value(), count.value(), "value"),
            _ratio(new_total, new_count, "update_op"),
            metrics_collections,
            updates_collections,
        )


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return how often predictions are the labels.

    Args:
        labels: [...].
        predictions: [...], the shape of ``labels``; converted to their dtype.
        weights: As for ``mean``.
        metrics_collections: Collections to add the accuracy to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The accuracy so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    made, wanted, factor = matched(predictions, labels, weights)
    if made.dtype != wanted.dtype:
        made = hr.cast(made, wanted.dtype)
    correct = hr.cast(hr.equal(made, wanted), hr.float32)
    return mean(correct, factor, metrics_collections, updates_collections, name or "accuracy")


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean of ``|predictions - labels|``.

    Args:
        labels: [...], numeric.
        predictions: [...], the shape and dtype of ``labels``.
        weights: As for ``mean``.
        metrics_collections: Collections to add the error to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The error so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    made, wanted, factor = matched(predictions, labels, weights)
    return mean(
        hr.abs(made - wanted),
        factor,
        metrics_collections,
        updates_collections,
        name or "mean_absolute_error",
    )


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean of ``(predictions - labels) ** 2``.

    Args:
        labels: [...], numeric.
        predictions: [...], the shape and dtype of ``labels``.
        weights: As for ``mean``.
        metrics_collections: Collections to add the error to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The error so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    made, wanted, factor = matched(predictions, labels, weights)
    return mean(
        hr.squared_difference(wanted, made),
        factor,
        metrics_collections,
        updates_collections,
        name or "mean_squared_error",
    )


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the square root of the mean of ``(predictions - labels) ** 2``.

    Args:
        labels: [...], numeric.
        predictions: [...], the shape and dtype of ``labels``.
        weights: As for ``mean``.
        metrics_collections: Collections to add the error to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The error so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    error, update = mean_squared_error(
        labels, predictions, weights, name=name or "root_mean_squared_error"
    )
    return listed(hr.sqrt(error), hr.sqrt(update), metrics_collections, updates_collections)


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean of ``|predictions - labels| / normalizer``, 0 where that is 0.

    Args:
        labels: [...], floating.
        predictions: [...], the shape and dtype of ``labels``.
        normalizer: [...], the same.
        weights: As for ``mean``.
        metrics_collections: Collections to add the error to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The error so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    made, wanted, factor = matched(predictions, labels, weights)
    made, scale = same_rank(made, normalizer)
    if not made.shape.is_compatible_with(scale.shape):
        raise ShapeError(
            f"normalizer of shape {scale.spec.shape} must have the shape of predictions, "
            f"{made.spec.shape}"
        )
    return mean(
        hr.div_no_nan(hr.abs(wanted - made), scale),
        factor,
        metrics_collections,
        updates_collections,
        name or "mean_relative_error",
    )


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return 1 less the mean of the inner products of labels and predictions.

    Args:
        labels: [...], floating, of unit length along ``dim``.
        predictions: [...], the same.
        dim: The axis of the vectors.
        weights: As for ``mean``; ``dim`` is of size 1 in what they weigh.
        metrics_collections: Collections to add the distance to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The distance so far, [], float32, and a tensor that takes in a batch and yields the new
        one.

    Raises:
        ShapeError: if shapes do not fit.
    """
    made, wanted, factor = matched(predictions, labels, weights)
    products = hr.reduce_sum(hr.multiply(made, wanted), [dim], keepdims=True)
    similarity, update = mean(products, factor, name=name or "mean_cosine_distance")
    return listed(
        hr.subtract(1.0, similarity),
        hr.subtract(1.0, update),
        metrics_collections,
        updates_collections,
    )


def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the share of values that are less than a number.

    Args:
        values: [...], a real number.
        threshold: The number.
        weights: As for ``mean``.
        metrics_collections: Collections to add the share to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The share so far, from 0 to 1, [], float32, and a tensor that takes in a batch and yields
        the new one.

    Raises:
        ShapeError: if the weights do not fit the values.
    """
    return mean(
        hr.cast(hr.less(values, threshold), hr.float32),
        weights,
        metrics_collections,
        updates_collections,
        name or "percentage_below_threshold",
    )
