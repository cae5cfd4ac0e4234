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
        # How many rows there are, and how many of them are free: the first of those listed.
        self._total = self._left = self._bytes = 0
        self._free: Array = np.empty(0, np.int64)
        self._columns: list[Array] = []
        self._strings: list[Array] = []
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
        return self._total - self._left

    @property
    def held_bytes(self) -> int:
        """How much memory the rows take, strings but for their references."""
        return self._bytes

    def put(self, components: Sequence[Array]) -> Array:
        """Copy elements in, one per row of the components, and return the numbers of their places.

        Args:
            components: [n, ...], of the dtype and shape of each component.

        Returns:
            [n], int64.
        """
        count = len(components[0])
        with self._writing:
            with self._lock:
                if self._left < count:
                    self._grow(count)
                self._left -= count
                places = self._free[self._left : self._left + count].copy()
            for column, rows in zip(self._columns, components, strict=True):
                column[places] = rows
        return places

    def put_one(self, components: Sequence[Array]) -> Array:
        """Copy one element in, and return the number of its place, [1]."""
        with self._writing:
            with self._lock:
                if not self._left:
                    self._grow(1)
                self._left -= 1
                places = self._free[self._left : self._left + 1].copy()
            place = places.item()
            for column, value in zip(self._columns, components, strict=True):
                column[place] = value
        return places

    def read(self, places: Array) -> tuple[Array, ...]:
        """Return elements, joined: each component [n, ...]; they stay."""
        # Of rows that were moved since, as there are more now, the old ones still hold the same.
        return tuple([column.take(places, axis=0) for column in self._columns])

    def take(self, places: Array) -> tuple[Array, ...]:
        """Return elements, joined: each component [n, ...], and free their places."""
        found = self.read(places)
        with self._lock:
            self._leave(places)
        return found

    def free(self, places: Array) -> None:
        """Free places whose elements nobody wants."""
        with self._lock:
            self._leave(places)

    def _leave(self, places: Array) -> None:
        start, self._left = self._left, self._left + len(places)
        self._free[start : self._left] = places
        if self._left == self._total and self._bytes > _KEPT_BYTES:
            self._drop()
            return
        for column in self._strings:
            # They belong to whoever took them.
            column[places] = None

    def _drop(self) -> None:
        self._total = self._left = 0
        # Last in, first out: what was used last is in the caches.
        self._free = np.empty(0, np.int64)
        self._hold([np.empty((0, *shape), dtype) for dtype, shape in self._forms])

    def _hold(self, columns: list[Array]) -> None:
        self._columns = columns
        self._strings = [column for column in columns if column.dtype == object]
        self._bytes = sum(column.nbytes for column in columns)

    def _grow(self, count: int) -> None:
        before = self._total
        self._total = max(2 * before, before - self._left + count, _FEWEST)
        columns = []
        for old, (dtype, shape) in zip(self._columns, self._forms, strict=True):
            new = np.empty((self._total, *shape), dtype)
            new[:before] = old
            columns.append(new)
        self._hold(columns)
        free = np.empty(self._total, np.int64)
        more, left = self._total - before, self._left
        free[:more] = np.arange(self._total - 1, before - 1, -1)
        free[more : more + left] = self._free[:left]
        self._free, self._left = free, more + left
