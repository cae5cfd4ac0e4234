"""What many kernels need: accumulating narrow floats in wide ones, and checks of indices.

Kernels are functions of an array module ``xp``, which is NumPy or one like it, and call only what
NumPy and CuPy both have. They run where floating-point exceptions are ignored, and never change
their inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace import bfloat16, float16
from headrace_cpu import rows as native_rows

# An array of the module `xp`, or one of NumPy's scalars.
Array: TypeAlias = Any

# So many elements of any dtype have more bytes than NumPy counts.
_MOST_ELEMENTS = 1 << 59

_HALF = frozenset({float16.numpy, bfloat16.numpy})


def unary(function: str, module: str) -> Callable[[Any, Array], Array]:
    """Return a kernel that is a function of the array module, as one of a kernel module's own."""

    def kernel(xp: Any, x: Array) -> Array:
        return getattr(xp, function)(x)

    kernel.__module__ = module
    return kernel


def binary(function: str, module: str) -> Callable[[Any, Array, Array], Array]:
    """Return a kernel that is a function of two arrays; see ``unary``."""

    def kernel(xp: Any, x: Array, y: Array) -> Array:
        return getattr(xp, function)(x, y)

    kernel.__module__ = module
    return kernel


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
    """Return a vector of an array's dimensions as numbers of the host.

    Raises:
        ValueError: if it is no vector, one is negative, or no memory holds so many elements.
    """
    dims = extents(vector)
    check_size(dims)
    return dims


def extents(vector: Array) -> tuple[int, ...]:
    """Return a vector of dimensions of what need not be an array, such as a sparse tensor.

    Raises:
        ValueError: if it is no vector, or one is negative.
    """
    dims = integers(vector)
    if any(d < 0 for d in dims):
        raise ValueError(f"dimensions must be >= 0, got {list(dims)}")
    return dims


def check_size(dims: Sequence[int]) -> None:
    """Refuse a shape that array modules cannot count the bytes of, even where it is empty.

    Raises:
        ValueError: if it is such a shape.
    """
    if math.prod(d for d in dims if d) >= _MOST_ELEMENTS:
        raise ValueError(f"an array of shape {list(dims)} is too large")


def check_broadcast(*shapes: Sequence[int]) -> None:
    """Refuse shapes that do not broadcast to one.

    Raises:
        ValueError: if they do not.
    """
    sizes: dict[int, int] = {}
    for shape in shapes:
        for place, size in enumerate(reversed(shape)):
            if size != 1 and sizes.setdefault(place, size) != size:
                listed = ", ".join(str(list(shape)) for shape in shapes)
                raise ValueError(f"shapes {listed} do not broadcast")


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
    if not updates.size or (xp is np and native_rows.add(total, rows, updates)):
        return
    if width == 1:
        _add_at(xp, total.reshape(-1), rows, updates.reshape(-1))
        return
    if xp is np:
        ordered = np.sort(rows)
        if (ordered[1:] != ordered[:-1]).all():
            # Five times as quick as `add.at`, and rows are mostly named once.
            total[rows] += updates
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
