"""Predictions, labels and weights, brought into shapes that fit one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import ShapeError
from headrace.extend import Tensor


def same_rank(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Return labels and predictions, without the last axis of the one that has one more.

    Args:
        labels: A tensor.
        predictions: A tensor.

    Raises:
        ShapeError: if that axis is not of size 1.
    """
    found, made = hr.convert_to_tensor(labels), hr.convert_to_tensor(predictions)
    ranks = found.shape.rank, made.shape.rank
    if ranks[0] is not None and ranks[1] is not None:
        if ranks[1] == ranks[0] + 1:
            made = _without_last(made, "predictions", found)
        elif ranks[0] == ranks[1] + 1:
            found = _without_last(found, "labels", made)
        return found, made
    difference = hr.rank(made) - hr.rank(found)
    made_thin = _squeezed_where(hr.equal(difference, 1), made)
    return _squeezed_where(hr.equal(difference, -1), found), made_thin


def _without_last(tensor: Tensor, what: str, other: Tensor) -> Tensor:
    if tensor.spec.shape[-1] not in (1, None):
        raise ShapeError(
            f"{what} of shape {tensor.spec.shape} have one axis more than shape "
            f"{other.spec.shape}; the last "
            "one must be of size 1"
        )
    return hr.squeeze(tensor, [-1])


def _squeezed_where(condition: Tensor, tensor: Tensor) -> Tensor:
    if tensor.shape.rank is not None and (
        tensor.shape.rank == 0 or tensor.spec.shape[-1] not in (1, None)
    ):
        return tensor
    return _either(condition, lambda: hr.squeeze(tensor, [-1]), lambda: tensor)


def _either(condition: Tensor, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Tensor:
    found: Tensor = hr.cond(condition, then, lambda: hr.identity(otherwise()))
    return found


def matched(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return predictions, labels and weights of one rank, where it differs by one.

    Args:
        predictions: A tensor.
        labels: A tensor.
        weights: A tensor, or None. A scalar stays one.

    Raises:
        ShapeError: if labels and predictions are of shapes that do not fit.
    """
    found, made = same_rank(labels, predictions)
    if not made.shape.is_compatible_with(found.shape):
        raise ShapeError(
            f"labels and predictions must have one shape, got {found.spec.shape} and "
            f"{made.spec.shape}"
        )
    return made, found, fitted(weights, made)


def fitted(weights: Any, values: Tensor) -> Tensor | None:
    """Return weights of the rank of values, where it differs by one; None stays None.

    Args:
        weights: A tensor, or None. A scalar stays one.
        values: What they weigh.
    """
    if weights is None:
        return None
    factor = hr.convert_to_tensor(weights)
    rank, wanted = factor.shape.rank, values.shape.rank
    if rank == 0:
        return factor
    if rank is not None and wanted is not None:
        if rank == wanted + 1:
            return _without_last(factor, "weights", values)
        return hr.expand_dims(factor, -1) if rank == wanted - 1 else factor
    difference = hr.rank(factor) - hr.rank(values)
    wide = hr.logical_and(hr.equal(difference, -1), hr.greater(hr.rank(factor), 0))
    thin = _squeezed_where(hr.equal(difference, 1), factor)
    return _either(wide, lambda: hr.expand_dims(thin, -1), lambda: thin)


def broadcast_weights(weights: Any, values: Tensor) -> Tensor:
    """Return weights in the shape and dtype of values.

    Args:
        weights: A scalar, or of the rank of ``values``, with axes of their size or of size 1.
        values: What they weigh, floating.

    Raises:
        ShapeError: if they are of another shape; where that is known in a step only, the step
            raises ``InvalidArgumentError``.
    """
    factor = hr.cast(weights, values.dtype)
    with hr.control_dependencies(_checks(factor, values)):
        return hr.multiply(factor, hr.ones_like(values), name="broadcast_weights")


def _checks(weights: Tensor, values: Tensor) -> list[Any]:
    """Return what checks shapes in a step, nothing where they are known to fit."""
    given, wanted = weights.spec.shape, values.spec.shape
    if given.rank == 0:
        return []
    if given.rank is not None and wanted.rank is not None:
        fit = given.rank == wanted.rank and all(
            a in (1, None) or b is None or a == b for a, b in zip(given, wanted, strict=True)
        )
        if not fit:
            raise ShapeError(
                f"weights of shape {given} do not fit values of shape {wanted}: they must be a "
                "scalar, or have as many axes, each of the same size or of size 1"
            )
        if all(a == 1 or (a is not None and a == b) for a, b in zip(given, wanted, strict=True)):
            return []
    ours, theirs = hr.shape(weights), hr.shape(values)
    fits = hr.cond(
        hr.equal(hr.rank(weights), hr.rank(values)),
        lambda: hr.reduce_all(hr.logical_or(hr.equal(ours, 1), hr.equal(ours, theirs))),
        lambda: hr.equal(hr.rank(weights), 0),
    )
    message = "weights do not fit the values: shapes of weights and values are"
    return [hr.Assert(fits, [message, ours, theirs])]
