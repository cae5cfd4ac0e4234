"""Neural-network ops: activations, softmax and cross-entropies."""

from __future__ import annotations

from typing import Any

from headrace.errors import ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.array import reshape, shape
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import add, cast
from headrace.ops.kinds import Floating, Index, Real
from headrace.ops.reduce import reduce_sum
from headrace.shapes import Shape, normalize_axis


@op("Relu", elementwise=True, in_place=[(0, 0)], public="nn.relu")
def relu(features: Real) -> Spec:
    """``max(features, 0)``.

    Args:
        features: [...], real.

    Returns:
        [...], the dtype of ``features``.
    """
    return like(features)


@op("Softplus", elementwise=True, in_place=[(0, 0)], public="nn.softplus")
def softplus(features: Floating) -> Spec:
    """``log(1 + exp(features))``, without overflow.

    Args:
        features: [...], floating.

    Returns:
        [...], the dtype of ``features``.
    """
    return like(features)


@op("Softmax", public="nn.softmax")
def softmax(logits: Floating, axis: int | None = None) -> Spec:
    """``exp(logits) / sum(exp(logits))`` along an axis, without overflow.

    Args:
        logits: [...], floating, at least one dimension.
        axis: The axis that sums to 1; the last if None.

    Returns:
        [...], the dtype of ``logits``.
    """
    _check_class_axis(logits, axis)
    return like(logits)


@op("LogSoftmax", public="nn.log_softmax")
def log_softmax(logits: Floating, axis: int | None = None) -> Spec:
    """``logits - log(sum(exp(logits)))`` along an axis, without overflow.

    Args:
        logits: [...], floating, at least one dimension.
        axis: The axis of the classes; the last if None.

    Returns:
        [...], the dtype of ``logits``.
    """
    _check_class_axis(logits, axis)
    return like(logits)


def _check_class_axis(logits: TensorSpec, axis: int | None) -> None:
    if logits.rank == 0:
        raise ShapeError("logits must have at least 1 dimension, got a scalar")
    if logits.rank is not None and axis is not None:
        normalize_axis(axis, logits.rank)


@op("SoftmaxCrossEntropyWithLogits", public="")
def softmax_cross_entropy(features: Floating, labels: Floating) -> tuple[Spec, Spec]:
    """Cross-entropy of softmax against distributions, with its gradient.

    Args:
        features: [n, classes], floating.
        labels: [n, classes], the dtype of ``features``; each row sums to 1.

    Returns:
        The loss [n], and its gradient with respect to ``features`` [n, classes].
    """
    if features.rank not in (None, 2):
        raise ShapeError(f"logits must be [n, classes], got shape {features.shape}")
    if not features.shape.is_compatible_with(labels.shape):
        raise ShapeError(f"labels {labels.shape} and logits {features.shape} must have one shape")
    merged = features.shape.merge_with(labels.shape)
    if merged.dims is None:
        merged = Shape([None, None])
    return TensorSpec(features.dtype, merged[:1]), TensorSpec(features.dtype, merged)


@op("SparseSoftmaxCrossEntropyWithLogits", public="")
def sparse_softmax_cross_entropy(features: Floating, labels: Index) -> tuple[Spec, Spec]:
    """Cross-entropy of softmax against class indices, with its gradient.

    Args:
        features: [n, classes], floating.
        labels: [n], int32 or int64, in [0, classes); others raise when it runs.

    Returns:
        The loss [n], and its gradient with respect to ``features`` [n, classes].
    """
    if features.rank not in (None, 2):
        raise ShapeError(f"logits must be [n, classes], got shape {features.shape}")
    if labels.rank not in (None, 1):
        raise ShapeError(f"labels must be [n], got shape {labels.shape}")
    shape = features.shape if features.shape.dims is not None else Shape([None, None])
    if not shape[:1].is_compatible_with(labels.shape):
        raise ShapeError(f"labels {labels.shape} must have one entry per row of logits {shape}")
    rows = shape[:1].merge_with(labels.shape)
    return TensorSpec(features.dtype, rows), TensorSpec(features.dtype, rows.concatenate(shape[1:]))


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = "softmax_cross_entropy_with_logits",
    axis: int | None = None,
) -> Tensor:
    """Cross-entropy between class distributions and softmax of logits.

    Computes ``-sum(labels * log(softmax(logits)))`` along the class axis, stably. Gradients flow
    into the labels too; stop them with ``hr.stop_gradient`` where labels are computed.

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
    with name_scope(name, "softmax_cross_entropy_with_logits"):
        scores = convert_to_tensor(logits)
        targets = cast(convert_to_tensor(labels, preferred_dtype=scores.dtype), scores.dtype)
        chosen = dim if axis is None else axis
        rank = scores.shape.rank if scores.shape.rank is not None else targets.shape.rank
        if rank is not None and normalize_axis(chosen, rank) == rank - 1 == 1:
            return softmax_cross_entropy(scores, targets)[0]
        if not scores.shape.is_compatible_with(targets.shape):
            raise ShapeError(
                f"labels {targets.shape} and logits {scores.shape} must have one shape"
            )
        return -reduce_sum(targets * log_softmax(scores, chosen), chosen)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    name: str | None = "sparse_softmax_cross_entropy_with_logits",
) -> Tensor:
    """Cross-entropy between class indices and softmax of logits.

    Args:
        _sentinel: Must be None; labels and logits are passed by name.
        labels: [...], int32 or int64, each in [0, classes).
        logits: [..., classes], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``logits``.

    Raises:
        ShapeError: if labels or logits are missing, or their shapes do not fit.
    """
    _by_name("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "sparse_softmax_cross_entropy_with_logits"):
        scores = convert_to_tensor(logits)
        targets = convert_to_tensor(labels)
        rank = scores.shape.rank
        if rank is None or rank == 2:
            return sparse_softmax_cross_entropy(scores, targets)[0]
        if rank == 0 or (targets.shape.rank is not None and targets.shape.rank != rank - 1):
            raise ShapeError(
                f"labels {targets.shape} must have the shape of logits {scores.shape} without the "
                "last axis"
            )
        classes = scores.shape[-1]
        flat = reshape(scores, [-1, classes if classes is not None else shape(scores)[-1]])
        loss = sparse_softmax_cross_entropy(flat, reshape(targets, [-1]))[0]
        return reshape(loss, shape(targets))


def _by_name(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise ShapeError(f"call nn.{function}(labels=..., logits=...), both by name")


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Add a bias per channel.

    Args:
        value: [..., channels], numeric ([n, channels, ...] for "NCHW").
        bias: [channels], the dtype of ``value``.
        data_format: "NHWC" (channels last) or "NCHW".
        name: The name of the operation.

    Returns:
        The shape of ``value``.
    """
    tensor = convert_to_tensor(value)
    offsets = convert_to_tensor(bias, preferred_dtype=tensor.dtype)
    if offsets.shape.rank not in (None, 1):
        raise ShapeError(f"bias_add: bias must be a vector, got shape {offsets.shape}")
    rank = tensor.shape.rank
    if data_format is not None and data_format.startswith("NC") and rank is not None and rank > 2:
        offsets = reshape(offsets, [-1] + [1] * (rank - 2))
    return add(tensor, offsets, name=name)


@op("L2Loss", reduction=True, public="nn.l2_loss")
def l2_loss(t: Floating) -> Spec:
    """Half the sum of squares.

    Args:
        t: [...], floating.

    Returns:
        [], the dtype of ``t``.
    """
    return TensorSpec(t.dtype, Shape(()))
