"""Cross-entropies and other losses of single predictions, built of ops."""

from __future__ import annotations

import math
from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.activation import softplus
from headrace.ops.array import broadcast_to, concat, reshape, shape, stop_gradient, transpose
from headrace.ops.constant import shape_of, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import greater_equal, less_equal, logical_and, select
from headrace.ops.nn import log_softmax, softmax_cross_entropy, sparse_softmax_cross_entropy
from headrace.ops.reduce import reduce_prod, reduce_sum
from headrace.ops.transcendental import exp, log
from headrace.shapes import broadcast, normalize_axis


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """Cross-entropy between class distributions and softmax of logits.

    Computes ``-sum(labels * log(softmax(logits)))`` along the class axis, stably. No gradient flows
    into the labels; ``softmax_cross_entropy_with_logits_v2`` lets it.

    Args:
        _sentinel: Must be None; labels and logits are passed by name.
        labels: [..., classes], numeric or bool, converted to the dtype of ``logits``; rows along
            the class axis sum to 1.
        logits: [..., classes], floating.
        dim: The class axis.
        name: The name of the operations.
        axis: The class axis, in place of ``dim``.

    Returns:
        [...], without the class axis.

    Raises:
        ShapeError: if labels or logits are missing, or their shapes differ.
    """
    _by_name("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg"):
        scores = _scores(logits)
        targets = stop_gradient(_as_targets(labels, scores))
        return _softmax_cross_entropy(scores, targets, dim if axis is None else axis)


def softmax_cross_entropy_with_logits_v2(
    labels: Any,
    logits: Any,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """Cross-entropy between class distributions and softmax of logits, differentiable in both.

    Computes ``-sum(labels * log(softmax(logits)))`` along the class axis, stably.

    Args:
        labels: [..., classes], numeric or bool, converted to the dtype of ``logits``; rows along
            the class axis sum to 1.
        logits: [..., classes], floating.
        axis: The class axis; the last if None.
        name: The name of the operations.
        dim: Another name of ``axis``.

    Returns:
        [...], without the class axis.

    Raises:
        ShapeError: if the shapes differ.
    """
    if axis is not None and dim is not None:
        raise AttributeValueError("pass one of axis and dim, which are two names of one argument")
    chosen = dim if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits"):
        scores = _scores(logits)
        targets = _as_targets(labels, scores)
        return _softmax_cross_entropy(scores, targets, -1 if chosen is None else chosen)


def _scores(logits: Any) -> Tensor:
    return convert_to_tensor(logits)


def _as_targets(labels: Any, scores: Tensor) -> Tensor:
    found: Tensor = cast(convert_to_tensor(labels, preferred_dtype=scores.dtype), scores.dtype)
    return found


def _softmax_cross_entropy(scores: Tensor, targets: Tensor, axis: int) -> Tensor:
    rank = scores.shape.rank if scores.shape.rank is not None else targets.shape.rank
    if rank == 0:
        raise ShapeError("logits must have at least 1 dimension, got a scalar")
    if not scores.shape.is_compatible_with(targets.shape):
        targets = _broadcast_targets(scores, targets)
    if rank is None and axis != -1:
        # Without a rank the class axis cannot be brought to the end.
        return -reduce_sum(targets * log_softmax(scores, axis), axis)
    if rank is not None:
        at = normalize_axis(axis, rank)
        if at != rank - 1:
            order = [*(i for i in range(rank) if i != at), at]
            scores, targets = transpose(scores, order), transpose(targets, order)
    # TensorFlow reshapes logits, labels and losses of any rank; the result has the last one's name.
    if rank == 2:
        return softmax_cross_entropy(scores, targets, name="Reshape_2")[0]
    loss = softmax_cross_entropy(_as_rows(scores), _as_rows(targets))[0]
    return reshape(loss, _outer(scores))


def _broadcast_targets(scores: Tensor, targets: Tensor) -> Tensor:
    """Repeat labels that are the same for all logits along an axis, or refuse them."""
    try:
        fits = scores.shape.is_compatible_with(broadcast(scores.spec.shape, targets.spec.shape))
    except ShapeError:
        fits = False
    if not fits or scores.shape.rank != targets.shape.rank:
        raise ShapeError(
            f"labels {targets.spec.shape} and logits {scores.spec.shape} must have one shape"
        )
    return broadcast_to(targets, shape_of(scores))


def _as_rows(x: Tensor) -> Tensor:
    """Return ``x`` as a matrix with the rows along its last axis."""
    if x.shape.is_fully_defined():
        return reshape(x, [math.prod(x.shape.known[:-1]), x.shape.known[-1]])
    classes = None if x.shape.rank is None else x.spec.shape[-1]
    if classes:
        return reshape(x, [-1, classes])
    # Not -1, which no rows could stand for where there are no classes.
    dims = shape(x)
    return reshape(x, concat([reduce_prod(dims[:-1], 0, keepdims=True), dims[-1:]], 0))


def _outer(x: Tensor) -> Any:
    """Return the shape of ``x`` without the last axis: a list where it is static."""
    if x.shape.rank is not None and x.spec.shape[:-1].is_fully_defined():
        return list(x.spec.shape[:-1].known)
    return shape(x)[:-1]


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    name: str | None = None,
) -> Tensor:
    """Cross-entropy between class indices and softmax of logits.

    Args:
        _sentinel: Must be None; labels and logits are passed by name.
        labels: [...], int32 or int64, each in [0, classes); others raise when it runs.
        logits: [..., classes], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``logits``.

    Raises:
        ShapeError: if labels or logits are missing, or their shapes do not fit.
    """
    _by_name("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits"):
        scores = convert_to_tensor(logits)
        targets = convert_to_tensor(labels)
        rank = scores.shape.rank
        if rank == 0:
            raise ShapeError("logits must have at least 1 dimension, got a scalar")
        if rank == 2:
            return sparse_softmax_cross_entropy(scores, targets, name=name)[0]
        if rank is not None and not targets.shape.is_compatible_with(scores.shape[:-1]):
            raise ShapeError(
                f"labels {targets.spec.shape} must have the shape of logits {scores.spec.shape} "
                "without the "
                "last axis"
            )
        loss = sparse_softmax_cross_entropy(_as_rows(scores), reshape(targets, [-1]))[0]
        return reshape(loss, shape_of(targets))


