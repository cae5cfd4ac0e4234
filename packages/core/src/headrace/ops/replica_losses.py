"""Losses of one of several replicas of a model: its share of the mean over a global batch."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, shape, squeeze
from headrace.ops.conversion import cast
from headrace.ops.elementwise import divide
from headrace.ops.reduce import reduce_sum


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> Tensor:
    """Add up the losses of examples, divided by the size of the global batch.

    Args:
        per_example_loss: [n, ...], numeric: one loss per example.
        sample_weight: Weights of the losses, which broadcast; 1 if None.
        global_batch_size: [], the number of examples of all replicas; n if None.

    Returns:
        [], the dtype of the losses.

    Raises:
        AttributeValueError: if there is no axis of examples.
    """
    with name_scope(None, "compute_average_loss"):
        losses = convert_to_tensor(per_example_loss)
        dtype = losses.dtype
        if losses.shape.rank == 0:
            raise AttributeValueError(
                "Invalid value passed for `per_example_loss`. Expected a tensor with at least "
                "rank 1, got a scalar"
            )
        count = shape(losses)[0] if global_batch_size is None else global_batch_size
        if sample_weight is not None:
            losses = _weighted(cast(losses, dtypes.float32), cast(sample_weight, dtypes.float32))
            losses = cast(losses, dtype)
        return divide(reduce_sum(losses), cast(count, dtype))


def _weighted(losses: Tensor, weights: Tensor) -> Tensor:
    """Return the product; the weights get or lose an axis of one where that is what lacks."""
    rank, given = losses.shape.rank, weights.shape.rank
    if rank is not None and given is not None:
        if given == rank + 1:
            weights = squeeze(weights, [-1])
        elif given == rank - 1 and given > 0:
            weights = expand_dims(weights, -1)
    return losses * weights


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """Add up losses of regularization, divided by the number of replicas, which is one here.

    Args:
        regularization_loss: [...], numeric.

    Returns:
        [], the same dtype.
    """
    return reduce_sum(regularization_loss)
