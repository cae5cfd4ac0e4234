"""Weighted losses of numbers beside the numbers that they should be."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.collections import GraphKeys
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import rank
from headrace.ops.complex import abs_
from headrace.ops.constant import range as range_
from headrace.ops.constant import zeros_like
from headrace.ops.elementwise import div_no_nan, greater, maximum, minimum, select
from headrace.ops.losses.collected import add_loss
from headrace.ops.losses.pairs import LABELS, pair
from headrace.ops.losses.weighted import Reduction, as_float, compute_weighted_loss, present
from headrace.ops.reduce import reduce_sum
from headrace.ops.weights import check_weights


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted loss ``abs(predictions - labels)``.

    Args:
        labels: [...], numeric.
        predictions: [...], the shape of ``labels``.
        weights: As for ``compute_weighted_loss``.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], float32, or the shape of ``labels`` for ``Reduction.NONE``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "absolute_difference", [labels, predictions, weights]) as own:
        wanted, found = pair(labels, predictions, LABELS)
        each = abs_(found - wanted)
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted loss ``(predictions - labels) ** 2``.

    Args:
        labels: [...], numeric.
        predictions: [...], the shape of ``labels``.
        weights: As for ``compute_weighted_loss``.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], float32, or the shape of ``labels`` for ``Reduction.NONE``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "mean_squared_error", [labels, predictions, weights]) as own:
        wanted, found = pair(labels, predictions, LABELS)
        error = found - wanted
        return compute_weighted_loss(error * error, weights, own, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted loss that is half the squared error up to ``delta``, and linear beyond.

    Args:
        labels: [...], numeric.
        predictions: [...], the shape of ``labels``.
        weights: As for ``compute_weighted_loss``.
        delta: The error from which on the loss is linear.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], float32, or the shape of ``labels`` for ``Reduction.NONE``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "huber_loss", [labels, predictions, weights]) as own:
        wanted, found = pair(labels, predictions, LABELS)
        error = abs_(found - wanted)
        near = minimum(error, delta)
        each = 0.5 * near * near + delta * (error - near)
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """Weighted loss ``1 - sum(predictions * labels)`` along an axis, for vectors of length 1.

    Args:
        labels: [...], numeric.
        predictions: [...], the shape of ``labels``.
        axis: The axis of the vectors.
        weights: As for ``compute_weighted_loss``, the axis having size 1.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.
        dim: Another name of ``axis``.

    Returns:
        [], float32, or the shape of ``labels`` with the axis of size 1 for ``Reduction.NONE``.

    Raises:
        AttributeValueError: if the axis is missing.
        ShapeError: if shapes do not fit.
    """
    if (axis is None) == (dim is None):
        raise AttributeValueError("cosine_distance needs one of axis and dim")
    with name_scope(scope, "cosine_distance_loss", [labels, predictions, weights]) as own:
        wanted, found = pair(labels, predictions, LABELS)
        each = 1 - reduce_sum(found * wanted, dim if axis is None else axis, keepdims=True)
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
) -> Tensor:
    """Weighted mean of squared differences between the errors of each two elements of an example.

    Args:
        labels: [batch, ...], numeric.
        predictions: [batch, ...], the shape of ``labels``.
        weights: As for ``compute_weighted_loss``; one per example.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.

    Returns:
        [], float32.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "mean_pairwise_squared_error", [labels, predictions, weights]):
        wanted, found = pair(labels, predictions, LABELS)
        factor = as_float(weights)
        with control_dependencies(check_weights(factor, wanted)):
            errors = found - wanted
        if errors.shape.rank is not None:
            axes: Any = list(range(1, errors.shape.rank))
        else:
            axes = range_(1, rank(errors))
        squares = reduce_sum(errors * errors, axes, keepdims=True)
        count = reduce_sum(present(factor, errors), axes, keepdims=True)
        total = reduce_sum(errors, axes, keepdims=True)
        first = 2.0 * div_no_nan(squares, maximum(count - 1, 0))
        second = 2.0 * div_no_nan(total * total, maximum(count * (count - 1), 0))
        loss = reduce_sum((first - second) * factor)
        result = select(greater(reduce_sum(count), 0), loss, zeros_like(loss))
        add_loss(result, loss_collection)
        return result
