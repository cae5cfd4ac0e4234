"""Conversions that leave values of several tensors as they are: sparse ones, and rows."""

from __future__ import annotations

from typing import Any

from headrace.dtypes import as_dtype
from headrace.errors import DTypeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """Return a value as a tensor; a sparse tensor, or the value of one, as a sparse tensor.

    Args:
        value: What ``convert_to_tensor`` takes, a ``SparseTensor`` or a ``SparseTensorValue``.
        dtype: The dtype that it must have.
        name: Name of the constant, where one is made.

    Returns:
        A ``Tensor`` or a ``SparseTensor``.

    Raises:
        DTypeError: if it has another dtype.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        return _checked(value, dtype)
    return convert_to_tensor(value, dtype, name)


def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """Return a value as a tensor; ``IndexedSlices`` and sparse tensors as they are.

    Args:
        value: What ``convert_to_tensor`` takes, ``IndexedSlices`` or a ``SparseTensor``.
        dtype: The dtype that it must have.
        name: Name of the constant, where one is made.

    Returns:
        A ``Tensor``, ``IndexedSlices`` or a ``SparseTensor``.

    Raises:
        DTypeError: if it has another dtype.
    """
    if isinstance(value, IndexedSlices | SparseTensor):
        return _checked(value, dtype)
    return convert_to_tensor(value, dtype, name)


def _checked(value: Any, dtype: Any) -> Any:
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise DTypeError(f"{shown(value)} has dtype {value.dtype}, expected {as_dtype(dtype)}")
    return value
