"""Arrays that each run of a loop has of its own, and the columns that show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from headrace_cpu.loops.columns import Column
from headrace_cpu.native.memory import address


@final
class Source:
    """An array that each run has of its own: an argument, or room for what is kept.

    Attributes:
        place: Where it is in this run.
        moved: By how many bytes it lies elsewhere than in the run before.
    """

    __slots__ = ("_find", "_leaves", "moved", "place")

    def __init__(self, find: Callable[[], Any], array: Any) -> None:
        """Begin with what the first run has.

        Args:
            find: Returns the array of another run.
            array: The first one's.
        """
        self._find = find
        self._leaves: list[tuple[Column, str]] = []
        self.place, self.moved = address(array), 0

    def lead(self, column: Column, name: str = "array") -> None:
        """Hand the array to a column, as an attribute."""
        self._leaves.append((column, name))

    def again(self) -> int:
        """Find the array of this run; return by how many bytes it lies elsewhere.

        Raises:
            Misfit: if it does not fit.
        """
        array = self._find()
        for column, name in self._leaves:
            setattr(column, name, array)
        before, self.place = self.place, address(array)
        self.moved = self.place - before
        return self.moved

    def release(self) -> None:
        """Let go of the array."""
        for column, name in self._leaves:
            setattr(column, name, None)
