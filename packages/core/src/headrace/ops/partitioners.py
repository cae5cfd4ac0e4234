"""Partitioners: functions that say into how many parts to divide a variable.

A partitioner takes ``shape`` and ``dtype`` of a whole variable as keywords, and returns a number of
parts for each axis, of which only one may be above 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from headrace.arguments import real
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, ShapeError, told
from headrace.graph.tensor_shape import TensorShape

Partitioner: TypeAlias = Callable[..., list[int]]


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Return a partitioner that makes a fixed number of parts.

    Args:
        num_shards: The number of parts; fewer where the axis is shorter.
        axis: The axis to divide.
    """

    def partition(shape: TensorShape, **unused: Any) -> list[int]:
        length = _length(shape, axis)
        return _along(shape, axis, min(num_shards, length))

    return partition


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """Return a partitioner that keeps parts below a size.

    Where one index of the axis takes more than that, each gets a part of its own.

    Args:
        max_shard_bytes: The most bytes of a part.
        axis: The axis to divide.
        bytes_per_string_element: What a string is taken to need.
        max_shards: The most parts, whatever their size; any number if None or 0.

    Raises:
        AttributeValueError: if a size is not positive, or ``max_shards`` is negative.
    """
    bytes_of = (
        real(max_shard_bytes, "max_shard_bytes"),
        real(bytes_per_string_element, "bytes_per_string_element"),
    )
    if min(bytes_of) < 1:
        raise AttributeValueError(
            "max_shard_bytes and bytes_per_string_element must be positive, got "
            f"{told(max_shard_bytes)} and {told(bytes_per_string_element)}"
        )
    if max_shards is not None and real(max_shards, "max_shards") < 0:
        raise AttributeValueError(f"max_shards must not be negative, got {told(max_shards)}")

    def partition(shape: TensorShape, dtype: DType) -> list[int]:
        length = _length(shape, axis)
        element = _element_bytes(dtype, bytes_per_string_element)
        index_bytes = (shape.num_elements() or 0) / max(length, 1) * element
        together = max(1, math.floor(max_shard_bytes / index_bytes)) if index_bytes else length
        shards = math.ceil(length / max(together, 1))
        return _along(shape, axis, shards if not max_shards else min(max_shards, shards))

    return partition


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """Return a partitioner that makes as many parts of at least a size as it may.

    Args:
        max_partitions: The most parts.
        axis: The axis to divide.
        min_slice_size: The least bytes of a part.
        bytes_per_string_element: What a string is taken to need.
    """

    def partition(shape: TensorShape, dtype: DType) -> list[int]:
        length = _length(shape, axis)
        total = (shape.num_elements() or 0) * _element_bytes(dtype, bytes_per_string_element)
        shards = min(length, max_partitions, math.ceil(total / min_slice_size))
        return _along(shape, axis, max(1, shards))

    return partition


def _length(shape: TensorShape, axis: int) -> int:
    dims = shape.known
    if not -len(dims) <= axis < len(dims):
        raise ShapeError(f"cannot divide axis {axis} of shape {list(dims)}: there is no such axis")
    return dims[axis]


def _along(shape: TensorShape, axis: int, parts: int) -> list[int]:
    partitions = [1] * len(shape.known)
    partitions[axis] = max(parts, 1)
    return partitions


def _element_bytes(dtype: DType, of_string: int) -> int:
    return of_string if dtype.kind == "string" else dtype.itemsize
