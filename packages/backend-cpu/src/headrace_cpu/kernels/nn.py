"""Kernels of softmax and cross-entropies."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    axis_index,
    check_indices,
    check_rank,
    check_shape,
    narrowed,
    widened,
)

KERNELS = KernelTable()


def _below_maximum(xp: Any, logits: Array, axis: int) -> Array:
    """Return ``logits`` less their maximum, so that the largest is 0.

    Infinite maxima are subtracted from themselves as equal numbers are: one logit of +inf takes
    all, and logits that are all -inf count as equal.
    """
    largest = logits.max(axis, keepdims=True)
    shifted = logits - largest
    # Looking first is quicker on the host; on other devices it would wait for them.
    if xp is not np or np.isinf(largest).any():
        shifted = xp.where(xp.isinf(largest) & (logits == largest), logits.dtype.type(0), shifted)
    return shifted


@KERNELS.plain("Softmax")
def softmax(xp: Any, logits: Array, *, axis: int | None) -> Array:
    """Return probabilities along an axis."""
    at = axis_index(-1 if axis is None else axis, logits.ndim)
    if not logits.size:
        return logits
    scaled = xp.exp(_below_maximum(xp, widened(logits), at))
    scaled /= scaled.sum(at, keepdims=True)
    return narrowed(scaled, logits.dtype)


@KERNELS.plain("LogSoftmax")
def log_softmax(xp: Any, logits: Array, *, axis: int | None) -> Array:
    """Return logarithms of probabilities along an axis."""
    at = axis_index(-1 if axis is None else axis, logits.ndim)
    if not logits.size:
        return logits
    shifted = _below_maximum(xp, widened(logits), at)
    total = xp.exp(shifted).sum(at, keepdims=True)
    return narrowed(shifted - xp.log(total), logits.dtype)


@KERNELS.plain("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(xp: Any, logits: Array, labels: Array) -> tuple[Array, Array]:
    """Return the cross-entropy with distributions, and its gradient."""
    check_rank(logits, 2, "logits")
    check_shape(labels, logits.shape, "labels")
    if not logits.size:
        return xp.zeros(logits.shape[:1], logits.dtype), logits
    targets = widened(labels)
    shifted = _below_maximum(xp, widened(logits), 1)
    chances = xp.exp(shifted)
    total = chances.sum(1, keepdims=True)
    terms = targets * (xp.log(total) - shifted)
    loss = terms.sum(1)
    # A class that is ruled out costs nothing where its logit is -inf, too: not 0 * inf.
    if xp is not np or np.isnan(loss).any():
        loss = xp.where(targets == 0, targets.dtype.type(0), terms).sum(1)
    chances /= total
    chances -= targets
    return narrowed(loss, logits.dtype), narrowed(chances, logits.dtype)


@KERNELS.plain("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(xp: Any, logits: Array, labels: Array) -> tuple[Array, Array]:
    """Return the cross-entropy with class indices, and its gradient."""
    check_rank(logits, 2, "logits")
    check_shape(labels, logits.shape[:1], "labels")
    check_indices(labels, logits.shape[1], f"the {logits.shape[1]} classes")
    if not logits.size:
        return xp.zeros(logits.shape[:1], logits.dtype), logits
    shifted = _below_maximum(xp, widened(logits), 1)
    chances = xp.exp(shifted)
    total = chances.sum(1, keepdims=True)
    rows = xp.arange(labels.size)
    loss = xp.log(total[:, 0]) - shifted[rows, labels]
    chances /= total
    chances[rows, labels] -= chances.dtype.type(1)
    return narrowed(loss, logits.dtype), narrowed(chances, logits.dtype)


@KERNELS.plain("L2Loss")
def l2_loss(xp: Any, x: Array) -> Array:
    """Return half the sum of squares."""
    wide = widened(x)
    return narrowed((wide * wide).sum() / wide.dtype.type(2), x.dtype)
