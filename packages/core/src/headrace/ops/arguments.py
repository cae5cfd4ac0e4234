"""Arguments that may be numbers or tensors: what of them is known while the graph is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.dimension import UNKNOWN_DIMENSION, UNKNOWN_IS_NO_INTEGER
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import (
    as_tensor,
    contains_tensor,
    convert_to_tensor,
    natural_dtype,
)
from headrace.graph.schema import call_op
from headrace.graph.static_values import static_value as static_value
from headrace.graph.tensor import Tensor
from headrace.shapes import Shape

_NDArray = np.ndarray[Any, np.dtype[Any]]


def as_ints(value: Any, label: str) -> Any:
    """Return nested lists of integers where ``value`` is known, else a tensor of int32 or int64.

    Args:
        value: An integer, nested lists, an array, or a tensor; lists may hold tensors.
        label: What messages call it.

    Raises:
        DTypeError: if it does not hold integers.
    """
    tensor = as_tensor(value)
    if tensor is None and contains_tensor(value):
        tensor = convert_to_tensor(value)
    if tensor is not None:
        if tensor.dtype.name not in ("int32", "int64"):
            raise DTypeError(f"{label} must be int32 or int64, got {tensor.dtype}")
        known = static_value(tensor)
        return convert_to_tensor(tensor) if known is None else known.tolist()
    if isinstance(value, int) and not isinstance(value, bool):
        return _within_int64(value, label)
    dims = getattr(getattr(value, "plain", value), "dims", None)
    try:
        if isinstance(value, Mapping):
            # NumPy takes those that are no dicts for lists, and iterates them.
            raise ValueError("no list")
        array = np.asarray(list(dims) if isinstance(dims, tuple) else value)
    except (ValueError, OverflowError, MemoryError):
        raise ShapeError(
            f"{label} must be integers in lists of one length, got {shown(value)}"
        ) from None
    if array.dtype.kind == "O" and any(item is UNKNOWN_DIMENSION for item in array.flat):
        raise DTypeError(f"{label}: {UNKNOWN_IS_NO_INTEGER}")
    if array.dtype.kind == "O" and all(type(item) is int for item in array.flat):
        for item in array.flat:
            _within_int64(item, label)
    if (array.dtype.kind not in "iu" or array.dtype.itemsize > 8) and array.size:
        raise DTypeError(f"{label} must hold integers, got {shown(value)}")
    if array.dtype.kind == "u" and array.size:
        _within_int64(int(array.max()), label)
    return array.tolist()


def _within_int64(value: int, label: str) -> int:
    if not -(2**63) <= value < 2**63:
        raise DTypeError(f"{label} must hold integers of 64 bits, got {shown(value)}")
    return value


def as_scalar(value: Any, dtype: DType, label: str) -> Tensor:
    """Return a number as a scalar tensor of a dtype.

    Raises:
        ShapeError: if it is not one, but several.
    """
    found = convert_to_tensor(value, preferred_dtype=dtype)
    if found.shape.rank is None:
        # The step says so where there are several.
        found = convert_to_tensor(call_op("EnsureShape", found, Shape(())))
    if found.shape.rank:
        raise ShapeError(f"{label} must be a scalar, got shape {found.spec.shape}")
    return convert_to_tensor(call_op("Cast", found, dtype))


def as_int(value: Any, label: str) -> Any:
    """Return an integer where ``value`` is known, else a scalar tensor of int32 or int64.

    Raises:
        DTypeError: if it is no integer.
        ShapeError: if it is not one, but several.
    """
    found = as_ints(value, label)
    if isinstance(found, list):
        alone = f"; pass {found[0]} alone" if len(found) == 1 and isinstance(found[0], int) else ""
        raise ShapeError(f"{label} must be one integer, got {found}{alone}")
    if isinstance(found, Tensor) and found.shape.rank is None:
        # The step says so where it is a list.
        return call_op("EnsureShape", found, Shape(()))
    if isinstance(found, Tensor) and found.shape.rank != 0:
        raise ShapeError(f"{label} must be one integer, got a tensor of shape {found.spec.shape}")
    return found


def as_only_int(value: Any, label: str) -> Any:
    """Return the integer that ``value`` is or holds, in whatever lists, else a tensor of it.

    Raises:
        DTypeError: if it is no integer.
        ShapeError: if it is not one, but several.
    """
    found = as_ints(value, label)
    if isinstance(found, list) and np.size(found) == 1:
        return int(np.ravel(found)[0])
    if isinstance(found, Tensor) and found.shape.num_elements() in (None, 1):
        return found
    return as_int(found, label)


def static_int(value: Any, label: str) -> int:
    """Return an integer that must be known while the graph is built.

    Raises:
        DTypeError: if it is no integer.
        ShapeError: if it is not one, but several.
        AttributeValueError: if a step alone knows it.
    """
    found = as_int(value, label)
    if isinstance(found, Tensor):
        raise AttributeValueError(
            f"{label} must be known while the graph is built, got {shown(found)}"
        )
    return int(found)


def as_list(values: Any, label: str) -> list[Any]:
    """Return several tensors as a list.

    Raises:
        DTypeError: if they are none.
    """
    if isinstance(values, Tensor) or not isinstance(values, Sequence | np.ndarray):
        raise DTypeError(f"{label} must be a list of tensors, got {shown(values)}")
    if isinstance(values, np.ndarray) and not values.ndim:
        raise DTypeError(f"{label} must be a list of tensors, got a scalar")
    return items(values, label)


def known_ints(value: Any) -> Any:
    """Return ``value`` as a list where it is a tensor of known integers, else as it is."""
    if isinstance(value, Tensor) and value.spec.value is None:
        known = static_value(value)
        return value if known is None else known
    return value


def one_of(**given: Any) -> Any:
    """Return the argument that is given, under its present or its older name.

    Raises:
        AttributeValueError: if none is, or two are.
    """
    names = [name for name, value in given.items() if value is not None]
    if not names:
        raise AttributeValueError(f"argument {next(iter(given))!r} is missing")
    if len(names) > 1:
        raise AttributeValueError(f"{' and '.join(names)} are names of one argument; give one")
    return given[names[0]]


def as_floats(value: Any) -> Tensor:
    """Return a tensor; plain data of integers become float32, if that holds all of them."""
    plain = as_tensor(value) is None and not contains_tensor(value)
    lowered = plain and natural_dtype(value).is_integer
    return convert_to_tensor(value, dtypes.float32 if lowered else None)
