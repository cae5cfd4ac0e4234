"""Strings of one length, held as rows of bytes: what many records of a file become without objects.

Kernels hand strings on as arrays of Python's bytes. Where all that read an output know this form,
too, a pass asks the kernel for it: neither making a string nor joining many takes time then, and
what copies them needs no interpreter.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

Array = Any


@final
class StringRows:
    """A vector of strings of one length, to be read only.

    Attributes:
        rows: [n, length], uint8, the bytes of each string; those of a row side by side.
    """

    __slots__ = ("rows",)

    ndim: ClassVar[int] = 1
    dtype: ClassVar[np.dtype[Any]] = np.dtype(object)

    def __init__(self, rows: Array) -> None:
        """Take rows as they are, which others may share.

        Args:
            rows: [n, length], uint8.
        """
        self.rows = rows

    @property
    def shape(self) -> tuple[int]:
        """[n], how many strings there are."""
        return (len(self.rows),)

    @property
    def size(self) -> int:
        """How many strings there are."""
        return len(self.rows)

    def tolist(self) -> list[bytes]:
        """Return the strings."""
        count, length = self.rows.shape
        if not length:
            return [b""] * count
        # Items of no kind become bytes, all at once.
        found: list[bytes] = self.rows.view(f"V{length}")[:, 0].tolist()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the strings as other kernels take them: [n], Python's bytes."""
        made = np.empty(len(self.rows), object)
        made[:] = self.tolist()
        return made if dtype is None or np.dtype(dtype) is self.dtype else made.astype(dtype)


def rows_of(strings: Any) -> Array | None:
    """Return the bytes of strings, [n, length] in uint8, None where they are held otherwise."""
    return strings.rows if type(strings) is StringRows else None
