"""Variables that metrics keep between steps, and the collections that list their results."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.extend import DType, Tensor

# A metric: its value so far, and the tensor that takes in a batch and yields the new value.
Metric = tuple[Tensor, Tensor]


def metric_variable(shape: Any, dtype: DType, name: str, validate_shape: bool = True) -> Any:
    """Return a local variable that starts at zero, listed among those of metrics.

    Args:
        shape: Its shape.
        dtype: Its dtype.
        name: Its name.
        validate_shape: Whether all later values must have the shape.
    """
    return hr.Variable(
        lambda: hr.zeros(shape, dtype),
        trainable=False,
        collections=[hr.GraphKeys.LOCAL_VARIABLES, hr.GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        name=name,
    )


def listed(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> Metric:
    """Add a metric's value and update to the collections asked for, and return both.

    Args:
        value: The value so far.
        update: What takes in a batch.
        metrics_collections: Collections for the former, or None.
        updates_collections: Collections for the latter, or None.
    """
    if metrics_collections:
        hr.add_to_collections(metrics_collections, value)
    if updates_collections:
        hr.add_to_collections(updates_collections, update)
    return value, update
