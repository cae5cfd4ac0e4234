"""The layout of a run: where everything is in each iteration of a loop, and what comes of it.

A step mostly runs a loop as the step before did: the same rounds on arrays of the same shapes, some
of which lie elsewhere. So a setting is kept and comes again. What has an address of its own in each
run is a *source*; only the columns behind sources that have moved are written down anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import is_not
from typing import Any

import numpy as np

from headrace import Tensor
from headrace.extend.kernels import ListValue, MissingItems, StackedItems, Swapped
from headrace_cpu.loops.body import Body, Made, Pick
from headrace_cpu.loops.columns import (
    SMALL_BYTES,
    Column,
    Counting,
    Fixed,
    Misfit,
    Several,
    Shifted,
    Stack,
    room,
    shaped,
    solid,
)
from headrace_cpu.loops.run_arrays import Source
from headrace_cpu.program.values import size_of

_ALL = slice(None)


class Setting:
    """The columns of one run, found as they are asked for.

    Attributes:
        body: The body.
        arguments: Its arguments, of the first round.
        count: How many rounds there are.
        comes_again: Whether another run can have it, once this one has its results.
    """

    def __init__(self, body: Body, arguments: Sequence[Any], count: int) -> None:
        self.body, self.arguments, self.count = body, arguments, count
        self.comes_again = True
        self._prepared = count
        self._steps: Mapping[int, int] = dict(body.form.counters)
        self._found: dict[Tensor, Column] = {}
        self._sources: list[Source] = []
        self._behind: dict[Column, list[tuple[Source, slice]]] = {}
        # Counters that were read, and where they began; and integers that other columns held.
        self._starts: dict[int, int] = {}
        self._whole: dict[Tensor, tuple[bytes, Sequence[int]]] = {}
        # First values that are kept before those of the rounds.
        self._leading: list[tuple[Stack, Callable[[], Any]]] = []

    def behind(self, column: Column) -> list[tuple[Source, slice]]:
        """Return the sources on which it depends where a column is, and in which rounds."""
        return self._behind.get(column, [])

    def again(self, arguments: Sequence[Any], count: int) -> list[Source] | None:
        """Take the arguments of another run; return what has moved, None where they do not fit.

        Args:
            arguments: They.
            count: How many rounds there are.

        Raises:
            MemoryError: if there is no room for what is kept.
        """
        if count != self._prepared:
            return None
        for number, start in self._starts.items():
            if arguments[number] != start:
                return None
        self.arguments, self.count = arguments, count
        try:
            moved = [source for source in self._sources if source.again()]
            for stack, find in self._leading:
                stack.array[0] = find()
            alike = all(self._read(root) == held for root, (held, _) in self._whole.items())
        except Misfit:
            alike = False
        if not alike:
            self.release()
            return None
        return moved

    def release(self) -> None:
        """Let go of everything that belongs to one run."""
        self.arguments = ()
        for source in self._sources:
            source.release()

    def drop(self) -> None:
        """Let go of what only another run would ask for, and refers to the setting in a circle.

        The memory of the run would otherwise stay until cycles are collected.
        """
        self._sources.clear()
        self._behind.clear()
        self._leading.clear()

    def _source(
        self,
        find: Callable[[], Any],
        column: Column,
        name: str = "array",
        rounds: slice = _ALL,
    ) -> None:
        """Note that a column has an array of each run's own, as an attribute, for some rounds."""
        source = Source(find, getattr(column, name))
        source.lead(column, name)
        self._sources.append(source)
        self._behind.setdefault(column, []).append((source, rounds))

    def find(self, root: Tensor) -> Column:
        """Return the column of a tensor that has memory of its own."""
        found = self._found.get(root)
        if found is None:
            found = self._found[root] = self._new(root)
        return found

    def column(self, tensor: Tensor) -> Column:
        """Return the column of a tensor, its values under its own shape."""
        root = self.body.values.root(tensor)
        found = self.find(root)
        same = root is tensor or root.spec.shape.known == tensor.spec.shape.known
        return found if same else shaped(found, tensor.spec.shape.known, self.count)

    def _new(self, root: Tensor) -> Column:
        body = self.body
        if root in body.made:
            return self._made(root, body.made[root])
        if root in body.picks:
            return self._picked(root, body.picks[root])
        if root not in body.argument:
            return Fixed(body.values.presets[root])
        number = body.argument[root]
        shape, dtype = root.spec.shape.known, root.dtype.numpy

        def given() -> Any:
            return solid(self.arguments[number], shape, dtype)

        start = given()
        if number in self._steps:
            self._starts[number] = int(start)
            return Counting(start, self._steps[number])
        if number >= body.form.carried or body.values.root(body.results[number]) is root:
            fixed = Fixed(start)
            self._source(given, fixed)
            return fixed
        result = body.values.root(body.results[number])
        before = self.column(body.results[number])
        # What has another shape here is another column, which would stay as it is.
        self.comes_again &= before is self._found.get(result)
        made = body.made.get(result)
        if made is not None and made.leads is root and isinstance(before, Stack):
            before.array[0] = start
            led = Stack(before.array)
            self._leading.append((before, given))
            self._behind[led] = self.behind(before)
            for source, _ in self.behind(before):
                source.lead(led)
            return led
        shifted = Shifted(start, before)
        self._behind[shifted] = [(one, _later(rounds)) for one, rounds in self.behind(before)]
        self._source(given, shifted, "start", slice(0, 1))
        return shifted

    def _made(self, root: Tensor, made: Made) -> Column:
        shape, dtype = root.spec.shape.known, root.dtype.numpy
        if not made.kept:
            self.comes_again &= size_of(root) <= SMALL_BYTES
            return Several([np.empty(shape, dtype), np.empty(shape, dtype)])
        before, number = made.leads is not None, len(self._found)

        def kept() -> Any:
            return room(self._prepared + before, shape, dtype, number)

        array = kept()
        if array is None:
            self.comes_again = False
            return Several([np.empty(shape, dtype) for _ in range(self.count)])
        stack = Stack(array, int(before))
        self._source(kept, stack)
        return stack

    # -- what is picked

    def _picked(self, root: Tensor, pick: Pick) -> Column:
        number = self.body.argument.get(pick.source)
        source = self.body.values.presets[pick.source] if number is None else self.arguments[number]
        shape, dtype = root.spec.shape.known, root.dtype.numpy
        whole = (len(source), *shape)
        if not isinstance(source, ListValue):
            places = self._indices(pick, len(source), wraps=True)
            array = solid(source, whole, dtype)
            if number is None:
                return _chosen(array, places)
            return self._parts(lambda: solid(self.arguments[number], whole, dtype), array, places)
        places = self._indices(pick, len(source))
        stacked = _stacked(source)
        if stacked is not None:
            assert number is not None
            array = solid(stacked, whole, dtype)
            return self._parts(
                lambda: solid(_stacked(self.arguments[number]), whole, dtype), array, places
            )
        self.comes_again = False
        items = source.items
        zeros: Any = None
        found = []
        for place in places:
            item = items[place]
            if item is None and pick.zeros:
                zeros = np.zeros(shape, dtype) if zeros is None else zeros
                item = zeros
            found.append(solid(_here(item), shape, dtype))
        return Several(found)

    def _parts(self, find: Callable[[], Any], array: Any, places: Sequence[int]) -> Column:
        """Return the column of parts of an array that each run has of its own."""
        column = _chosen(array, places)
        if isinstance(column, Stack):
            self._source(find, column)
        else:
            self.comes_again = False
        return column

    def _indices(self, pick: Pick, length: int, *, wraps: bool = False) -> Sequence[int]:
        """Return which item each round takes."""
        if pick.index is None:
            found: Sequence[int] = range(length - 1, length - 1 - self.count, -1)
        else:
            found = self._integers(pick.index)
            if wraps and min(found) < 0:
                found = [i + length if i < 0 else i for i in found]
        _check_within(found, length)
        change = self.body.changes.get(self.body.argument.get(pick.source, -1))
        # What was cleared in an earlier round is not there any more.
        if change is not None and pick.index is not None and not _differ(found):
            raise Misfit
        return found

    def _integers(self, root: Tensor) -> Sequence[int]:
        """Return the integers that a tensor holds, as a range where it counts."""
        number = self.body.argument.get(root)
        step = 0 if number is None else self._steps.get(number, 0)
        if number is not None and step:
            start = self._starts[number] = int(self.arguments[number])
            found = range(start, start + step * self.count, step)
            if abs(found[-1]) <= _most(root.dtype.numpy):
                return found
        known = self._whole.get(root)
        if known is None:
            known = self._whole[root] = self._read(root), self.find(root).integers(self.count)
        return known[1][: self.count]

    def _read(self, root: Tensor) -> bytes:
        """Return the integers that a tensor holds as they are in memory."""
        column = self.find(root)
        if isinstance(column, Fixed):
            return bytes(column.array.tobytes())
        if not isinstance(column, Stack):
            self.comes_again = False
            return b""
        return bytes(column.items(self.count).array.tobytes())

    # -- what comes of it

    def last(self, number: int) -> Any:
        """Return the value of a carried argument after the last round."""
        result, given = self.body.results[number], self.arguments[number]
        root = self.body.values.root(result)
        if self.body.argument.get(root) == number:
            return given
        found = self.column(result)
        value = found.item(self.count - 1)
        # One round's value should not keep the memory of all of them, and not be another run's.
        own = isinstance(found, Stack | Shifted) or (self.comes_again and type(found) is Several)
        return np.array(value) if own else value

    def changed(self, number: int) -> Callable[[], ListValue]:
        """Return what makes the list that a carried list has become."""
        change, given = self.body.changes[number], self.arguments[number]
        if change.kind == "TensorListPop":
            if self.count > len(given):
                raise Misfit
            return lambda: given.without_last(self.count)
        values = None if change.value is None else self.column(change.value)
        if change.index is None:
            assert values is not None
            return lambda: ListValue([*given.items, *values.items(self.count)])
        places, items = self._integers(change.index), given.items
        _check_within(places, len(items))
        if change.once and _written(items, places):
            raise Misfit
        like = change.like
        if like is not None and len(self.arguments[self.body.argument[like]]) != len(items):
            raise Misfit
        return lambda: _set(items, places, values, self.count)

    def added(self, number: int) -> Callable[[], Any]:
        """Return what makes the array that a carried one has become, to parts of which was added.

        It does so as rounds would: zeros are added to the other parts.
        """
        change = self.body.added[number]
        (root,) = [t for t, i in self.body.argument.items() if i == number]
        given = solid(self.arguments[number], root.spec.shape.known, root.dtype.numpy)
        assert change.index is not None
        assert change.value is not None
        places, values = self._integers(change.index), self.column(change.value)
        if min(places) < 0:
            places = [i + len(given) if i < 0 else i for i in places]
        _check_within(places, len(given))

        def add() -> Any:
            with np.errstate(all="ignore"):
                found = given + given.dtype.type(0)
                for place, item in zip(places, values.items(self.count), strict=True):
                    found[place] += item
            return found

        return add


