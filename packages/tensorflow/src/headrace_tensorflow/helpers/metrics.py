"""``ops.metrics_impl`` and its like: what metrics of other libraries are made of."""

from __future__ import annotations

from typing import Any

import headrace as hr


def metric_variable(
    shape: Any, dtype: Any, validate_shape: bool = True, name: str | None = None
) -> hr.Variable:
    """Make a variable of zeros that is local and belongs to a metric."""
    return hr.Variable(
        lambda: hr.zeros(shape, dtype),
        trainable=False,
        collections=[hr.GraphKeys.LOCAL_VARIABLES, hr.GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        name=name,
    )


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Any, Any]:
    """Drop the last axis, of size 1, of what has one axis more than is expected.

    Args:
        labels: [...], or [..., 1].
        predictions: [...], or [..., 1].
        expected_rank_diff: How many axes ``predictions`` has more than ``labels``.
        name: The name of the operations.

    Returns:
        Both. Where a rank is not known, that is decided when the graph runs.
    """
    with hr.name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        labels, predictions = hr.convert_to_tensor(labels), hr.convert_to_tensor(predictions)
        ranks = labels.shape.ndims, predictions.shape.ndims
        if ranks[0] is not None and ranks[1] is not None:
            more = ranks[1] - ranks[0] - expected_rank_diff
            if more == 1:
                predictions = hr.squeeze(predictions, [-1])
            elif more == -1:
                labels = hr.squeeze(labels, [-1])
            return labels, predictions
        more = hr.rank(predictions) - hr.rank(labels) - expected_rank_diff
        return _without(labels, hr.equal(more, -1)), _without(predictions, hr.equal(more, 1))


def _without(x: hr.Tensor, going: hr.Tensor) -> Any:
    if x.shape.ndims is not None and not x.shape[-1:].is_compatible_with([1]):
        return x
    return hr.cond(going, lambda: hr.squeeze(x, [-1]), lambda: x)


def _remove_squeezable_dimensions(
    predictions: Any, labels: Any, weights: Any
) -> tuple[Any, Any, Any]:
    """Drop a last axis of size 1 of predictions or labels, and of weights, to make them equal."""
    predictions = hr.convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = hr.convert_to_tensor(weights)
    ranks = weights.shape.ndims, predictions.shape.ndims
    if ranks[0] == 0:
        return predictions, labels, weights
    if ranks[0] is not None and ranks[1] is not None:
        if ranks[0] == ranks[1] + 1:
            weights = hr.squeeze(weights, [-1])
        elif ranks[1] == ranks[0] + 1:
            weights = hr.expand_dims(weights, -1)
        return predictions, labels, weights
    more = hr.rank(weights) - hr.rank(predictions)
    less = hr.cond(hr.equal(more, -1), lambda: hr.expand_dims(weights, -1), lambda: weights)
    if weights.shape.ndims is None or weights.shape[-1:].is_compatible_with([1]):
        less = hr.cond(hr.equal(more, 1), lambda: hr.squeeze(weights, [-1]), lambda: less)
    scalar = hr.equal(hr.rank(weights), 0)
    return predictions, labels, hr.cond(scalar, lambda: weights, lambda: less)


def _aggregate_variable(v: hr.Variable, collections: Any) -> hr.Tensor:
    """Return the value of a metric's variable, listed in some collections."""
    value = v.value()
    if collections:
        hr.add_to_collections(collections, value)
    return value


def _safe_scalar_div(numerator: Any, denominator: Any, name: str) -> Any:
    """Return a quotient, 0 where the denominator is 0."""
    return hr.div_no_nan(hr.convert_to_tensor(numerator), denominator, name=name)


def assert_broadcastable(weights: Any, values: Any) -> Any:
    """Check that weights are scalar, or have the rank of values and in each axis its size or 1.

    Raises:
        ValueError: if they are known not to.
    """
    weights, values = hr.convert_to_tensor(weights), hr.convert_to_tensor(values)
    ours, theirs = weights.shape.ndims, values.shape.ndims
    if ours == 0:
        return hr.no_op(name="static_scalar_check_success")
    if ours is not None and theirs is not None:
        fits = ours == theirs and all(
            own.value in (1, None) or other.is_compatible_with(own)
            for own, other in zip(weights.shape, values.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"weights can not be broadcast to values: weights have shape {weights.shape}, "
                f"values {values.shape}; expected a scalar, or the rank of values with sizes of 1 "
                "or theirs"
            )
        if weights.shape.is_fully_defined() and values.shape.is_fully_defined():
            return hr.no_op(name="static_dims_check_success")
    return hr.Assert(_fits(weights, values), ["weights can not be broadcast to values."])


def _fits(weights: hr.Tensor, values: hr.Tensor) -> Any:
    def sizes() -> hr.Tensor:
        own, other = hr.shape(weights), hr.shape(values)
        return hr.reduce_all(hr.equal(own, 1) | hr.equal(own, other))

    equal_ranks = hr.equal(hr.rank(weights), hr.rank(values))
    return hr.equal(hr.rank(weights), 0) | hr.cond(equal_ranks, sizes, lambda: hr.constant(False))


def broadcast_weights(weights: Any, values: Any) -> hr.Tensor:
    """Return weights in the shape of values.

    Args:
        weights: [], or the rank of ``values`` with sizes of 1 or its.
        values: [...].

    Raises:
        ValueError: if they do not fit.
    """
    with hr.name_scope(None, "broadcast_weights", [weights, values]):
        values = hr.convert_to_tensor(values)
        weights = hr.convert_to_tensor(weights, dtype=values.dtype.base_dtype)
        with hr.control_dependencies([assert_broadcastable(weights, values)]):
            return hr.multiply(weights, hr.ones_like(values))
