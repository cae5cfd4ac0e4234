"""Losses of elements, weighted and reduced to one."""

from __future__ import annotations

from typing import Any, final

from headrace import dtypes
from headrace.errors import AttributeValueError, shown
from headrace.graph.collections import GraphKeys
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import broadcast_to, size
from headrace.ops.constant import ones_like, shape_of, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import div_no_nan, equal, select
from headrace.ops.losses.collected import add_loss
from headrace.ops.reduce import reduce_sum
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
        each = as_float(each)
        always = isinstance(weights, float) and weights != 0.0
        factor = as_float(weights)
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
                loss = div_no_nan(loss, as_float(size(each)), name="value")
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                loss = div_no_nan(loss, reduce_sum(present(factor, each)), name="value")
        result: Tensor = cast(loss, dtype)
        add_loss(result, loss_collection)
        return result


def as_float(value: Any) -> Tensor:
    """Return numbers as float32, in which all losses are computed."""
    found: Tensor = cast(value, dtypes.float32)
    return found


def present(weights: Tensor, losses: Tensor) -> Tensor:
    """Return ones where weights, spread over the losses, are not 0."""
    some = select(equal(weights, 0), zeros_like(weights), ones_like(weights))
    return broadcast_to(some, shape_of(losses))
