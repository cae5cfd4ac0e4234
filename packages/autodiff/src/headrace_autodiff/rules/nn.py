"""Gradients of activations, softmax and the cross-entropies."""

from __future__ import annotations

from headrace import Operation, Tensor, exp, expand_dims, reduce_sum
from headrace.extend import GradientTable
from headrace.extend.primitives import log_softmax, softmax
from headrace_autodiff.accumulate import total

RULES = GradientTable()


def _through_softmax(probabilities: Tensor, grad: Tensor, axis: int) -> Tensor:
    mean = reduce_sum(grad * probabilities, axis, keepdims=True)
    return (grad - mean) * probabilities


@RULES.add("Softmax")
def _softmax(op: Operation, grad: Tensor) -> tuple[Tensor]:
    axis = op.attrs["axis"]
    return (_through_softmax(op.outputs[0], grad, -1 if axis is None else axis),)


@RULES.add("LogSoftmax")
def _log_softmax(op: Operation, grad: Tensor) -> tuple[Tensor]:
    axis = op.attrs["axis"]
    weight = reduce_sum(grad, -1 if axis is None else axis, keepdims=True)
    return (grad - exp(op.outputs[0]) * weight,)


def _feature_grad(op: Operation, of_loss: Tensor | None, of_slope: Tensor | None) -> Tensor | None:
    """Return the gradient for the features: the op's second output is the slope of the first.

    The slope is itself softmax less the labels, through which second derivatives flow.
    """
    parts = []
    if of_loss is not None:
        parts.append(expand_dims(of_loss, 1) * op.outputs[1])
    if of_slope is not None:
        parts.append(_through_softmax(softmax(op.inputs[0]), of_slope, 1))
    return total(parts)


@RULES.add("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(
    op: Operation, of_loss: Tensor | None, of_slope: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    of_labels = []
    if of_loss is not None:
        of_labels.append(-(expand_dims(of_loss, 1) * log_softmax(op.inputs[0])))
    if of_slope is not None:
        of_labels.append(-of_slope)
    return _feature_grad(op, of_loss, of_slope), total(of_labels)


@RULES.add("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(
    op: Operation, of_loss: Tensor | None, of_slope: Tensor | None
) -> tuple[Tensor | None, None]:
    return _feature_grad(op, of_loss, of_slope), None


@RULES.add("L2Loss")
def _l2_loss(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (grad * op.inputs[0],)
