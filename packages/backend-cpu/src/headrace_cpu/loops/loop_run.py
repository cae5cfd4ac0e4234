"""One run of a loop: its rows of addresses, its slices of iterations, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from headrace import Tensor
from headrace.extend.kernels import ListValue
from headrace_cpu.loops.body import Body
from headrace_cpu.loops.columns import Fixed
from headrace_cpu.loops.driver import Turns
from headrace_cpu.loops.run_arrays import Source
from headrace_cpu.loops.run_layout import Setting

if TYPE_CHECKING:
    from headrace_cpu.loops.loop_program import Instance, LoopProgram

# So many rounds have their addresses written down at once.
_MOST_ROUNDS = 4096
# So many addresses stay written down for the next run, and as many runs' as run at one time.
_MOST_KEPT, _MOST_PLACED = 1 << 16, 4
# So many rounds are added to those that a loop made which says itself when it ends.
_MORE = 4


@final
class Placed:
    """Where everything is in each round of a run, and of the runs after it.

    Attributes:
        setting: The columns.
        rows: The addresses in all rounds; None where they are written down for each slice.
    """

    def __init__(self, body: Body, tensors: Sequence[Tensor], given: Sequence[Any], count: int):
        """Find it out.

        Args:
            body: The body.
            tensors: The tensors of the columns.
            given: The body's arguments.
            count: How many rounds there are.

        Raises:
            Misfit: if the arguments do not fit.
            MemoryError: if there is no room for what is kept.
        """
        self.setting = setting = Setting(body, given, count)
        self._columns = [setting.find(body.values.root(t)) for t in tensors]
        size = count * len(tensors)
        self.rows: Any = None
        # For each source the addresses that move with it.
        self._moving: dict[Source, list[Any]] = {}
        if setting.comes_again and count <= _MOST_ROUNDS and size <= _MOST_KEPT:
            self.rows = self.between(0, count)
            for number, column in enumerate(self._columns):
                for source, rounds in setting.behind(column):
                    self._moving.setdefault(source, []).append(self.rows[rounds, number])

    def between(self, first: int, last: int) -> Any:
        """Return the addresses in rounds ``first`` to below ``last``: [rounds, columns], int64."""
        rows = np.empty((last - first, len(self._columns)), np.int64)
        fixed = [isinstance(column, Fixed) for column in self._columns]
        rows[:] = [
            column.addresses(first, last) if one else 0
            for column, one in zip(self._columns, fixed, strict=True)
        ]
        for number, column in enumerate(self._columns):
            if not fixed[number]:
                rows[:, number] = column.addresses(first, last)
        return rows

    def again(self, arguments: Sequence[Any], count: int) -> bool:
        """Take the arguments of another run; return whether they fit.

        Raises:
            MemoryError: if there is no room for what is kept.
        """
        moved = self.setting.again(arguments, count)
        if moved is None:
            return False
        for source in moved:
            for places in self._moving.get(source, ()):
                places += source.moved
        return True


@final
class LoopRun:
    """One run of a loop.

    Attributes:
        rounds: How many rounds it has made.
        going: Whether the last of them said that another one follows.
    """

    def __init__(
        self,
        program: LoopProgram,
        instance: Instance,
        arguments: Sequence[Any],
        count: int | None,
    ) -> None:
        """Find out where everything will be in each round.

        Raises:
            Misfit: if the arguments do not fit.
            MemoryError: if there is no room for what is kept.
        """
        self._program, self._instance = program, instance
        if program.body.going is not None:
            count = program.likely if count is None else min(count, program.likely)
        assert count is not None
        self._placed = self._find(arguments, count)
        self._setting = self._placed.setting
        # What is put into lists may be no kernel's.
        self._others: dict[int, Callable[[], Any]] = {
            **{i: self._setting.changed(i) for i in program.body.changes},
            **{i: self._setting.added(i) for i in program.body.added},
        }
        self._count, self.rounds = count, 0
        self._failed, self.going = False, True

    def _find(self, arguments: Sequence[Any], count: int) -> Placed:
        program = self._program
        try:
            placed = program.placed.pop()
        except IndexError:
            pass
        else:
            if placed.again(arguments, count):
                return placed
        return Placed(program.body, self._instance.table.columns, arguments, count)

    def advance(self) -> bool:
        """Run some rounds; return whether more are left."""
        first, program = self.rounds, self._program
        last = first + min(program.slice(self._count - first), _MOST_ROUNDS)
        rows = self._placed.rows
        if rows is None:
            rows, turns = self._placed.between(first, last), Turns(last - first)
        else:
            turns = Turns(last - first, first)
        made, fine = program.drive_rounds(self._instance, rows, turns)
        self.rounds, self._failed = first + made, not fine
        self.going = fine and not self._instance.table.ended
        more = self.rounds < self._count and self.going
        if not more:
            self._end()
        return more

    def _end(self) -> None:
        program = self._program
        if program.body.going is not None and not self._failed:
            # As many as now, and a few; twice as many where that was not enough.
            enough = self.rounds + self.rounds // 4 + _MORE
            program.likely = min(2 * self._count if self.going else enough, _MOST_ROUNDS)
            self._count = self._setting.count = self.rounds
        program.free(self._instance)

    def results(self) -> tuple[list[Any], list[ListValue]] | None:
        """Return the carried values and the lists of what was kept; None where a round failed."""
        if self._failed:
            self._setting.drop()
            return None
        program, setting = self._program, self._setting
        body = program.body
        carried = [
            self._others[i]() if i in self._others else setting.last(i)
            for i in range(body.form.carried)
        ]
        found = carried, [ListValue(setting.column(t).items(self._count)) for t in body.kept]
        if (
            self._placed.rows is not None
            and setting.comes_again
            and len(program.placed) < _MOST_PLACED
        ):
            setting.release()
            program.placed.append(self._placed)
        else:
            setting.drop()
        return found