def _later(rounds: slice) -> slice:
    """Return the rounds after each of some."""
    return slice((rounds.start or 0) + 1, None if rounds.stop is None else rounds.stop + 1)


@functools.cache
def _most(dtype: np.dtype[Any]) -> int:
    """Return the largest number of a dtype of whole numbers."""
    return int(np.iinfo(dtype).max)


def _set(
    items: Sequence[Any], places: Sequence[int], values: Column | None, count: int
) -> ListValue:
    """Return a list with some of its items set, or cleared where there are no values."""
    made = [None] * count if values is None else values.items(count)
    if places == range(len(items)) and isinstance(made, StackedItems):
        return ListValue(made)
    found = list(items)
    for place, item in zip(places, made, strict=True):
        found[place] = item
    return ListValue(found)


def _written(items: Sequence[Any], places: Sequence[int]) -> bool:
    """Whether an item was there already, or is set twice."""
    if type(items) is MissingItems:
        return not _differ(places)
    if isinstance(places, range) and places.step == 1:
        return any(map(is_not, items[places.start : places.stop], repeat(None)))
    return any(items[place] is not None for place in places) or not _differ(places)


def _check_within(places: Sequence[int], length: int) -> None:
    """Check that there are items at places.

    Raises:
        Misfit: if there are none.
    """
    ends = (places[0], places[-1]) if isinstance(places, range) else places
    if min(ends) < 0 or max(ends) >= length:
        raise Misfit


def _differ(places: Sequence[int]) -> bool:
    """Whether no place comes twice."""
    return isinstance(places, range) or len(set(places)) == len(places)


def _here(item: Any) -> Any:
    return item.array if type(item) is Swapped else item


def _stacked(value: Any) -> Any:
    """Return the items of a list as one array, None where they are not one behind the other."""
    found = value.stacked if isinstance(value, ListValue) else None
    return found if found is not None and found.flags.c_contiguous else None


def _chosen(array: Any, places: Sequence[int]) -> Column:
    """Return the column of parts of an array."""
    if isinstance(places, range):
        return Stack(array, places.start, places.step)
    return Several([array[place, ...] for place in places])
