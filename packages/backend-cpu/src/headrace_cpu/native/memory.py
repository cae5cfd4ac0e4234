"""Memory: addresses of arrays, aligned blocks, and arrays over memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

ALIGNMENT = 64
_HUGE_PAGE = 2**21
_HUGE_FROM = 8 * _HUGE_PAGE

Array = np.ndarray[Any, np.dtype[Any]]


# NumPy's C interface puts the address of the elements right behind Python's object header, in every
# release; reading it there takes a tenth of the time of the documented ways, which make a tuple, a
# dict or two objects. It is checked below, once, and not done where it is not so.
_HEADER = object.__basicsize__
_word = ctypes.c_void_p.from_address


def _documented_address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _read_address(array: Array) -> int:
    return _word(id(array) + _HEADER).value or 0


def _quickest() -> Callable[[Array], int]:
    samples: list[Array] = [
        np.zeros(3),
        np.zeros((4, 5), np.int8)[1:, 2:],
        np.zeros((0, 3), np.float32),
    ]
    samples[0].flags.writeable = False
    agree = all(_read_address(a) == _documented_address(a) for a in samples)
    return _read_address if agree else _documented_address


# Returns the address of an array's first element; the argument must be an ndarray.
address: Callable[[Array], int] = _quickest()


def allocate(size: int) -> Array:
    """Return memory for buffers, as an array of uint8.

    NumPy asks Linux for huge pages from 4 MiB on, with which rows of large matrices are found
    faster; a block of that size starts at such a page, so that it is made of them wholly.

    Args:
        size: Number of bytes.

    Returns:
        [size], uint8, not initialised, at a multiple of 64 bytes.
    """
    alignment = ALIGNMENT if size < _HUGE_FROM else _HUGE_PAGE
    block = np.empty(size + alignment, np.uint8)
    start = -address(block) % alignment
    return block[start : start + size]


def view(place: int, shape: tuple[int, ...], dtype: DTypeLike, owner: object) -> Array:
    """Return an array over memory.

    Args:
        place: The address of the first element.
        shape: The array's shape; C-contiguous.
        dtype: The array's dtype.
        owner: What keeps the memory; the array keeps it in turn.
    """
    kind = np.dtype(dtype)
    memory: Any = (ctypes.c_uint8 * (kind.itemsize * prod(shape))).from_address(place)
    memory.owner = owner
    return np.ndarray(shape, kind, memory)
