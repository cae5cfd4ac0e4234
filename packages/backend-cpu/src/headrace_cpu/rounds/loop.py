"""Loops run at one go: what is set up before the first round, and the slices of rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, final

import numpy as np

from headrace import Tensor
from headrace.extend.devices import LoopForm
from headrace.extend.kernels import ListValue, StackedItems, Swapped
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import Share
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.program.lifetimes import Places
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values
from headrace_cpu.rounds.body import Body, Made, Pick, Unfit, read
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
from headrace_cpu.rounds.driver import Table, driver

# A slice should take so long: it cannot be interrupted. The first one is short, as nobody knows yet
# how long a round takes.
_SLICE_S, _FIRST_ROUNDS = 0.005, 4
# So many rounds have their addresses written down at once.
_MOST_ROUNDS = 4096


@final
class LoopProgram:
    """A compiled body that runs many rounds at one go.

    Steps that run at the same time each get an instance, with memory of its own.
    """

    def __init__(
        self,
        region: Any,
        items: Sequence[Item],
        values: Values,
        places: Places,
        form: LoopForm,
        arena: Callable[[], Any],
        share: Share,
    ) -> None:
        """Read a body whose kernels are compiled.

        Args:
            region: The body.
            items: What its program does.
            values: Where the program's values live.
            places: Where its buffers are.
            form: How the loop hands values on.
            arena: Returns memory for an instance's buffers.
            share: Takes a share of the threads.

        Raises:
            Unfit: if rounds cannot be run without Python.
        """
        self.body = read(region, items, values, form)
        self.share = share
        self.drive = driver()
        left_out = self.body.left_out
        self._items = [i for i in items if i.instruction is not None and i not in left_out]
        self._places = places
        self._arena = arena
        self._free = [_Instance(self)]
        # How many seconds a round took last, 0.0 while nobody knows.
        self.pace = 0.0

    def start(self, arguments: Sequence[Any], count: int) -> _LoopRun | None:
        """Begin a run; None where these arguments do not fit."""
        try:
            instance = self._free.pop()
        except IndexError:
            instance = _Instance(self)
        try:
            return _LoopRun(self, instance, arguments, count, self._free.append)
        except (Misfit, MemoryError):
            self._free.append(instance)
            return None

    def bind(self) -> tuple[list[Bound], Any]:
        """Return the instructions bound to buffers of their own, and the buffers' memory."""
        memory = self._arena()
        start = 0 if memory is None else address(memory)
        made = []
        for item in self._items:
            assert item.instruction is not None
            at = _Addresses(item.instruction, self.body, self._places, start)
            made.append(item.instruction.bind(at))
            if made[-1].native is None:
                raise Unfit(f"{item.op.type} {item.op.name!r} is called by Python")
        return made, memory


class _Addresses(Addresses):
    """Where an instance has what is at the same place in each round."""

    def __init__(self, instruction: Instruction, body: Body, places: Places, start: int) -> None:
        self._instruction, self._body = instruction, body
        self._places, self._start = places, start

    def of(self, tensor: Tensor) -> int | None:
        values = self._body.values
        root = values.root(tensor)
        home = values.home[root]
        if home is Home.PRESET:
            return address(values.presets[root])
        if home is Home.BUFFER and root not in self._body.made:
            return self._start + self._places.offset(root)
        return None

    def scratch(self) -> int:
        offset = self._places.scratch_offset(self._instruction)
        assert offset is not None, "the instruction asked for no scratch memory"
        return self._start + offset


class _Instance:
    """The tables of one run at a time, and the memory that they know by address."""

    def __init__(self, program: LoopProgram) -> None:
        self._bound, self._memory = program.bind()
        natives = [bound.native for bound in self._bound if bound.native is not None]
        self.table = Table(natives, program.share.threads)


@final
class _LoopRun:
    """One run of a loop."""

    def __init__(
        self,
        program: LoopProgram,
        instance: _Instance,
        arguments: Sequence[Any],
        count: int,
        free: Callable[[_Instance], object],
    ) -> None:
        """Find out where everything will be in each round.

        Raises:
            Misfit: if the arguments do not fit.
            MemoryError: if there is no room for what is kept.
        """
        self._program, self._instance, self._free = program, instance, free
        self._setting = _Setting(program.body, arguments, count)
        root = program.body.values.root
        columns = [self._setting.find(root(t)) for t in instance.table.columns]
        # What is at one place in all rounds, and the numbers of the columns of what is not.
        self._places = np.zeros(len(columns), np.int64)
        self._moving: list[tuple[int, Column]] = []
        for number, column in enumerate(columns):
            if isinstance(column, Fixed):
                self._places[number] = address(column.array)
            else:
                self._moving.append((number, column))
        # What is put into lists may be no kernel's.
        self._others: dict[int, Callable[[], Any]] = {
            **{i: self._setting.changed(i) for i in program.body.changes},
            **{i: self._setting.added(i) for i in program.body.added},
        }
        self._count, self._done = count, 0
        self._failed = False

    def advance(self) -> bool:
        """Run some rounds; return whether more are left."""
        first = self._done
        program = self._program
        many = int(_SLICE_S / program.pace) if program.pace else _FIRST_ROUNDS
        last = min(self._count, first + min(max(many, 1), _MOST_ROUNDS))
        rows = np.empty((last - first, len(self._places)), np.int64)
        rows[:] = self._places
        for number, column in self._moving:
            rows[:, number] = column.addresses(first, last)
        share, table = program.share, self._instance.table
        threads = share.enter()
        began = perf_counter()
        try:
            # A library was prepared for as many threads as a step has that runs alone.
            made = 0
            if threads == share.threads or not table.own:
                made = table.run(program.drive, rows, threads)
        finally:
            share.leave()
        program.pace = (perf_counter() - began) / (last - first)
        self._done, self._failed = last, made < last - first
        more = last < self._count and not self._failed
        if not more:
            self._free(self._instance)
        return more

    def results(self) -> tuple[list[Any], list[ListValue]] | None:
        """Return the carried values and the lists of what was kept; None where a round failed."""
        if self._failed:
            return None
        body, setting = self._program.body, self._setting
        carried = [
            self._others[i]() if i in self._others else setting.last(i)
            for i in range(body.form.carried)
        ]
        kept = body.region.outputs[body.form.carried :]
        return carried, [ListValue(setting.column(t).items(self._count)) for t in kept]


class _Setting:
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
            if abs(found[-1]) <= np.iinfo(root.dtype.numpy).max:
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
