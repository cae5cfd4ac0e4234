"""Arrays as text, in the two styles in which TensorFlow's ops print tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

_NDArray = np.ndarray[Any, np.dtype[Any]]


def first_elements(array: _NDArray, limit: int) -> str:
    """Return the first elements of an array, as ``Print`` and ``Assert`` show them.

    Bytes that are no UTF-8 stand there as Python's "surrogateescape" has them.

    Args:
        array: The array.
        limit: How many elements to show; all if negative.
    """
    wanted = array.size if limit < 0 else min(limit, array.size)
    if not array.ndim:
        return _element(array.item(), array.dtype) if wanted else "..."
    shown = _First(array, wanted)
    text = shown.text(0, 0)[1:-1]
    return text + ("..." if wanted < array.size else "")


class _First:
    """Writes elements in row-major order until a number of them is written."""

    def __init__(self, array: _NDArray, limit: int) -> None:
        self.shape = array.shape
        self.flat = array.reshape(-1)
        self.limit = limit
        self.dtype = array.dtype
        self.at = 0

    def text(self, axis: int, depth: int) -> str:
        if axis == len(self.shape) - 1:
            count = min(self.shape[axis], self.limit - self.at)
            parts = self.flat[self.at : self.at + count].tolist()
            self.at += count
            rest = "..." if count < self.shape[axis] and axis else ""
            return "[" + " ".join(_element(part, self.dtype) for part in parts) + rest + "]"
        rows = []
        for _ in range(self.shape[axis]):
            if self.at >= self.limit:
                break
            rows.append(self.text(axis + 1, depth + 1))
        return "[" + "".join(rows) + "]"


def both_ends(array: _NDArray, ends: int) -> str:
    """Return the first and last elements along each axis, as ``print`` shows them.

    Args:
        array: The array.
        ends: How many elements to show at each end of an axis; all if negative.
    """
    return _rows(array, array.size if ends < 0 else ends, 0, array.ndim)


def _rows(array: _NDArray, ends: int, depth: int, rank: int) -> str:
    if depth == rank:
        return _element(array.item(), array.dtype, quoted=True)
    count = array.shape[0]
    # Line breaks as deep as what is between them, and an indent that aligns brackets.
    gap = " " if depth == rank - 1 else "\n" * (rank - 1 - depth) + " " * (depth + 1)
    shown = [*range(min(ends, count)), *range(max(ends, count - ends), count)]
    parts = [_rows(array[i, ...], ends, depth + 1, rank) for i in shown]
    if count > 2 * ends:
        parts.insert(ends, "...")
    return "[" + gap.join(parts) + "]"


def _element(value: Any, dtype: Any, quoted: bool = False) -> str:
    if isinstance(value, bytes):
        text = "".join(map(_escaped, value.decode(errors="surrogateescape")))
        return f'"{text}"' if quoted else text
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, complex):
        return (
            f"({_real(value.real, dtype.itemsize // 2)},{_real(value.imag, dtype.itemsize // 2)})"
        )
    if isinstance(value, int):
        return str(value)
    return _real(float(value), dtype.itemsize)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return f"\\{ord(char):03o}" if ord(char) < 32 or ord(char) == 127 else char


def _real(value: float, size: int) -> str:
    """Return a float with as few digits as tell it from others of its size, six at least."""
    digits, more = (15, 17) if size == 8 else (6, 9)
    text = f"{value:.{digits}g}"
    same = float(text) == value if size == 8 else np.float32(text) == np.float32(value)
    return text if same or value != value else f"{value:.{more}g}"
