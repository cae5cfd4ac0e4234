"""Dtypes and shapes as messages (``DataType``, ``TensorShapeProto``), and back."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import DType, Shape
from headrace.errors import DTypeError, told
from headrace_io import protos


def number_of(dtype: DType) -> int:
    """Return the number of a dtype in messages."""
    return dtype.as_datatype_enum


def dtype_of(number: int) -> DType:
    """Return the dtype of a number in messages; a reference is its dtype.

    Raises:
        DTypeError: if Headrace has no such dtype.
    """
    try:
        return hr.as_dtype(number)
    except DTypeError:
        raise DTypeError(f"no dtype has the number {told(number)}") from None


def shape_proto(shape: Shape) -> Any:
    """Return a shape as a ``TensorShapeProto``; -1 stands for a size that is not known.

    Args:
        shape: A shape of integers and Nones.
    """
    made = protos.TensorShapeProto()
    if shape.dims is None:
        made.unknown_rank = True
        return made
    for size in shape.dims:
        made.dim.add(size=-1 if size is None else size)
    return made


def shape_of(message: Any) -> Shape:
    """Return the shape that a ``TensorShapeProto`` is."""
    if message.unknown_rank:
        return Shape(None)
    return Shape([None if dim.size < 0 else dim.size for dim in message.dim])