def _by_name(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise ShapeError(f"call nn.{function}(labels=..., logits=...), both by name")


@names_result
def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    name: str | None = None,
) -> Tensor:
    """Cross-entropy between probabilities and sigmoid of logits, each element for itself.

    Computes ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``, stably.
    For classes that do not exclude each other.

    Args:
        _sentinel: Must be None; labels and logits are passed by name.
        labels: [...], the dtype and shape of ``logits``, in [0, 1].
        logits: [...], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``logits``.

    Raises:
        ShapeError: if labels or logits are missing, or their shapes differ.
    """
    _by_name("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]):
        scores, targets = _same_shape(logits, labels, "labels")
        positive = greater_equal(scores, 0)
        # Not the absolute value, whose gradient at 0 would be that of neither side.
        below = softplus(select(positive, -scores, scores))
        return select(positive, scores, zeros_like(scores)) - scores * targets + below


@names_result
def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """Cross-entropy between probabilities and sigmoid of logits, positive classes weighted.

    Computes ``-labels * pos_weight * log(sigmoid(logits)) - (1 - labels) * log(1 -
    sigmoid(logits))``, stably.

    Args:
        labels: [...], the dtype and shape of ``logits``, in [0, 1].
        logits: [...], floating.
        pos_weight: What a positive class weighs; broadcasts against ``logits``.
        name: The name of the operations.
        targets: Another name of ``labels``.

    Returns:
        [...], the dtype of ``logits``.

    Raises:
        ShapeError: if labels or logits are missing, or their shapes differ.
        AttributeValueError: if ``pos_weight`` is missing, or labels are given twice.
    """
    if labels is not None and targets is not None:
        raise AttributeValueError("pass one of labels and targets, two names of one argument")
    given = targets if labels is None else labels
    if given is None or logits is None or pos_weight is None:
        raise AttributeValueError(
            "weighted_cross_entropy_with_logits needs labels, logits and pos_weight"
        )
    with name_scope(name, "logistic_loss"):
        scores, wanted = _same_shape(logits, given, "labels")
        excess = convert_to_tensor(pos_weight, preferred_dtype=scores.dtype) - 1
        weight = 1 + excess * wanted
        return (1 - wanted) * scores + weight * softplus(-scores)


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Negative log-likelihood of counts under Poisson distributions.

    Computes ``exp(log_input) - log_input * targets``; the full loss adds Stirling's approximation
    of ``log(targets!)`` where a count is above 1.

    Args:
        targets: [...], the dtype and shape of ``log_input``: counts.
        log_input: [...], floating: logarithms of the expected counts.
        compute_full_loss: Add the term that depends on the counts alone.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``log_input``.

    Raises:
        ShapeError: if the shapes differ.
    """
    with name_scope(name, "log_poisson_loss"):
        rates, counts = _same_shape(log_input, targets, "targets")
        loss = exp(rates) - rates * counts
        if not compute_full_loss:
            return loss
        small = logical_and(greater_equal(counts, 0), less_equal(counts, 1))
        # Where the term is left out, its argument must not spoil the gradient.
        safe = select(small, zeros_like(counts) + 1, counts)
        stirling = safe * log(safe) - safe + 0.5 * log(2 * math.pi * safe)
        return loss + select(small, zeros_like(counts), stirling)


def _same_shape(first: Any, second: Any, label: str) -> tuple[Tensor, Tensor]:
    """Return two tensors of one dtype, refused where their shapes are known to differ."""
    scores = convert_to_tensor(first, preferred_dtype=_dtype_of(second))
    targets = convert_to_tensor(second, preferred_dtype=scores.dtype)
    if not scores.shape.is_compatible_with(targets.shape):
        raise ShapeError(
            f"{label} {targets.spec.shape} and logits {scores.spec.shape} must have one shape"
        )
    return scores, targets


def _dtype_of(value: Any) -> Any:
    tensor = as_tensor(value)
    return dtypes.float32 if tensor is None else tensor.dtype
