"""Ragged tensors of nested lists, and those that are fed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import whole
from headrace.dtypes import as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, ShapeError, shown, told
from headrace.graph.convert import constant_of, contains_tensor, quantized_dtype, to_array
from headrace.graph.scopes import name_scope
from headrace.graph.spec import MAX_RANK
from headrace.ops.constant import placeholder as dense_placeholder
from headrace.ragged.partitions import as_splits_dtype
from headrace.ragged.tensor import RaggedTensor
from headrace.ragged.value import RaggedTensorValue, nested_value
from headrace.shapes import Shape


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """Make a ragged tensor of nested lists.

    Args:
        pylist: Nested lists, tuples and arrays, all scalars equally deep.
        dtype: The dtype of the elements; that of the scalars if None.
        ragged_rank: How many axes are ragged, or hold ragged ones, from 0 to one less than the
            depth; all but the last of those without ``inner_shape`` if None.
        inner_shape: The shape of one flat value; without ragged axes, that of all values.
        name: The name of the scope.
        row_splits_dtype: int32 or int64.

    Returns:
        A ragged tensor; a tensor if ``ragged_rank`` is 0.

    Raises:
        ArgumentTypeError: if ``pylist`` holds tensors.
        AttributeValueError: if ``ragged_rank`` is out of range, or does not fit ``inner_shape``.
        ShapeError: if scalars stand at several depths, or values are no arrays of the inner shape.
    """
    with name_scope(name, "RaggedConstant"):
        array_of = partial(to_array, dtype=None if dtype is None else as_dtype(dtype))
        flat, splits = _parts(pylist, array_of, ragged_rank, inner_shape, row_splits_dtype)
        held = quantized_dtype(pylist) if dtype is None else as_dtype(dtype)
        values = constant_of(flat, "values", held)
        if not splits:
            return values
        return RaggedTensor.unflatten([values, *[constant_of(each) for each in splits]])


def constant_value(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """Make the value of a ragged tensor of nested lists, for feeds.

    Args:
        pylist: As for ``constant``.
        dtype: The dtype of the elements; that of NumPy's array of them if None, which is float64
            or int64 for Python's numbers, and object for strings.
        ragged_rank: As for ``constant``.
        inner_shape: As for ``constant``.
        row_splits_dtype: int32 or int64.

    Returns:
        A ``RaggedTensorValue``; an array if ``ragged_rank`` is 0.

    Raises:
        ArgumentTypeError: if ``pylist`` holds tensors.
        AttributeValueError: if ``ragged_rank`` is out of range, or does not fit ``inner_shape``.
        ShapeError: if scalars stand at several depths, or values are no arrays of the inner shape.
    """
    array_of = _plain_array if dtype is None else partial(to_array, dtype=as_dtype(dtype))
    flat, splits = _parts(pylist, array_of, ragged_rank, inner_shape, row_splits_dtype)
    return nested_value([flat, *splits]) if splits else flat


def placeholder(
    dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """Make a ragged tensor that has to be fed in every step that needs it.

    Args:
        dtype: The dtype of what will be fed.
        ragged_rank: How many axes are ragged, or hold ragged ones.
        value_shape: The shape of one flat value; None for an unknown one.
        name: The name of the operations.

    Returns:
        A ragged tensor, fed with a ``RaggedTensorValue``; a placeholder if ``ragged_rank`` is 0.

    Raises:
        AttributeValueError: if ``ragged_rank`` is negative, or more than tensors have axes.
    """
    ragged_rank = whole(ragged_rank, "ragged_rank", 0, MAX_RANK)
    inner = Shape(value_shape)
    if ragged_rank == 0:
        return dense_placeholder(dtype, inner, name)
    with name_scope(name, "RaggedPlaceholder"):
        known = Shape([None]).concatenate(inner) if inner.rank is not None else inner
        flat = dense_placeholder(dtype, known, "flat_values")
        splits = [
            dense_placeholder(dtypes.int64, [None], f"row_splits_{i}") for i in range(ragged_rank)
        ]
        return RaggedTensor.unflatten([flat, *splits])


def _plain_array(values: Any) -> Any:
    """Return NumPy's array of values, in the dtype that NumPy gives them, strings as objects."""
    try:
        array = np.array(values)
        # NumPy's strings would lose zeros at the end.
        return np.array(values, object) if array.dtype.kind in "SU" else array
    except ValueError:
        raise ShapeError(
            f"{shown(values)} is ragged: what is inside of ragged axes needs rows of one length"
        ) from None


