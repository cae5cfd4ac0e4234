"""Numbers of slots of which any may leave next, drawn at random.

Who leaves by chance is replaced by the last one, so that each of many that leave at once depends on
those before it: that is a loop, and in Python it took longer than copying the elements.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from headrace_cpu.native.later import MadeLater
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import short_kernel

Array = Any

_FEWEST = 64
# Fewer are chosen in Python before a loop is called.
_MANY = 8
_NAME = "choose_places"
_SOURCE = f"""\
def {_NAME}(block):
    held = word(block, 0)
    drawn = word(block, 1)
    chosen = word(block, 2)
    there = word(block, 3)
    for i in range(word(block, 4)):
        left = there - i
        place = to_i64(load_f64(drawn, i, 1) * to_f64(left))
        store_i64(chosen, i, load_i64(held, place, 0), 2)
        store_i64(held, place, load_i64(held, left - 1, 0), 0)
"""
_LOOP = MadeLater(_NAME, lambda: KernelSource(_NAME, _SOURCE), before=3)


@final
class Places:
    """Numbers of places, side by side in memory. Its user guards it by a lock."""

    def __init__(self) -> None:
        self._held = np.empty(_FEWEST, np.int64)
        self._count = 0
        # What the loop is told: three addresses, how many there are, how many leave.
        self._block = (ctypes.c_int64 * 5)()
        self._at = ctypes.addressof(self._block)
        self._loop: Callable[[int], object] | None = None

    def __len__(self) -> int:
        return self._count

    def listed(self) -> Array:
        """Return all numbers, [n], in an order in which ``add`` may get them again."""
        return self._held[: self._count].copy()

    def add(self, places: Sequence[int]) -> None:
        """Take numbers in, behind those that are there."""
        before, after = self._count, self._count + len(places)
        if after > len(self._held):
            grown = np.empty(max(after, 2 * before), np.int64)
            grown[:before] = self._held[:before]
            self._held = grown
        self._held[before:after] = places
        self._count = after

    def choose(self, drawn: Array) -> Array:
        """Remove numbers by chance: the last one takes the place of each that leaves.

        Args:
            drawn: [n], float64 in [0, 1), one for each that leaves; at most as many as there are.

        Returns:
            [n], the numbers that leave.
        """
        count = len(drawn)
        loop = self._native() if count >= _MANY else None
        if loop is None:
            found = self._chosen(drawn)
        else:
            found, block = np.empty(count, np.int64), self._block
            block[0], block[1] = address(self._held), address(drawn)
            block[2], block[3], block[4] = address(found), self._count, count
            loop(self._at)
        self._count -= count
        return found

    def _native(self) -> Callable[[int], object] | None:
        """Return the loop, None where it is not there yet."""
        if self._loop is None:
            place = _LOOP.address()
            if place is not None:
                self._loop = short_kernel(place)
        return self._loop

    def _chosen(self, drawn: Array) -> Array:
        """Do what the loop does: look at no more numbers than leave or move."""
        there, held = self._count, self._held
        last = there - len(drawn)
        places = (drawn * np.arange(there, last, -1)).astype(np.intp)
        # What stands where numbers leave and at the end, as it is after those before.
        now = dict(zip(places.tolist(), held[places].tolist(), strict=True))
        now.update(enumerate(held[last:there].tolist(), last))
        chosen = []
        for place, end in zip(places.tolist(), range(there - 1, last - 1, -1), strict=True):
            chosen.append(now[place])
            now[place] = now[end]
        held[places] = [now[place] for place in places.tolist()]
        return np.array(chosen, np.int64)

    def clear(self) -> None:
        """Forget all numbers, and the memory of many."""
        self._held = np.empty(_FEWEST, np.int64)
        self._count = 0
