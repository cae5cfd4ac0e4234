"""What many kernels need: accumulating narrow floats in wide ones, and checks of indices.

Kernels are functions of an array module ``xp``, which is NumPy or one like it, and call only what
NumPy and CuPy both have. They run where floating-point exceptions are ignored, and never change
their inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace import dtypes

# An array of the module `xp`, or one of NumPy's scalars.
Array: TypeAlias = Any

_HALF = frozenset({dtypes.float16.numpy, dtypes.bfloat16.numpy})


def is_half(x: Array) -> bool:
    """Whether the elements are 16-bit floats, too narrow to accumulate in."""
    return x.dtype in _HALF


def widened(x: Array) -> Array:
    """Return 16-bit floats as float32, all else as it is."""
    return x.astype(np.float32) if x.dtype in _HALF else x


def narrowed(x: Array, dtype: Any) -> Array:
    """Return a result computed in a wider dtype in ``dtype``."""
    return x if x.dtype == dtype else x.astype(dtype)


def integers(vector: Array) -> tuple[int, ...]:
    """Return the elements of an integer vector as numbers of the host."""
    if vector.ndim != 1:
        raise ValueError(f"expected a vector of integers, got shape {list(vector.shape)}")
    return tuple(vector.tolist())


def dimensions(vector: Array) -> tuple[int, ...]:
    """Return a vector of dimensions as numbers of the host.

    Raises:
        ValueError: if it is no vector, or one is negative.
    """
    dims = integers(vector)
    if any(d < 0 for d in dims):
        raise ValueError(f"dimensions must be >= 0, got {list(dims)}")
    return dims


def scalar(x: Array, label: str) -> Any:
    """Return the one element of a scalar as a number of the host.

    Raises:
        ValueError: if ``x`` has dimensions.
    """
    if x.ndim:
        raise ValueError(f"{label} must be a scalar, got shape {list(x.shape)}")
    return x.item()


def check_rank(x: Array, rank: int, label: str) -> None:
    """Refuse an array with another number of dimensions.

    Raises:
        ValueError: if it has another one.
    """
    if x.ndim != rank:
        raise ValueError(f"{label} must have {rank} dimensions, got shape {list(x.shape)}")


def check_shape(x: Array, shape: Sequence[int], label: str) -> None:
    """Refuse an array of another shape.

    Raises:
        ValueError: if it has another one.
    """
    if tuple(x.shape) != tuple(shape):
        raise ValueError(f"{label} must have shape {list(shape)}, got {list(x.shape)}")


def check_indices(indices: Array, size: int, what: str) -> None:
    """Refuse indices outside ``[0, size)``; they never wrap around.

    Raises:
        IndexError: if there is one; names it.
    """
    if not indices.size:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= size:
        raise IndexError(f"index {low if low < 0 else high} is out of range [0, {size}) of {what}")


def axis_index(axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises:
        ValueError: if the array has no such axis.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    return axis + rank if axis < 0 else axis


def add_rows(xp: Any, total: Array, rows: Array, updates: Array) -> None:
    """Add ``updates`` to the rows of ``total``, in place; rows named twice add up.

    Args:
        xp: The array module.
        total: [n, width], contiguous, owned by the caller.
        rows: [m], integers in [0, n).
        updates: [m, width], the dtype of ``total``.
    """
    width = total.shape[1]
    if not updates.size:
        return
    if width == 1:
        _add_at(xp, total.reshape(-1), rows, updates.reshape(-1))
        return
    # One flat index per element: `add.at` is quick on vectors only.
    elements = rows.astype(np.int64)[:, None] * width + xp.arange(width)
    _add_at(xp, total.reshape(-1), elements.reshape(-1), updates.reshape(-1))


# What GPUs add atomically, and so what CuPy's `add.at` takes.
_ATOMIC = frozenset(map(np.dtype, ("int32", "uint32", "uint64", "float32", "float64")))


def _add_at(xp: Any, total: Array, elements: Array, updates: Array) -> None:
    """Add to elements of a vector in place, those named twice as often as they are named."""
    dtype = total.dtype
    if xp is np or dtype in _ATOMIC:
        xp.add.at(total, elements, updates)
    elif dtype.kind == "c":
        xp.add.at(total.real, elements, updates.real)
        xp.add.at(total.imag, elements, updates.imag)
    elif dtype.itemsize == 8:
        # In two's complement the sum of signed words is that of unsigned ones.
        xp.add.at(total.view(np.uint64), elements, updates.view(np.uint64))
    else:
        wide = total.astype(np.int32)
        xp.add.at(wide, elements, updates.astype(np.int32))
        total[...] = wide.astype(dtype)
