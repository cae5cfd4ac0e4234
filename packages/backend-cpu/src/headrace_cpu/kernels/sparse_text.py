"""Kernels that write sparse tensors as strings, and read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType, int64
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_rank
from headrace_cpu.kernels.tensor_proto import parse, serialize
from headrace_cpu.kernels.text import filled

KERNELS = KernelTable()


def _parts(indices: Array, values: Array, dense_shape: Array) -> tuple[Array, Array, Array]:
    """Return the parts of a sparse tensor, which must fit each other."""
    check_rank(indices, 2, "indices")
    check_rank(values, 1, "values")
    check_rank(dense_shape, 1, "dense_shape")
    if indices.shape[1] != dense_shape.shape[0] or indices.shape[0] != values.shape[0]:
        raise ValueError(
            f"indices {list(indices.shape)}, values {list(values.shape)} and dense_shape "
            f"{list(dense_shape.shape)} do not make a sparse tensor"
        )
    return indices.astype(np.int64), values, dense_shape.astype(np.int64)


# More would take a terabyte for the strings of empty rows alone.
_MOST_ROWS = 10**9


@KERNELS.plain("SerializeSparse")
def serialize_sparse(xp: Any, indices: Array, values: Array, dense_shape: Array) -> Array:
    """Write the three parts."""
    parts = _parts(indices, values, dense_shape)
    return filled([serialize(part, packed=True) for part in parts], (3,))


@KERNELS.plain("SerializeManySparse")
def serialize_many_sparse(xp: Any, indices: Array, values: Array, dense_shape: Array) -> Array:
    """Write the three parts of each row."""
    places, values, dims = _parts(indices, values, dense_shape)
    if len(dims) < 2:
        raise ValueError(
            f"a sparse tensor whose rows are serialized needs 2 dimensions or more, got {len(dims)}"
        )
    count = int(dims[0])
    if count < 0:
        raise ValueError(f"a sparse tensor cannot have {count} rows")
    if count > _MOST_ROWS:
        raise MemoryError(f"a sparse tensor of {count} rows takes more memory than there is")
    rows = places[:, 0]
    if rows.size and (rows.min() < 0 or rows.max() >= count):
        raise ValueError(f"indices of rows must be from 0 to {count - 1}, got {rows.tolist()}")
    if (rows[1:] < rows[:-1]).any():
        raise ValueError(
            "the indices are not in order of their rows; hr.sparse.reorder brings them in order"
        )
    ends = np.searchsorted(rows, np.arange(count + 1))
    inner = np.ascontiguousarray(places[:, 1:])
    whole = serialize(dims[1:])
    texts = []
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        texts += [serialize(inner[start:end]), serialize(values[start:end], packed=True), whole]
    return filled(texts, (count, 3))


@KERNELS.plain("DeserializeManySparse")
def deserialize_many_sparse(
    xp: Any, serialized: Array, *, dtype: DType
) -> tuple[Array, Array, Array]:
    """Read the sparse tensors, and join them along a new first axis."""
    if serialized.ndim != 2 or serialized.shape[1] != 3:
        raise ValueError(f"serialized_sparse must be [rows, 3], got {list(serialized.shape)}")
    if not serialized.shape[0]:
        raise ValueError("serialized_sparse has no rows, so that nothing tells their rank")
    places: list[Array] = []
    values: list[Array] = []
    shapes: list[Array] = []
    for row, texts in enumerate(serialized.tolist()):
        indices, dims = parse(texts[0], int64), parse(texts[2], int64)
        elements = parse(texts[1], dtype)
        if indices.ndim != 2 or indices.shape != (elements.size, dims.size) or elements.ndim != 1:
            raise ValueError(
                f"row {row} is no sparse tensor: indices {list(indices.shape)}, values "
                f"{list(elements.shape)}, dense_shape {list(dims.shape)}"
            )
        if shapes and len(shapes[0]) != len(dims):
            raise ValueError(
                f"row {row} has {len(dims)} dimensions, those before it have {len(shapes[0])}"
            )
        if (dims < 0).any() or (indices < 0).any() or (indices >= dims).any():
            raise ValueError(f"row {row} has indices outside of its shape {dims.tolist()}")
        places.append(indices)
        values.append(elements)
        shapes.append(dims)
    counts = [len(elements) for elements in values]
    numbers = np.repeat(np.arange(len(counts)), counts)[:, None]
    whole = np.concatenate([[len(counts)], np.max(shapes, axis=0)]).astype(np.int64)
    return np.hstack([numbers, np.concatenate(places)]), np.concatenate(values), whole
