"""The arena: one block of memory for all values of a program that live only within a step.

Buffers whose lifetimes do not overlap share memory. The block is laid out once per program; each
instance of it has a block of its own.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping

from headrace.extend.records import dataclass
from headrace_cpu.program.instruction import ALIGNMENT


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When a buffer is needed.

    Attributes:
        size: Bytes.
        first: Index of the item that fills it.
        last: Index of the last item that reads it.
    """

    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where buffers are.

    Attributes:
        offsets: Of each buffer, from the beginning of the block.
        size: Of the block, in bytes.
        needed: The most that is in use at one time, in bytes.
    """

    offsets: Mapping[int, int]
    size: int
    needed: int


def lay_out(lifetimes: Mapping[int, Lifetime], count: int) -> Layout:
    """Return places for buffers, by best fit in the order in which they are filled.

    Args:
        lifetimes: The buffers by number.
        count: How many items the program has.
    """
    starting: list[list[int]] = [[] for _ in range(count)]
    ending: list[list[int]] = [[] for _ in range(count)]
    for buffer, life in lifetimes.items():
        starting[life.first].append(buffer)
        ending[life.last].append(buffer)
    free = _FreeList()
    offsets: dict[int, int] = {}
    used = needed = 0
    for index in range(count):
        # The largest first: small ones fit into what is left.
        for buffer in sorted(starting[index], key=lambda b: -lifetimes[b].size):
            size = _rounded(lifetimes[buffer].size)
            offsets[buffer] = free.take(size)
            used += size
        needed = max(needed, used)
        for buffer in ending[index]:
            size = _rounded(lifetimes[buffer].size)
            free.give(offsets[buffer], size)
            used -= size
    return Layout(offsets, free.end, needed)


def overlaps(layout: Layout, lifetimes: Mapping[int, Lifetime]) -> Iterable[tuple[int, int]]:
    """Yield pairs of buffers that share memory while both are needed; for tests."""
    for a, left in lifetimes.items():
        for b, right in lifetimes.items():
            apart_in_time = left.last < right.first or right.last < left.first
            ends_before = layout.offsets[a] + left.size <= layout.offsets[b]
            begins_after = layout.offsets[b] + right.size <= layout.offsets[a]
            if a < b and not apart_in_time and not ends_before and not begins_after:
                yield a, b


def _rounded(size: int) -> int:
    return max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)


class _FreeList:
    """Free ranges below ``end``, sorted by offset."""

    def __init__(self) -> None:
        self.end = 0
        self._offsets: list[int] = []
        self._sizes: list[int] = []

    def take(self, size: int) -> int:
        fits = [i for i, room in enumerate(self._sizes) if room >= size]
        if fits:
            best = min(fits, key=self._sizes.__getitem__)
            offset = self._offsets[best]
            self._shrink(best, size)
            return offset
        if self._offsets and self._offsets[-1] + self._sizes[-1] == self.end:
            # Extend the last free range.
            offset = self._offsets.pop()
            self._sizes.pop()
        else:
            offset = self.end
        self.end = offset + size
        return offset

    def _shrink(self, index: int, size: int) -> None:
        if self._sizes[index] == size:
            del self._offsets[index], self._sizes[index]
        else:
            self._offsets[index] += size
            self._sizes[index] -= size

    def give(self, offset: int, size: int) -> None:
        index = bisect.bisect(self._offsets, offset)
        self._offsets.insert(index, offset)
        self._sizes.insert(index, size)
        self._join(index)
        self._join(index - 1)

    def _join(self, index: int) -> None:
        """Join a range with the next one where they touch."""
        if index < 0 or index + 1 >= len(self._offsets):
            return
        if self._offsets[index] + self._sizes[index] == self._offsets[index + 1]:
            self._sizes[index] += self._sizes.pop(index + 1)
            del self._offsets[index + 1]
