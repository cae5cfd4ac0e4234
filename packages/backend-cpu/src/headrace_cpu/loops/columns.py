"""Columns: where a tensor of a loop's body is in each iteration.

Nothing is copied to make one: they say where values are, or will be, before the first round.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from headrace.extend.kernels import StackedItems
from headrace_cpu.native.memory import Array, address

# Arrays of one loop begin at different places of a page: where all began at the same, what is read
# and written together would have the same places in the caches.
_PAGE, _STEP = 4096, 9 * 64
# Larger ones get new pages from the system in each step, where many small arrays would not.
LARGE_BYTES = 1 << 24
# What runs hand back of an array that stays with the loop is copied, up to so much.
SMALL_BYTES = 1 << 16


class Misfit(Exception):  # noqa: N818 - nothing is wrong: rounds run one by one then
    """The values of a run do not fit."""


class Column(ABC):
    """The values of one tensor, of so many rounds as are asked for."""

    @abstractmethod
    def addresses(self, first: int, last: int) -> Array | int:
        """Return where it is in rounds ``first`` to below ``last``: int64, or one for all."""

    @abstractmethod
    def item(self, number: int) -> Any:
        """Return its array of one round."""

    def items(self, count: int) -> Sequence[Any]:
        """Return its arrays of the first rounds."""
        return [self.item(i) for i in range(count)]

    def integers(self, count: int) -> Sequence[int]:
        """Return the integers that it holds, as a range where one is as far from the next."""
        return [int(self.item(i).item()) for i in range(count)]


@final
class Fixed(Column):
    """The same array in each round."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def addresses(self, first: int, last: int) -> int:
        """Return where it is."""
        return address(self.array)

    def item(self, number: int) -> Any:
        """Return it."""
        return self.array


@final
class Stack(Column):
    """Parts of one array, one behind the other, or the other way round."""

    def __init__(self, array: Any, first: int = 0, step: int = 1) -> None:
        self.array, self.first, self.step = array, first, step

    def addresses(self, first: int, last: int) -> Array:
        """Return where they are."""
        stride = self.array.strides[0]
        start = address(self.array) + self.first * stride
        found: Array = start + self.step * stride * np.arange(first, last)
        return found

    def item(self, number: int) -> Any:
        """Return one."""
        return self.array[self.first + number * self.step, ...]

    def items(self, count: int) -> StackedItems:
        """Return them, as parts of one array."""
        # A slice that ends before the first element has no end.
        last = self.first + self.step * count
        return StackedItems(self.array[self.first : (last if last >= 0 else None) : self.step])

    def integers(self, count: int) -> Sequence[int]:
        """Return what they hold."""
        found: list[int] = self.items(count).array.reshape(count).tolist()
        step = found[1] - found[0] if count > 1 else 1
        even = range(found[0], found[0] + step * count, step) if step else ()
        return even if found == list(even) else found


@final
class Counting(Column):
    """A counter, written down for those rounds only that are run next."""

    def __init__(self, start: Any, step: int) -> None:
        self.start, self.step = start, step
        self._written = np.empty(0, start.dtype)

    def _values(self, first: int, last: int) -> Array:
        # It comes round where its dtype ends, as NumPy's sums do.
        counts = int(self.start) + self.step * np.arange(first, last)
        found: Array = counts.astype(self.start.dtype)
        return found

    def addresses(self, first: int, last: int) -> Array:
        """Write it down, and return where it is."""
        self._written = self._values(first, last)
        return Stack(self._written).addresses(0, last - first)

    def item(self, number: int) -> Any:
        """Return one."""
        return self._values(number, number + 1)[0, ...]

    def items(self, count: int) -> StackedItems:
        """Return them."""
        return StackedItems(self._values(0, count))


@final
class Several(Column):
    """Arrays by themselves; after the last comes the first again."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = arrays
        self._places = np.array(list(map(address, arrays)), np.int64)

    def addresses(self, first: int, last: int) -> Array:
        """Return where they are."""
        return self._places[np.arange(first, last) % len(self._places)]

    def item(self, number: int) -> Any:
        """Return one."""
        return self.arrays[number % len(self.arrays)]


@final
class Shifted(Column):
    """What another column had in the round before."""

    def __init__(self, start: Any, rest: Column) -> None:
        self.start, self.rest = start, rest

    def addresses(self, first: int, last: int) -> Array:
        """Return where it is."""
        if last <= first:
            # What was made before was given, too.
            return np.empty(0, np.int64)
        found = np.empty(last - first, np.int64)
        found[not first :] = self.rest.addresses(max(first - 1, 0), last - 1)
        if not first:
            found[0] = address(self.start)
        return found

    def item(self, number: int) -> Any:
        """Return one."""
        return self.rest.item(number - 1) if number else self.start


def shaped(column: Column, shape: tuple[int, ...], count: int) -> Column:
    """Return a column with each of its arrays under another shape of as many elements.

    Args:
        column: It.
        shape: The shape.
        count: How many rounds there are.
    """
    if isinstance(column, Fixed):
        return Fixed(column.array.reshape(shape))
    if isinstance(column, Stack):
        array = column.array.reshape(len(column.array), *shape)
        return Stack(array, column.first, column.step)
    if isinstance(column, Counting):
        return Stack(column.items(count).array.reshape(count, *shape))
    if isinstance(column, Several):
        return Several([array.reshape(shape) for array in column.arrays])
    assert isinstance(column, Shifted)
    return Shifted(column.start.reshape(shape), shaped(column.rest, shape, count))


def solid(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array whose elements lie one behind the other; itself where it is one.

    Raises:
        Misfit: if it is no array of this shape and dtype.
    """
    if not isinstance(value, np.ndarray | np.generic):
        raise Misfit
    array = value if type(value) is np.ndarray else np.asarray(value)
    if array.shape != shape or array.dtype != dtype:
        raise Misfit
    return array if array.flags.c_contiguous else np.array(array, order="C")


def room(count: int, shape: tuple[int, ...], dtype: np.dtype[Any], number: int) -> Any:
    """Return an array for the values of many rounds, not initialised; None if it would be large.

    Args:
        count: How many.
        shape: Of each.
        dtype: Theirs.
        number: Of the array, among those of the loop.

    Returns:
        [count, ...].

    Raises:
        MemoryError: if there is no room.
    """
    size = count * math.prod(shape) * dtype.itemsize
    if size > LARGE_BYTES or not size:
        return None
    block = np.empty(size + 2 * _PAGE, np.uint8)
    start = -address(block) % _PAGE + number * _STEP % _PAGE
    return block[start : start + size].view(dtype).reshape(count, *shape)
