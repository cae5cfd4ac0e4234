"""``framework.tensor_shape``: functions that make static shapes."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import ArgumentTypeError


def as_shape(shape: Any) -> Any:
    """Return a static shape, given as one, as sizes or as None for an unknown rank."""
    return shape if isinstance(shape, hr.TensorShape) else hr.TensorShape(shape)


def as_dimension(value: Any) -> Any:
    """Return a size, or None, as a dimension."""
    return value if isinstance(value, hr.Dimension) else hr.Dimension(value)


def unknown_shape(rank: int | None = None, **kwargs: Any) -> Any:
    """Return a shape of unknown sizes.

    Args:
        rank: How many axes it has; unknown if None.
        **kwargs: ``ndims``, the older name of ``rank``.

    Raises:
        ArgumentTypeError: if there are other arguments.
    """
    if rank is None:
        rank = kwargs.pop("ndims", None)
    if kwargs:
        raise ArgumentTypeError(f"unknown_shape takes a rank, got {', '.join(kwargs)}, too")
    return hr.TensorShape(None if rank is None else [None] * rank)


def scalar() -> Any:
    """Return the shape of a scalar."""
    return hr.TensorShape([])


def vector(length: Any) -> Any:
    """Return the shape of a vector."""
    return hr.TensorShape([length])


def matrix(rows: Any, cols: Any) -> Any:
    """Return the shape of a matrix."""
    return hr.TensorShape([rows, cols])
