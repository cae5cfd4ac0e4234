"""Numbers of slots that leave in the order in which they came: first in, first out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

Array = Any

_FEWEST = 64


@final
class Line:
    """Numbers of places, side by side in memory. Its user guards it by a lock."""

    def __init__(self) -> None:
        self._held: Array = np.empty(_FEWEST, np.int64)
        self._start = self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._start

    def listed(self) -> Array:
        """Return all numbers, [n], the one that leaves next first."""
        return self._held[self._start : self._stop].copy()

    def add(self, places: Sequence[int]) -> None:
        """Take numbers in, behind those that are there."""
        if self._stop + len(places) > len(self._held):
            self._move(0, len(places))
        start, self._stop = self._stop, self._stop + len(places)
        self._held[start : self._stop] = places

    def give_back(self, places: Sequence[int]) -> None:
        """Take numbers in, before those that are there."""
        if len(places) > self._start:
            self._move(len(places), 0)
        stop, self._start = self._start, self._start - len(places)
        self._held[self._start : stop] = places

    def choose(self, count: int) -> Array:
        """Remove the numbers that came first, of which there are so many; return them, [count]."""
        start, self._start = self._start, self._start + count
        return self._held[start : self._start].copy()

    def clear(self) -> None:
        """Forget all numbers, and the memory of many."""
        self._held = np.empty(_FEWEST, np.int64)
        self._start = self._stop = 0

    def _move(self, before: int, behind: int) -> None:
        """Have room for so many, and as many again as there are."""
        there = self.listed()
        count = len(there)
        self._held = np.empty(max(_FEWEST, 2 * count + before + behind), np.int64)
        self._start, self._stop = before, before + count
        self._held[before : self._stop] = there
