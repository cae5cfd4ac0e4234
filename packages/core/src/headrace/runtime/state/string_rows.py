"""Strings of one length, held as rows of bytes: what many records of a file become without objects.

Kernels hand strings on as arrays of Python's bytes. Where all that read an output know this form,
too, a pass asks the kernel for it: neither making a string nor joining many takes time then, and
what copies them needs no interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import numpy as np

Array = Any


@final
class StringRows:
    """A vector of strings of one length, to be read only.

    Attributes:
        rows: [n, length], uint8, the bytes of each string; those of a row side by side.
    """

    __slots__ = ("_known", "_start", "_whole", "rows")

    ndim: ClassVar[int] = 1
    dtype: ClassVar[np.dtype[Any]] = np.dtype(object)

    def __init__(self, rows: Array) -> None:
        """Take rows as they are, which others may share.

        Args:
            rows: [n, length], uint8.
        """
        self.rows = rows
        # What these are a part of, and where they begin there.
        self._whole: StringRows | None = None
        self._start = 0
        # Of what others are a part: what was made of all, by the identities of who made it.
        self._known: dict[tuple[int, ...], tuple[Sequence[Any], Sequence[Any] | None]] = {}

    def __len__(self) -> int:
        """How many strings there are."""
        return len(self.rows)

    def part(self, start: int, stop: int) -> StringRows:
        """Return the strings from one on, up to the one before another, which know of the rest."""
        made = StringRows(self.rows[start:stop])
        made._whole, made._start = self._whole or self, self._start + start
        return made

    def made_together(
        self, whose: Sequence[Any], make: Callable[[StringRows], Sequence[Any] | None]
    ) -> list[Any] | None:
        """Return what a function makes of these, calling it once for all that they are a part of.

        What a call costs is shared so by those who get a part each, as of what was read of a file.

        Args:
            whose: What tells the function from others: objects that nobody changes. The same
                objects stand for the same function.
            make: Makes values of strings, with a row for each, which depends on that string alone:
                arrays, or ``StringRows``. It may return None, as may be told by an exception.

        Returns:
            The rows of these: arrays of their own, and parts of ``StringRows``; None where these
            are no part of more, or the function made nothing of all.
        """
        whole = self._whole
        if whole is None or len(whole) == len(self):
            return None
        made = whole.made_once(whose, make)
        if made is None:
            return None
        start, stop = self._start, self._start + len(self)
        return [
            value.part(start, stop) if type(value) is StringRows else value[start:stop].copy()
            for value in made
        ]

    def made_once(
        self, whose: Sequence[Any], make: Callable[[StringRows], Sequence[Any] | None]
    ) -> Sequence[Any] | None:
        """Return what a function made of these when it was first asked for; see above."""
        key = tuple(map(id, whose))
        known = self._known.get(key)
        if known is None:
            try:
                made = make(self)
            except Exception:
                # Of some of these it may make something, or tells what is wrong.
                made = None
            # With those whose identities these are, which nobody else gets as long.
            known = self._known[key] = tuple(whose), made
        return known[1]

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
