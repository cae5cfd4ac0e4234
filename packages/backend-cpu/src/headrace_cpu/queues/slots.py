"""Places for elements side by side in memory, so that many come and go in one copy.

A queue of small elements that are all alike holds the numbers of their places. Numbers are cheap to
move and to draw; the arrays are copied when rows come in, and again when a batch is made of them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from headrace import DType, Shape

Array = Any

# Larger elements are copied one by one, outside of any lock.
LARGEST = 1 << 14
# What a queue that ran empty keeps for those to come.
_KEPT_BYTES = 1 << 22
_FEWEST = 16


@final
class Slots:
    """Rows of arrays, one array per component; each row holds an element, or is free.

    Safe to use from several threads, where each row is put once, and then taken or freed once. Who
    puts many keeps nobody from taking others meanwhile: rows are copied without the lock that
    guards which ones are free.
    """

    def __init__(self, dtypes: Sequence[DType], shapes: Sequence[Shape]) -> None:
        """Make no rows yet.

        Args:
            dtypes: The dtype of each component.
            shapes: The shape of each component, all dimensions fixed.
        """
        self._forms = [
            (dtype.numpy, tuple(shape.known)) for dtype, shape in zip(dtypes, shapes, strict=True)
        ]
        # Which rows are free; and, taken before that, who writes rows, so that nobody moves them.
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._drop()

    @classmethod
    def fitting(cls, dtypes: Sequence[DType], shapes: Sequence[Shape]) -> Slots | None:
        """Return places for elements of a form; None where they are large, or differ in shape."""
        if not dtypes or not all(shape.is_fully_defined() for shape in shapes):
            return None
        pairs = zip(dtypes, shapes, strict=True)
        size = sum((shape.num_elements() or 0) * np.dtype(d.numpy).itemsize for d, shape in pairs)
        return cls(dtypes, shapes) if size <= LARGEST else None

    @property
    def used(self) -> int:
        """How many rows hold elements."""
        return self._total - len(self._free)

    @property
    def held_bytes(self) -> int:
        """How much memory the rows take, strings but for their references."""
        return self._bytes

    def put(self, components: Sequence[Array]) -> list[int]:
        """Copy elements in, one per row of the components, and return the numbers of their places.

        Args:
            components: [n, ...], of the dtype and shape of each component.
        """
        count = len(components[0])
        if not count:
            return []
        with self._writing:
            with self._lock:
                if len(self._free) < count:
                    self._grow(count)
                places = self._free[-count:]
                del self._free[-count:]
            index = np.array(places, np.intp)
            for column, rows in zip(self._columns, components, strict=True):
                column[index] = rows
        return places

    def put_one(self, components: Sequence[Array]) -> list[int]:
        """Copy one element in, and return the number of its place."""
        with self._writing:
            with self._lock:
                if not self._free:
                    self._grow(1)
                place = self._free.pop()
            for column, value in zip(self._columns, components, strict=True):
                column[place] = value
        return [place]

    def read(self, places: Sequence[int]) -> tuple[Array, ...]:
        """Return elements, joined: each component [n, ...]; they stay."""
        return self._gathered(np.array(places, np.intp))

    def take(self, places: list[int]) -> tuple[Array, ...]:
        """Return elements, joined: each component [n, ...], and free their places."""
        index = np.array(places, np.intp)
        found = self._gathered(index)
        with self._lock:
            self._leave(places, index)
        return found

    def free(self, places: list[int]) -> None:
        """Free places whose elements nobody wants."""
        if places:
            with self._lock:
                self._leave(places, np.array(places, np.intp))

    def _gathered(self, index: Array) -> tuple[Array, ...]:
        # Of rows that were moved since, as there are more now, the old ones still hold the same.
        return tuple([column.take(index, axis=0) for column in self._columns])

    def _leave(self, places: list[int], index: Array) -> None:
        self._free += places
        if len(self._free) == self._total and self._bytes > _KEPT_BYTES:
            self._drop()
            return
        for column in self._columns:
            if column.dtype == object:
                # The strings belong to whoever took them.
                column[index] = None

    def _drop(self) -> None:
        self._total = self._bytes = 0
        # Last in, first out: what was used last is in the caches.
        self._free: list[int] = []
        self._columns = [np.empty((0, *shape), dtype) for dtype, shape in self._forms]

    def _grow(self, count: int) -> None:
        before = self._total
        self._total = max(2 * before, before - len(self._free) + count, _FEWEST)
        columns = []
        for old, (dtype, shape) in zip(self._columns, self._forms, strict=True):
            new = np.empty((self._total, *shape), dtype)
            new[:before] = old
            columns.append(new)
        self._columns = columns
        self._bytes = sum(column.nbytes for column in columns)
        self._free[:0] = range(self._total - 1, before - 1, -1)
