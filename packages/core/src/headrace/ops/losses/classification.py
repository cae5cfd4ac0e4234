"""Weighted losses of classes: of their probabilities, or of their scores."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.arguments import real
from headrace.errors import AttributeValueError
from headrace.graph.collections import GraphKeys
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.activation import relu
from headrace.ops.array import rank, reshape, shape, squeeze, stop_gradient
from headrace.ops.conversion import cast
from headrace.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from headrace.ops.elementwise import equal
from headrace.ops.losses.pairs import LABELS, check_pair, pair
from headrace.ops.losses.weighted import Reduction, compute_weighted_loss
from headrace.ops.transcendental import log


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted cross-entropy of probabilities, each element for itself.

    Args:
        labels: [...], in [0, 1].
        predictions: [...], the shape of ``labels``: probabilities.
        weights: As for ``compute_weighted_loss``.
        epsilon: Added to probabilities before their logarithms are taken.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], float32, or the shape of ``labels`` for ``Reduction.NONE``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "log_loss", [labels, predictions, weights]) as own:
        wanted, found = pair(labels, predictions, LABELS)
        each = -wanted * log(found + epsilon) - (1 - wanted) * log(1 - found + epsilon)
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted loss ``max(1 - logits, 0)`` for labels of 1, ``max(1 + logits, 0)`` for those of 0.

    Args:
        labels: [...], 0 or 1.
        logits: [...], the shape of ``labels``.
        weights: As for ``compute_weighted_loss``.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], float32, or the shape of ``labels`` for ``Reduction.NONE``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "hinge_loss", [labels, logits, weights]) as own:
        wanted, found = pair(labels, logits, ("labels", "logits"))
        each = relu(1 - (2 * wanted - 1) * found)
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted ``nn.sigmoid_cross_entropy_with_logits``.

    Args:
        multi_class_labels: [...], in [0, 1], converted to the dtype of ``logits``.
        logits: [...], floating.
        weights: As for ``compute_weighted_loss``.
        label_smoothing: How far labels are moved towards 1/2.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], or the shape of ``logits`` for ``Reduction.NONE``; the dtype of ``logits``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, weights]) as own:
        scores, targets = _scores(logits, multi_class_labels, "multi_class_labels")
        label_smoothing = real(label_smoothing, "label_smoothing")
        if label_smoothing > 0:
            targets = targets * (1 - label_smoothing) + 0.5 * label_smoothing
        each = sigmoid_cross_entropy_with_logits(labels=targets, logits=scores, name="xentropy")
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted ``nn.softmax_cross_entropy_with_logits``.

    Args:
        onehot_labels: [..., classes], converted to the dtype of ``logits``.
        logits: [..., classes], floating.
        weights: As for ``compute_weighted_loss``.
        label_smoothing: How far labels are moved towards the uniform distribution.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], or [...] for ``Reduction.NONE``; the dtype of ``logits``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(scope, "softmax_cross_entropy_loss", [onehot_labels, logits, weights]) as own:
        scores, targets = _scores(logits, onehot_labels, "onehot_labels")
        label_smoothing = real(label_smoothing, "label_smoothing")
        if label_smoothing > 0:
            classes = cast(shape(targets)[-1], scores.dtype)
            targets = targets * (1.0 - label_smoothing) + label_smoothing / classes
        targets = stop_gradient(targets)
        each = softmax_cross_entropy_with_logits_v2(targets, scores, name="xentropy")
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


def _scores(logits: Any, labels: Any, name: str) -> tuple[Tensor, Tensor]:
    for value, label in ((labels, name), (logits, "logits")):
        if value is None:
            raise AttributeValueError(f"{label} must not be None")
    scores = convert_to_tensor(logits)
    targets: Tensor = cast(labels, scores.dtype)
    check_pair(targets, scores, (name, "logits"))
    return scores, targets


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weighted ``nn.sparse_softmax_cross_entropy_with_logits``.

    Args:
        labels: [...] or [..., 1], int32 or int64, class indices.
        logits: [..., classes], floating.
        weights: As for ``compute_weighted_loss``; a last axis of size 1 more than labels have is
            dropped.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], or [...] for ``Reduction.NONE``; the dtype of ``logits``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    for value, name in ((labels, "labels"), (logits, "logits")):
        if value is None:
            raise AttributeValueError(f"{name} must not be None")
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, weights]) as own:
        scores, targets = convert_to_tensor(logits), convert_to_tensor(labels)
        targets = _without_axis(targets, scores.shape.rank, shape(scores)[:-1])
        factor: Any = weights
        if not isinstance(weights, int | float):
            factor = _weights_of(convert_to_tensor(weights), targets)
        each = sparse_softmax_cross_entropy_with_logits(
            labels=targets, logits=scores, name="xentropy"
        )
        return compute_weighted_loss(each, factor, own, loss_collection, reduction)


def _without_axis(x: Tensor, rank_with: int | None, outer: Tensor | None) -> Tensor:
    """Return ``x`` without a last axis of size 1 where it has ``rank_with`` dimensions."""
    if x.shape.rank == 0 or (x.shape.rank is not None and x.spec.shape[-1] not in (1, None)):
        return x
    if x.shape.rank is not None and rank_with is not None:
        return squeeze(x, [-1]) if x.shape.rank == rank_with else x
    # Where ranks are not known, the elements are what counts.
    return x if outer is None else reshape(x, outer)


def _weights_of(weights: Tensor, targets: Tensor) -> Tensor:
    """Return weights without a last axis of size 1 that the targets do not have."""
    mine, theirs = weights.shape.rank, targets.shape.rank
    if mine == 0 or (mine is not None and weights.spec.shape[-1] not in (1, None)):
        return weights
    if mine is not None and theirs is not None:
        return _without_axis(weights, theirs + 1, None)
    more = cast(equal(rank(weights) - rank(targets), 1), dtypes.int32)
    return reshape(weights, shape(weights)[: rank(weights) - more])
