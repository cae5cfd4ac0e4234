"""Indices of extremes: where along an axis the largest and the smallest elements are."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.aliases import renamed
from headrace.ops.arguments import as_int
from headrace.ops.conversion import integers_of
from headrace.ops.reduce import argmax_along, argmin_along, folded_last


def argmax(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """Index of the largest element along an axis, the first of equals.

    NaN is passed over; where nothing else is there, the index is 0.

    Args:
        input: [...], real, not empty along ``axis``.
        axis: The axis to fold, an integer or an integer tensor; the first if None.
        name: The name of the operation.
        dimension: The old name of ``axis``.
        output_type: int32 or int64.

    Returns:
        The remaining axes, ``output_type``.

    Raises:
        ShapeError: if ``input`` is a scalar, or empty along the axis.
    """
    where = renamed("axis", axis, "dimension", dimension)
    return _find(argmax_along, input, where, output_type, name)


def argmin(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """Index of the smallest element along an axis, the first of equals.

    NaN is passed over; where nothing else is there, the index is 0.

    Args:
        input: [...], real, not empty along ``axis``.
        axis: The axis to fold, an integer or an integer tensor; the first if None.
        name: The name of the operation.
        dimension: The old name of ``axis``.
        output_type: int32 or int64.

    Returns:
        The remaining axes, ``output_type``.

    Raises:
        ShapeError: if ``input`` is a scalar, or empty along the axis.
    """
    where = renamed("axis", axis, "dimension", dimension)
    return _find(argmin_along, input, where, output_type, name)


def arg_max(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old form of ``argmax``.

    Args:
        input: [...], real, not empty along the axis.
        dimension: The axis to fold, an integer or an integer tensor.
        output_type: int32 or int64.
        name: The name of the operation.

    Returns:
        The remaining axes, ``output_type``.
    """
    return argmax(input, dimension, name, output_type=output_type)


def arg_min(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old form of ``argmin``.

    Args:
        input: [...], real, not empty along the axis.
        dimension: The axis to fold, an integer or an integer tensor.
        output_type: int32 or int64.
        name: The name of the operation.

    Returns:
        The remaining axes, ``output_type``.
    """
    return argmin(input, dimension, name, output_type=output_type)


def _find(primitive: Any, tensor: Any, axis: Any, output_type: Any, name: str | None) -> Tensor:
    where = 0 if axis is None else as_int(axis, "axis")
    # Levels of a range are in the order of their integers.
    integers = integers_of(tensor)
    tensor = tensor if integers is None else integers
    found: Tensor
    if not isinstance(where, Tensor):
        found = primitive(tensor, where, output_type, name=name)
        return found
    with name_scope(name, primitive.schema.type):
        source = convert_to_tensor(tensor)
        flat, _, _ = folded_last(source, where)
        found = primitive(flat, -1, output_type)
        if source.shape.rank:
            found.set_shape([None] * (source.shape.rank - 1))
        return found
