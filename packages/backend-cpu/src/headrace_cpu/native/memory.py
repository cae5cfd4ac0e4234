"""Memory: addresses of arrays, aligned blocks, and arrays over memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

ALIGNMENT = 64

Array = np.ndarray[Any, np.dtype[Any]]


def address(array: Array) -> int:
    """Return the address of an array's first element."""
    return int(array.ctypes.data)


def allocate(size: int) -> Array:
    """Return ``size`` bytes of memory that start at a multiple of 64, as an array of uint8."""
    block = np.empty(size + ALIGNMENT, np.uint8)
    start = -address(block) % ALIGNMENT
    return block[start : start + size]


def view(place: int, shape: tuple[int, ...], dtype: DTypeLike, owner: object) -> Array:
    """Return an array over memory that ``owner`` keeps alive.

    Args:
        place: The address of the first element.
        shape: The array's shape; C-contiguous.
        dtype: The array's dtype.
        owner: Whatever keeps the memory; the array keeps it.
    """
    kind = np.dtype(dtype)
    size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_uint8 * size).from_address(place)
    memory._owner = owner  # type: ignore[attr-defined]
    return np.frombuffer(memory, kind).reshape(shape)