def _parts(
    pylist: Any,
    array_of: Callable[[Any], Any],
    ragged_rank: int | None,
    inner_shape: Any,
    row_splits_dtype: Any,
) -> tuple[Any, list[Any]]:
    """Return the flat values of nested lists and the splits of each ragged axis, as arrays."""
    splits_dtype = as_splits_dtype(row_splits_dtype).numpy
    if isinstance(pylist, RaggedTensor) or contains_tensor(pylist):
        raise ArgumentTypeError(
            "ragged constants are made of plain data, got tensors; hr.ragged.stack joins tensors"
        )
    if isinstance(pylist, RaggedTensorValue):
        pylist = pylist.to_list()
    inner = None if inner_shape is None else tuple(_sizes(inner_shape))
    deep, most = _depths(pylist)
    if deep is not None and most > deep:
        raise ShapeError(
            f"{shown(pylist)} has scalars at several depths; a ragged tensor has all at one"
        )
    if deep == 0:
        if ragged_rank:
            raise AttributeValueError(
                f"a scalar has no ragged axes, got ragged_rank {told(ragged_rank)}"
            )
        if inner:
            raise ShapeError(f"a scalar does not have inner_shape {shown(list(inner))}")
        return array_of(pylist), []
    rank = max(most, 1) if deep is None else deep
    if ragged_rank is None:
        ragged = max(0, rank - 1 - len(inner)) if inner is not None else max(0, rank - 1)
        if inner is not None and deep is not None and ragged and ragged != rank - 1 - len(inner):
            raise ShapeError(f"{shown(pylist)} is not as deep as inner_shape {list(inner)} needs")
    else:
        ragged = ragged_rank
        if ragged < 0 or (deep is not None and ragged >= rank):
            raise AttributeValueError(
                f"ragged_rank must be an integer from 0 to {max(rank - 1, 0)} for lists {rank} "
                f"deep, got {shown(ragged_rank)}"
            )
        if inner is not None and deep is not None and ragged and ragged + len(inner) + 1 != rank:
            raise AttributeValueError(
                f"ragged_rank {ragged} and inner_shape {list(inner)} do not make {rank} axes, "
                "which the lists have"
            )
    values: list[Any] = list(pylist)
    splits: list[Any] = []
    for _ in range(ragged):
        ends = np.cumsum([0, *[len(v) for v in values]]).astype(splits_dtype)
        splits.append(ends)
        values = [item for v in values for item in v]
    if ragged == 0:
        return _whole(array_of(pylist), inner), []
    return _flat(values, array_of, inner, max(0, rank - 1 - ragged), deep is None), splits


def _sizes(inner_shape: Any) -> list[int]:
    listed = inner_shape if isinstance(inner_shape, list | tuple) else Shape(inner_shape).known
    return [whole(size, "a size of inner_shape") for size in listed]


def _whole(array: Any, inner: tuple[int, ...] | None) -> Any:
    """Return what has no ragged axis, in the shape that is asked for."""
    if inner is None or array.shape == inner:
        return array
    if array.size != math.prod(inner):
        raise ShapeError(
            f"values of shape {list(array.shape)} where inner_shape is {list(inner)}; without "
            "ragged axes it is that of all values"
        )
    return array.reshape(inner)


def _flat(
    values: list[Any],
    array_of: Callable[[Any], Any],
    inner: tuple[int, ...] | None,
    deep: int,
    empty: bool,
) -> Any:
    if not values or (empty and inner is not None):
        shape = (len(values), *(inner if inner is not None else (0,) * deep))
        if math.prod(shape):
            raise ShapeError(f"no values where inner_shape is {shown(inner)}")
        return np.zeros(shape, array_of([]).dtype)
    array = array_of(values)
    if empty and array_of is not _plain_array:
        # Lists of nothing have a dtype of their own, also where they are arrays.
        return array.astype(array_of([]).dtype)
    if inner is not None and array.shape[1:] != inner:
        raise ShapeError(
            f"values of shape {list(array.shape[1:])} where inner_shape is {list(inner)}"
        )
    return array


def _depths(value: Any, depth: int = 0) -> tuple[int | None, int]:
    """Return how deep scalars stand, None without any, and how deep lists go at most.

    Where scalars stand at several depths, the second is larger than the first.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return depth, depth
    if isinstance(value, np.ndarray) and not value.size:
        return None, depth + value.shape.index(0) + 1
    if isinstance(value, np.ndarray) and value.dtype != object:
        return depth + value.ndim, depth + value.ndim
    # An array of objects may hold lists.
    if not isinstance(value, list | tuple | np.ndarray):
        return depth, depth
    found: int | None = None
    most = depth + 1
    for item in value:
        at, deepest = _depths(item, depth + 1)
        most = max(most, deepest)
        if at is not None:
            if found is not None and found != at:
                return min(found, at), max(found, at, most)
            found = at
    return found, most
