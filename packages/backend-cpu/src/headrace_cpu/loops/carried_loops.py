"""Loops whose iterations need nothing but what the iteration before has made.

Where nothing is kept and nothing is picked by a counter, the rows of addresses come again and
again: the first rounds read what the loop was given, and all others what was made before, in two
places or a few by turns. So there are a few rows, which are there before the loop begins, and a run
says only where its arguments are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from headrace import Tensor
from headrace.extend.kernels import ListValue
from headrace_cpu.loops.body import Body, Pick
from headrace_cpu.loops.columns import Misfit, solid
from headrace_cpu.loops.driver import Turns
from headrace_cpu.native.memory import Array, address, allocate
from headrace_cpu.program.values import Home, is_native, size_of

if TYPE_CHECKING:
    from headrace_cpu.loops.loop_program import Instance, LoopProgram

# What a run hands back is copied. More than that is handed on as it is, by the other kind of run.
_LARGE_BYTES = 1 << 16
# Where nobody knows how many rounds there are, the other kind prepares for too many or too few. But
# places stay with the program.
_LARGE_ASKED_BYTES = 1 << 22
# So many rounds later a value may be read at most.
_LATEST = 4


class Counted(NamedTuple):
    """What is known of a loop that counts before anything runs.

    Attributes:
        rounds: How many rounds it makes.
        integers: What arguments are in the first round, by number, as far as that is known.
    """

    rounds: int
    integers: Mapping[int, int]


class _Part(NamedTuple):
    """A part of an argument: its number, and how many bytes behind the first element it is."""

    argument: int
    offset: int


@final
class Cycle:
    """The rows of one instance of a body, and the places of what it makes.

    Attributes:
        rows: Where tensors are, [rows, columns].
        again: So many rows come again from the last on.
        given: Arguments by number: what each must be, and at which words of the rows it stands.
        parts: Arguments by number: at which words their parts stand, and how many bytes behind.
    """

    def __init__(
        self,
        body: Body,
        columns: Sequence[Tensor],
        latest: int,
        counted: Counted | None = None,
    ) -> None:
        """Lay the rows out; use ``Cycle.of``, which knows whether that can be done.

        Args:
            body: The body.
            columns: The tensors of the rows.
            latest: How many rounds later values are read, at most.
            counted: What is known of counters, where the body has some: then there is a row for
                each round, and none comes again.

        Raises:
            Misfit: if what a counter picks is not known, or not there.
        """
        self._counted = counted
        self._body, self._latest = body, latest
        # A value is there until the round in which it is read last has ended.
        self.again = latest + 1
        root = body.values.root
        count = latest + self.again if counted is None else max(counted.rounds, 1)
        self.rows = np.zeros((count, len(columns)), np.int64)
        self._counters = {
            number: self._counting(number, step, count) for number, step in body.form.counters
        }
        self._made = {tensor: self._places(tensor) for tensor in body.made}
        # The rows as words one behind the other, which are written down quicker so.
        kind = ctypes.c_int64 * self.rows.size
        self._words = kind.from_address(address(self.rows))
        self.parts: dict[int, list[tuple[int, int]]] = {}
        self.given: dict[int, tuple[tuple[int, ...], np.dtype[Any], list[int]]] = {}
        for number, tensor in enumerate(columns):
            self._lay(root(tensor), number)
        self._results = [self._result(i) for i in range(body.form.carried)]

    def _places(self, tensor: Tensor) -> list[Array]:
        shape, dtype = tensor.spec.shape.known, tensor.dtype.numpy
        size = prod(shape) * dtype.itemsize
        blocks = [allocate(max(size, 1)) for _ in range(self.again)]
        return [block[:size].view(dtype).reshape(shape) for block in blocks]

    @classmethod
    def of(cls, body: Body, columns: Sequence[Tensor]) -> Cycle | None:
        """Return the rows of a body, None where it needs what these rows do not have."""
        latest = cls.latest(body)
        if latest is None:
            return None
        root = body.values.root
        results = [t for i, t in enumerate(body.results) if body.carried(root(t)) != i]
        size = sum(map(size_of, results))
        most = _LARGE_BYTES if body.going is None else _LARGE_ASKED_BYTES
        return cls(body, columns, latest) if size <= most else None

    @staticmethod
    def latest(body: Body, *, counted: bool = False) -> int | None:
        """Return how many rounds later values are read at most; None where rows do not come again.

        Args:
            body: The body.
            counted: Whether each round has a row, so that counters may pick.
        """
        if body.kept or body.changes or body.added:
            return None
        if not counted and (body.form.counters or body.picks):
            return None
        latest = 1
        for i, result in enumerate(body.results):
            root, rounds = body.values.root(result), 1
            if body.carried(root) == i:
                continue
            # What another variable had is what was made before.
            while (number := body.carried(root)) is not None and rounds <= _LATEST:
                before, root = root, body.values.root(body.results[number])
                if root is before:
                    break
                rounds += 1
            known = root in body.argument or body.values.home.get(root) is Home.PRESET
            known |= root in body.picks
            if rounds > _LATEST or not is_native(result) or not (known or root in body.made):
                return None
            latest = max(latest, rounds)
        return latest

    def row(self, rounds: int) -> int:
        """Return the row of a round, by its number."""
        return min(rounds, self._latest + (rounds - self._latest) % self.again)

    def turns(self, first: int, many: int) -> Turns:
        """Return how rounds go through the rows.

        Args:
            first: The number of the first of them.
            many: How many there are.
        """
        return Turns(many, self.row(first), self.again)

    def _counting(self, number: int, step: int, count: int) -> Array:
        """Return what a counter is in each round."""
        root = next(t for t, i in self._body.argument.items() if i == number)
        start = None if self._counted is None else self._counted.integers.get(number)
        if start is None:
            raise Misfit
        found: Array = (start + step * np.arange(count)).astype(root.dtype.numpy)
        return found

    def _integer(self, root: Tensor, number: int) -> int:
        """Return an integer that picks in a round."""
        assert self._counted is not None
        found = self._at(root, number)
        if isinstance(found, int):
            known = self._counted.integers.get(found)
            if known is None:
                raise Misfit
            return known
        if isinstance(found, _Part) or root in self._body.made:
            raise Misfit
        return int(found.item())

    def _picked(self, root: Tensor, pick: Pick, number: int) -> _Part | Array:
        """Return the part of an array that a counter picks in a round."""
        assert pick.index is not None
        source = pick.source
        length, index = source.spec.shape.known[0], self._integer(pick.index, number)
        index += length if index < 0 else 0
        if not 0 <= index < length:
            raise Misfit
        argument = self._body.argument.get(source)
        if argument is None:
            part: Array = self._body.values.presets[source][index, ...]
            return part
        return _Part(argument, index * size_of(root))

    def _at(self, root: Tensor, number: int) -> int | _Part | Array:
        """Return what a tensor is in a round: an argument, by number, a part, or where it is."""
        body = self._body
        while True:
            pick = body.picks.get(root)
            if pick is not None:
                return self._picked(root, pick, number)
            made = self._made.get(root)
            if made is not None:
                return made[number % self.again]
            argument = body.argument.get(root)
            if argument is None:
                known: Array = body.values.presets[root]
                return known
            if argument in self._counters:
                return self._counters[argument][number, ...]
            after = root if argument >= body.form.carried else body.results[argument]
            before, root = root, body.values.root(after)
            if number == 0 or root is before:
                return argument
            number -= 1

    def _lay(self, root: Tensor, column: int) -> None:
        """Say where a tensor is in each row, as far as that is known."""
        count = self.rows.shape[1]
        for number in range(len(self.rows)):
            found = self._at(root, number)
            if isinstance(found, _Part):
                parts = self.parts.setdefault(found.argument, [])
                parts.append((number * count + column, found.offset))
            elif isinstance(found, int):
                # A variable has one shape and dtype in all rounds, if under several names.
                it = next(t for t, i in self._body.argument.items() if i == found)
                facts = it.spec.shape.known, it.dtype.numpy
                words = self.given.setdefault(found, (*facts, []))[2]
                words.append(number * count + column)
            else:
                self.rows[number, column] = address(found)

    def begin(self, arguments: Sequence[Any]) -> list[Any]:
        """Write down where arguments are; return the arrays that must stay there.

        Raises:
            Misfit: if they do not fit.
        """
        held, words = [], self._words
        for number, (shape, dtype, places) in self.given.items():
            array = arguments[number]
            if (
                type(array) is not np.ndarray
                or array.shape != shape
                or array.dtype != dtype
                or not array.flags.c_contiguous
            ):
                array = solid(array, shape, dtype)
            held.append(array)
            where = address(array)
            for place in places:
                words[place] = where
        return held

    def _result(self, index: int) -> Callable[[Sequence[Any], int], Any]:
        """Return what yields a carried value, of the arguments and the number of rounds."""
        result = self._body.results[index]
        root, shape = self._body.values.root(result), result.spec.shape.known
        if self._counted is not None:
            # Who counts takes the results from where the rows say that they are.
            return lambda arguments, rounds: None
        # After round 0, 1 and so on; from the latest on they come again.
        found = [self._at(root, number) for number in range(len(self.rows))]
        ready = [each.reshape(shape) if isinstance(each, np.ndarray) else each for each in found]

        def value(arguments: Sequence[Any], rounds: int) -> Any:
            what = ready[self.row(rounds - 1)]
            if isinstance(what, np.ndarray):
                return what.copy()
            assert isinstance(what, int)
            given = arguments[what]
            return given if what == index else np.array(given).reshape(shape)

        return value

    def end(self, arguments: Sequence[Any], rounds: int) -> list[Any]:
        """Return the carried values after some rounds, at least one."""
        return [value(arguments, rounds) for value in self._results]


@final
class CycleRun:
    """One run of a loop whose rows come again.

    Attributes:
        rounds: How many rounds it has made.
        going: Whether the last of them said that another one follows.
    """

    def __init__(
        self,
        program: LoopProgram,
        instance: Instance,
        cycle: Cycle,
        arguments: Sequence[Any],
        count: int | None,
    ) -> None:
        """Say where the arguments are.

        Raises:
            Misfit: if they do not fit.
        """
        self._program, self._instance, self._cycle = program, instance, cycle
        self._arguments, self._count = arguments, count
        self._held = cycle.begin(arguments)
        self._results: list[Any] | None = None
        self.rounds, self.going = 0, True

    def advance(self) -> bool:
        """Run some rounds; return whether more are left."""
        program, done = self._program, self.rounds
        left = None if self._count is None else self._count - done
        many = self._cycle.turns(done, program.slice(left))
        made, fine = program.drive_rounds(self._instance, self._cycle.rows, many)
        self.rounds = done = done + made
        self.going = fine and not self._instance.table.ended
        if self.going and (self._count is None or done < self._count):
            return True
        if fine:
            # The instance is for others then, and with it the places of what was made.
            self._results = self._cycle.end(self._arguments, done)
        program.free(self._instance)
        return False

    def results(self) -> tuple[list[Any], list[ListValue]] | None:
        """Return the carried values, and no lists; None where a round failed."""
        return None if self._results is None else (self._results, [])
