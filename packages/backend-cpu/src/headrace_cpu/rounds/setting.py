"""The setting of one run of a loop: where everything is in each round, and what comes of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import is_not
from typing import Any

import numpy as np

from headrace import Tensor
from headrace.extend.kernels import ListValue, StackedItems, Swapped
from headrace_cpu.rounds.body import Body, Made, Pick
from headrace_cpu.rounds.columns import (
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


class Setting:
    """The columns of one run, found as they are asked for."""

    def __init__(self, body: Body, arguments: Sequence[Any], count: int) -> None:
        self.body, self.arguments, self.count = body, arguments, count
        self._steps: Mapping[int, int] = dict(body.form.counters)
        self._found: dict[Tensor, Column] = {}

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
        start = solid(self.arguments[number], root.spec.shape.known, root.dtype.numpy)
        if number in self._steps:
            return Counting(start, self._steps[number])
        if number >= body.form.carried or body.values.root(body.results[number]) is root:
            return Fixed(start)
        before = self.column(body.results[number])
        made = body.made.get(body.values.root(body.results[number]))
        if made is not None and made.leads is root and isinstance(before, Stack):
            before.array[0] = start
            return Stack(before.array)
        return Shifted(start, before)

    def _made(self, root: Tensor, made: Made) -> Column:
        shape, dtype = root.spec.shape.known, root.dtype.numpy
        if not made.kept:
            return Several([np.empty(shape, dtype), np.empty(shape, dtype)])
        before = made.leads is not None
        array = room(self.count + before, shape, dtype, len(self._found))
        if array is None:
            return Several([np.empty(shape, dtype) for _ in range(self.count)])
        return Stack(array, int(before))

    # -- what is picked

    def _picked(self, root: Tensor, pick: Pick) -> Column:
        number = self.body.argument.get(pick.source)
        source = self.body.values.presets[pick.source] if number is None else self.arguments[number]
        shape, dtype = root.spec.shape.known, root.dtype.numpy
        if not isinstance(source, ListValue):
            array = solid(source, (len(source), *shape), dtype)
            return _chosen(array, self._indices(pick, len(array), wraps=True))
        places = self._indices(pick, len(source))
        stacked = source.stacked
        if stacked is not None and stacked.flags.c_contiguous:
            return _chosen(solid(stacked, (len(stacked), *shape), dtype), places)
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
            start = int(self.arguments[number])
            found = range(start, start + step * self.count, step)
            if abs(found[-1]) <= _most(root.dtype.numpy):
                return found
        return self.find(root).integers(self.count)

    # -- what comes of it

    def last(self, number: int) -> Any:
        """Return the value of a carried argument after the last round."""
        result, given = self.body.results[number], self.arguments[number]
        root = self.body.values.root(result)
        if self.body.argument.get(root) == number:
            return given
        found = self.column(result)
        value = found.item(self.count - 1)
        # One round's value should not keep the memory of all of them.
        return np.array(value) if isinstance(found, Stack | Shifted) else value

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


def _chosen(array: Any, places: Sequence[int]) -> Column:
    """Return the column of parts of an array."""
    if isinstance(places, range):
        return Stack(array, places.start, places.step)
    return Several([array[place, ...] for place in places])
