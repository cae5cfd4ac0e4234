"""Neural-network ops: activations, softmax and cross-entropies."""

from __future__ import annotations

import operator
from typing import Any

from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int
from headrace.ops.declare import Spec, op
from headrace.ops.identity import ensure_shape
from headrace.ops.kinds import Floating, Index
from headrace.ops.reduce import axis_last
from headrace.shapes import Shape, normalize_axis


@op("Softmax", total=True, nonnegative=True, public="")
def softmax_op(logits: Floating, axis: int | None = None) -> Spec:
    """``exp(logits) / sum(exp(logits))`` along an axis, without overflow.

    Args:
        logits: [...], floating, at least one dimension.
        axis: The axis that sums to 1; the last if None.

    Returns:
        [...], the dtype of ``logits``.
    """
    _check_class_axis(logits, axis)
    return like(logits)


@op("LogSoftmax", total=True, public="")
def log_softmax_op(logits: Floating, axis: int | None = None) -> Spec:
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


def _class_axis(function: str, axis: Any, dim: Any) -> int | Tensor | None:
    if axis is not None and dim is not None:
        raise AttributeValueError(f"nn.{function}: give axis or dim, not both")
    chosen = dim if axis is None else axis
    if chosen is None:
        return None
    if isinstance(chosen, Tensor):
        found: int | Tensor = as_int(chosen, "axis")
        return found
    try:
        return operator.index(chosen)
    except TypeError:
        raise AttributeValueError(
            f"nn.{function}: axis must be an integer, got {shown(chosen)}"
        ) from None


def _along(primitive: Any, logits: Any, axis: int | Tensor | None, name: str | None) -> Tensor:
    """Return what an op makes of logits along an axis, which may be known in a step only."""
    found: Tensor
    if not isinstance(axis, Tensor):
        found = primitive(logits, axis, name=name)
        return found
    with name_scope(name, primitive.schema.type):
        scores = convert_to_tensor(logits)
        last, back = axis_last(scores, axis)
        return ensure_shape(back(primitive(last)), scores.shape)


def softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """``exp(logits) / sum(exp(logits))`` along an axis, without overflow.

    Args:
        logits: [...], floating, at least one dimension.
        axis: The axis that sums to 1, an integer or a scalar integer tensor; the last if None.
        name: The name of the operation.
        dim: The same as ``axis``.

    Returns:
        [...], the dtype of ``logits``.

    Raises:
        ShapeError: for a scalar, and for an axis that there is not.
        DTypeError: if ``logits`` are not floating.
    """
    return _along(softmax_op, logits, _class_axis("softmax", axis, dim), name)


def log_softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """``logits - log(sum(exp(logits)))`` along an axis, without overflow.

    Args:
        logits: [...], floating, at least one dimension.
        axis: The axis of the classes, an integer or a scalar integer tensor; the last if None.
        name: The name of the operation.
        dim: The same as ``axis``.

    Returns:
        [...], the dtype of ``logits``.

    Raises:
        ShapeError: for a scalar, and for an axis that there is not.
        DTypeError: if ``logits`` are not floating.
    """
    return _along(log_softmax_op, logits, _class_axis("log_softmax", axis, dim), name)


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
        raise ShapeError(
            f"labels must be [n], got shape {labels.shape}; hr.nn.softmax_cross_entropy_with_logits"
            " takes one-hot labels"
        )
    shape = features.shape if features.shape.dims is not None else Shape([None, None])
    if not shape[:1].is_compatible_with(labels.shape):
        raise ShapeError(f"labels {labels.shape} must have one entry per row of logits {shape}")
    rows = shape[:1].merge_with(labels.shape)
    return TensorSpec(features.dtype, rows), TensorSpec(features.dtype, rows.concatenate(shape[1:]))


@op("L2Loss", total=True, reduction=True, public="nn.l2_loss")
def l2_loss(t: Floating) -> Spec:
    """Half the sum of squares.

    Args:
        t: [...], floating.

    Returns:
        [], the dtype of ``t``.
    """
    return TensorSpec(t.dtype, Shape(()))
