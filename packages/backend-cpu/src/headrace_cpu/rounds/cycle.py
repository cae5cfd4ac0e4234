"""Loops of which no round needs anything but what the round before has made.

Where nothing is kept and nothing is picked by a counter, the rows of addresses come again and
again: the first rounds read what the loop was given, and all others what was made before, in two
places or a few by turns. So there are a few rows, which are there before the loop begins, and a run
says only where its arguments are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from headrace import Tensor
from headrace.extend.kernels import ListValue
from headrace_cpu.native.memory import Array, address, allocate
from headrace_cpu.program.values import Home, is_native
from headrace_cpu.rounds.body import Body
from headrace_cpu.rounds.columns import solid
from headrace_cpu.rounds.driver import Turns

if TYPE_CHECKING:
    from headrace_cpu.rounds.loop import Instance, LoopProgram

# What a run hands back is copied. More than that is handed on as it is, by the other kind of run.
_LARGE_BYTES = 1 << 16
# Where nobody knows how many rounds there are, the other kind prepares for too many or too few. But
# places stay with the program.
_LARGE_ASKED_BYTES = 1 << 22
# So many rounds later a value may be read at most.
_LATEST = 4


@final
class Cycle:
    """The rows of one instance of a body, and the places of what it makes."""

    def __init__(self, body: Body, columns: Sequence[Tensor], latest: int) -> None:
        """Lay the rows out; use ``Cycle.of``, which knows whether that can be done.

        Args:
            body: The body.
            columns: The tensors of the rows.
            latest: How many rounds later values are read, at most.
        """
        self._body, self._latest = body, latest
        # A value is there until the round in which it is read last has ended.
        self._again = latest + 1
        root = body.values.root
        self.rows = np.zeros((latest + self._again, len(columns)), np.int64)
        self._made = {tensor: self._places(tensor) for tensor in body.made}
        # The rows as words one behind the other, which are written down quicker so.
        kind = ctypes.c_int64 * self.rows.size
        self._words = kind.from_address(address(self.rows))
        # Arguments by number: what each must be, and at which words it stands.
        self._given: dict[int, tuple[tuple[int, ...], np.dtype[Any], list[int]]] = {}
        for number, tensor in enumerate(columns):
            self._lay(root(tensor), number)
        self._results = [self._result(i) for i in range(body.form.carried)]

    def _places(self, tensor: Tensor) -> list[Array]:
        shape, dtype = tensor.spec.shape.known, tensor.dtype.numpy
        size = prod(shape) * dtype.itemsize
        blocks = [allocate(max(size, 1)) for _ in range(self._again)]
        return [block[:size].view(dtype).reshape(shape) for block in blocks]

    @classmethod
    def of(cls, body: Body, columns: Sequence[Tensor]) -> Cycle | None:
        """Return the rows of a body, None where it needs what these rows do not have."""
        if body.form.counters or body.kept or body.picks or body.changes or body.added:
            return None
        latest, size = 1, 0
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
            if rounds > _LATEST or not is_native(result) or not (known or root in body.made):
                return None
            latest = max(latest, rounds)
            size += prod(result.spec.shape.known) * result.dtype.size
        most = _LARGE_BYTES if body.going is None else _LARGE_ASKED_BYTES
        return cls(body, columns, latest) if size <= most else None

    def row(self, rounds: int) -> int:
        """Return the row of a round, by its number."""
        return min(rounds, self._latest + (rounds - self._latest) % self._again)

    def turns(self, first: int, many: int) -> Turns:
        """Return how rounds go through the rows.

        Args:
            first: The number of the first of them.
            many: How many there are.
        """
        return Turns(many, self.row(first), self._again)

    def _at(self, root: Tensor, number: int) -> int | Array:
        """Return what a tensor is in a round: the number of an argument, or where it is."""
        body = self._body
        while True:
            made = self._made.get(root)
            if made is not None:
                return made[number % self._again]
            argument = body.argument.get(root)
            if argument is None:
                known: Array = body.values.presets[root]
                return known
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
            if isinstance(found, int):
                # A variable has one shape and dtype in all rounds, if under several names.
                it = next(t for t, i in self._body.argument.items() if i == found)
                facts = it.spec.shape.known, it.dtype.numpy
                words = self._given.setdefault(found, (*facts, []))[2]
                words.append(number * count + column)
            else:
                self.rows[number, column] = address(found)

    def begin(self, arguments: Sequence[Any]) -> list[Any]:
        """Write down where arguments are; return the arrays that must stay there.

        Raises:
            Misfit: if they do not fit.
        """
        held, words = [], self._words
        for number, (shape, dtype, places) in self._given.items():
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
        # After round 0, 1 and so on; from the latest on they come again.
        found = [self._at(root, number) for number in range(len(self.rows))]
        ready = [each if isinstance(each, int) else each.reshape(shape) for each in found]

        def value(arguments: Sequence[Any], rounds: int) -> Any:
            what = ready[self.row(rounds - 1)]
            if not isinstance(what, int):
                return what.copy()
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
