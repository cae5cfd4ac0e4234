"""The losses that a graph collects, and their sums."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.collections import GraphKeys, add_to_collection, get_collection
from headrace.graph.tensor import Tensor
from headrace.ops.constant import constant
from headrace.ops.elementwise import add_n


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
