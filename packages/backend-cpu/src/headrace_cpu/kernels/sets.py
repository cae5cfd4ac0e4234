"""Kernels of sets, in Python's own sets, on the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_shape, check_size, extents

KERNELS = KernelTable()

# The elements of each set that is not empty, by the number of its place.
_Sets = dict[int, set[Any]]

_COMBINE: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


@KERNELS.plain("DenseToDenseSetOperation")
def dense_to_dense(
    xp: Any, set1: Array, set2: Array, *, set_operation: str, validate_indices: bool
) -> tuple[Array, Array, Array]:
    """Combine rows."""
    first, second = _rows(set1, "set1"), _rows(set2, "set2")
    return _combined(xp, first, second, set1.dtype, set_operation)


@KERNELS.plain("DenseToSparseSetOperation")
def dense_to_sparse(
    xp: Any,
    set1: Array,
    set2_indices: Array,
    set2_values: Array,
    set2_shape: Array,
    *,
    set_operation: str,
    validate_indices: bool,
) -> tuple[Array, Array, Array]:
    """Combine rows with sparse sets."""
    second = _sparse(set2_indices, set2_values, set2_shape, "set2", validate_indices)
    return _combined(xp, _rows(set1, "set1"), second, set1.dtype, set_operation)


@KERNELS.plain("SparseToSparseSetOperation")
def sparse_to_sparse(
    xp: Any,
    set1_indices: Array,
    set1_values: Array,
    set1_shape: Array,
    set2_indices: Array,
    set2_values: Array,
    set2_shape: Array,
    *,
    set_operation: str,
    validate_indices: bool,
) -> tuple[Array, Array, Array]:
    """Combine sparse sets."""
    first = _sparse(set1_indices, set1_values, set1_shape, "set1", validate_indices)
    second = _sparse(set2_indices, set2_values, set2_shape, "set2", validate_indices)
    return _combined(xp, first, second, set1_values.dtype, set_operation)


@KERNELS.plain("SetSize")
def set_size(
    xp: Any, set_indices: Array, set_values: Array, set_shape: Array, *, validate_indices: bool
) -> Array:
    """Count."""
    dims, sets = _sparse(set_indices, set_values, set_shape, "set", validate_indices)
    check_size(dims)
    sizes = np.zeros(math.prod(dims), np.int32)
    for place, elements in sets.items():
        sizes[place] = len(elements)
    return xp.asarray(sizes.reshape(dims))


def _rows(tensor: Array, label: str) -> tuple[tuple[int, ...], _Sets]:
    if tensor.ndim < 2:
        raise InvalidArgumentError(
            f"{label} must have at least 2 dimensions, got shape {list(tensor.shape)}"
        )
    dims = tensor.shape[:-1]
    rows = tensor.reshape((math.prod(dims), tensor.shape[-1])).tolist()
    return dims, {place: set(row) for place, row in enumerate(rows) if row}


def _sparse(
    indices: Array, values: Array, shape: Array, label: str, validate: bool
) -> tuple[tuple[int, ...], _Sets]:
    dims = extents(shape)
    if len(dims) < 2:
        raise InvalidArgumentError(f"{label} must have at least 2 dimensions, got {len(dims)}")
    check_shape(values, (indices.shape[0] if indices.ndim else 0,), f"the values of {label}")
    check_shape(indices, (values.shape[0], len(dims)), f"the indices of {label}")
    places = np.asarray(indices, np.int64)
    if places.size and ((places < 0) | (places >= np.array(dims, np.int64))).any():
        raise InvalidArgumentError(f"indices of {label} lie outside its shape {list(dims)}")
    if validate and len(places) > 1:
        _check_order(places, label)
    sets: _Sets = {}
    check_size(dims)
    numbers = np.zeros(len(places), np.int64)
    for axis, size in enumerate(dims[:-1]):
        numbers = numbers * size + places[:, axis]
    for place, value in zip(numbers.tolist(), values.tolist(), strict=True):
        sets.setdefault(place, set()).add(value)
    return dims[:-1], sets


def _check_order(places: Array, label: str) -> None:
    """Refuse indices that are not in row-major order, each once."""
    steps = np.diff(places, axis=0)
    first = (steps != 0).argmax(1)
    if (np.take_along_axis(steps, first[:, None], 1) <= 0).any():
        raise InvalidArgumentError(f"indices of {label} are out of order or repeated")


def _combined(
    xp: Any,
    first: tuple[tuple[int, ...], _Sets],
    second: tuple[tuple[int, ...], _Sets],
    dtype: Any,
    operation: str,
) -> tuple[Array, Array, Array]:
    (dims, a), (other, b) = first, second
    if dims != other:
        raise InvalidArgumentError(
            "both must have the same dimensions before the last one, got "
            f"{list(dims)} and {list(other)}"
        )
    combine, none = _COMBINE[operation], set[Any]()
    found = {
        place: sorted(combine(a.get(place, none), b.get(place, none))) for place in sorted({*a, *b})
    }
    numbers = [(place, column) for place, row in found.items() for column in range(len(row))]
    pairs = np.array(numbers, np.int64).reshape((-1, 2))
    lead = np.unravel_index(pairs[:, 0], dims) if len(pairs) else [pairs[:, 0]] * len(dims)
    indices = np.stack([*lead, pairs[:, 1]], 1).astype(np.int64)
    values = np.array([value for row in found.values() for value in row], dtype)
    widest = max(map(len, found.values()), default=0)
    shape = np.array([*dims, widest], np.int64)
    return xp.asarray(indices), xp.asarray(values), xp.asarray(shape)
