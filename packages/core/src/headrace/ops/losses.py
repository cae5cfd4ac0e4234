"""Weighted losses, which the graph collects."""

from __future__ import annotations

from typing import Any, final

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.given import real
from headrace.graph.collections import GraphKeys, add_to_collection, get_collection
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.activation import relu
from headrace.ops.array import broadcast_to, rank, reshape, shape, size, squeeze, stop_gradient
from headrace.ops.complex import abs_
from headrace.ops.constant import constant, ones_like, shape_of, zeros_like
from headrace.ops.constant import range as range_
from headrace.ops.conversion import cast
from headrace.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from headrace.ops.elementwise import add_n, div_no_nan, equal, greater, maximum, minimum, select
from headrace.ops.reduce import reduce_sum
from headrace.ops.transcendental import log
from headrace.ops.weights import check_weights


@final
class Reduction:
    """How the losses of elements become one number.

    Attributes:
        NONE: They stay as they are, weighted.
        SUM: The weighted sum.
        MEAN: The weighted sum over the sum of weights.
        SUM_OVER_BATCH_SIZE: The weighted sum over the number of elements.
        SUM_BY_NONZERO_WEIGHTS: The weighted sum over the number of weights that are not 0.
        SUM_OVER_NONZERO_WEIGHTS: The same.
    """

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return all of them."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """Refuse what is none.

        Raises:
            AttributeValueError: if ``key`` is none.
        """
        if key not in cls.all():
            raise AttributeValueError(
                f"reduction must be one of {', '.join(cls.all())}, got {shown(key)}"
            )


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Weigh losses and reduce them to one.

    Args:
        losses: [...], numeric: one loss per element. Computed in float32.
        weights: A scalar, or of the rank of ``losses``, each dimension of the same size or 1.
        scope: The name of the operations.
        loss_collection: The collection that the result is added to; None for none.
        reduction: One of ``Reduction``.

    Returns:
        [], or the shape of ``losses`` for ``Reduction.NONE``; the dtype of ``losses``. 0 where a
        mean is over nothing.

    Raises:
        AttributeValueError: if ``reduction`` is none.
        ShapeError: if ``weights`` do not fit.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]):
        each = convert_to_tensor(losses)
        dtype = each.dtype
        each = _float(each)
        always = isinstance(weights, float) and weights != 0.0
        factor = _float(weights)
        with control_dependencies(check_weights(factor, each)):
            weighted = each * factor
        if reduction == Reduction.NONE:
            loss = weighted
        else:
            loss = reduce_sum(weighted)
            if reduction == Reduction.MEAN:
                loss = div_no_nan(loss, reduce_sum(ones_like(each) * factor), name="value")
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE or (
                always and reduction == Reduction.SUM_BY_NONZERO_WEIGHTS
            ):
                loss = div_no_nan(loss, _float(size(each)), name="value")
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                loss = div_no_nan(loss, reduce_sum(_present(factor, each)), name="value")
        result: Tensor = cast(loss, dtype)
        add_loss(result, loss_collection)
        return result


def _float(value: Any) -> Tensor:
    found: Tensor = cast(value, dtypes.float32)
    return found


def _present(weights: Tensor, losses: Tensor) -> Tensor:
    """Return ones where weights, spread over the losses, are not 0."""
    some = select(equal(weights, 0), zeros_like(weights), ones_like(weights))
    return broadcast_to(some, shape_of(losses))


def _pair(labels: Any, predictions: Any, names: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Return labels and predictions as float32 of one shape, or refuse them."""
    for value, name in zip((labels, predictions), names, strict=True):
        if value is None:
            raise AttributeValueError(f"{name} must not be None")
    one, two = _float(labels), _float(predictions)
    _check_pair(one, two, names)
    return one, two


def _check_pair(one: Tensor, two: Tensor, names: tuple[str, str]) -> None:
    if not one.shape.is_compatible_with(two.shape):
        raise ShapeError(
            f"{names[0]} {one.spec.shape} and {names[1]} {two.spec.shape} must have one shape"
        )


_LABELS = ("labels", "predictions")


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
        wanted, found = _pair(labels, predictions, _LABELS)
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
        wanted, found = _pair(labels, predictions, _LABELS)
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
        wanted, found = _pair(labels, predictions, _LABELS)
        error = abs_(found - wanted)
        near = minimum(error, delta)
        each = 0.5 * near * near + delta * (error - near)
        return compute_weighted_loss(each, weights, own, loss_collection, reduction)


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
        wanted, found = _pair(labels, predictions, _LABELS)
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
        wanted, found = _pair(labels, logits, ("labels", "logits"))
        each = relu(1 - (2 * wanted - 1) * found)
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
        wanted, found = _pair(labels, predictions, _LABELS)
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
        wanted, found = _pair(labels, predictions, _LABELS)
        factor = _float(weights)
        with control_dependencies(check_weights(factor, wanted)):
            errors = found - wanted
        if errors.shape.rank is not None:
            axes: Any = list(range(1, errors.shape.rank))
        else:
            axes = range_(1, rank(errors))
        squares = reduce_sum(errors * errors, axes, keepdims=True)
        count = reduce_sum(_present(factor, errors), axes, keepdims=True)
        total = reduce_sum(errors, axes, keepdims=True)
        first = 2.0 * div_no_nan(squares, maximum(count - 1, 0))
        second = 2.0 * div_no_nan(total * total, maximum(count * (count - 1), 0))
        loss = reduce_sum((first - second) * factor)
        result = select(greater(reduce_sum(count), 0), loss, zeros_like(loss))
        add_loss(result, loss_collection)
        return result


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
    _check_pair(targets, scores, (name, "logits"))
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


def add_loss(loss: Tensor, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Add a loss to a collection of the default graph.

    Args:
        loss: A tensor.
        loss_collection: The collection; None for none.
    """
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    """Return the losses in a collection of the default graph.

    Args:
        scope: A regular expression at the beginning of names; others are left out.
        loss_collection: The collection.
    """
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Return the losses of regularizers in the default graph.

    Args:
        scope: A regular expression at the beginning of names; others are left out.
    """
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str | None = "total_regularization_loss"
) -> Tensor:
    """Return the sum of the losses of regularizers in the default graph; 0 where there are none.

    Args:
        scope: A regular expression at the beginning of names; others are left out.
        name: The name of the operation.
    """
    losses = get_regularization_losses(scope)
    total: Tensor = add_n(losses, name=name) if losses else constant(0.0)
    return total


def get_total_loss(
    add_regularization_losses: bool = True,
    name: str | None = "total_loss",
    scope: str | None = None,
) -> Tensor:
    """Return the sum of all losses of the default graph.

    Args:
        add_regularization_losses: Whether those of regularizers are added.
        name: The name of the operation.
        scope: A regular expression at the beginning of names; others are left out.

    Raises:
        AttributeValueError: if there are no losses.
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    if not losses:
        raise AttributeValueError("get_total_loss: the graph has collected no losses")
    total: Tensor = add_n(losses, name=name)
    return total
