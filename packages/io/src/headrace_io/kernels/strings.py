"""Strings in kernels: Python's bytes in arrays of objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headrace.errors import ShapeError


def one_string(x: Any, label: str) -> bytes:
    """Return the one element of a scalar.

    Raises:
        ShapeError: if it is no scalar.
    """
    array = np.asarray(x, object)
    if array.ndim:
        raise ShapeError(f"{label} must be a scalar, got shape {list(array.shape)}")
    found = array.item()
    assert isinstance(found, bytes)
    return found


def strings_of(x: Any) -> list[bytes]:
    """Return the elements of an array of strings, in row-major order."""
    found: list[bytes] = np.asarray(x, object).ravel().tolist()
    return found


def string_array(strings: Iterable[bytes], shape: tuple[int, ...] | None = None) -> Any:
    """Return strings as an array, [n] if no shape is given."""
    listed = strings if isinstance(strings, list) else list(strings)
    made = np.empty(len(listed), object)
    made[:] = listed
    return made if shape is None else made.reshape(shape)


def string_scalar(string: bytes) -> Any:
    """Return a string as an array without dimensions."""
    made = np.empty((), object)
    made[()] = string
    return made
