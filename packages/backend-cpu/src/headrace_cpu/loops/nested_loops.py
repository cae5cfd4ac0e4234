"""Nested loops: a loop in the body of another one is a call among its calls.

It has tables of its own, and rows of addresses that come again. Where its arguments and its results
are in a round of the outer loop is put into them as into any other call's words. After its last
round what it hands on is copied to where the outer loop wants it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any, Protocol, final

import numpy as np

from headrace import Operation, Tensor
from headrace.extend.devices import HeldLoop
from headrace_cpu.loops.body import Body, Unfit
from headrace_cpu.loops.carried_loops import Counted, Cycle
from headrace_cpu.loops.columns import Misfit
from headrace_cpu.loops.driver import (
    BACK,
    COUNT,
    END,
    ENDED,
    LAST,
    ROW,
    STRIDE,
    Table,
    driver_place,
)
from headrace_cpu.native.build import build
from headrace_cpu.native.memory import Array, address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.instruction import (
    Addresses,
    Bound,
    Held,
    Inner,
    Instruction,
    Native,
    NativeCall,
)
from headrace_cpu.program.values import Values, is_native, size_of

# Words of the block of a loop within: the driver, and the driver's block for the rounds; whether it
# has begun, the row of the first round and how many there are; the driver's block for the condition
# of the first round, 0 where none is asked; what is copied after the last round, how many such, and
# the row that stands for it where there was no round.
_BEGUN, _COUNT = 2, 4
# Words of what is copied: the byte of the row where it says from where, to where, how many bytes.
_RESULT = 3
_ENDLESS = 1 << 62
# So many addresses stand in the rows of a loop that counts.
_MOST_COUNTED = 1 << 14

_TEXT = f"""\
declare ptr @memcpy(ptr, ptr, i64)
define i32 @within(i64 %block) {{
entry:
  %b = inttoptr i64 %block to ptr
  %drive = load ptr, ptr %b
  %rounds.p = getelementptr i64, ptr %b, i64 1
  %rounds.word = load i64, ptr %rounds.p
  %rounds = inttoptr i64 %rounds.word to ptr
  %begun.p = getelementptr i64, ptr %b, i64 {_BEGUN}
  %begun = load i64, ptr %begun.p
  %first.p = getelementptr i64, ptr %b, i64 3
  %first = load i64, ptr %first.p
  %count.p = getelementptr i64, ptr %b, i64 4
  %count = load i64, ptr %count.p
  %cond.p = getelementptr i64, ptr %b, i64 5
  %cond.word = load i64, ptr %cond.p
  %cond = inttoptr i64 %cond.word to ptr
  %results.p = getelementptr i64, ptr %b, i64 6
  %results = load ptr, ptr %results.p
  %many.p = getelementptr i64, ptr %b, i64 7
  %many = load i64, ptr %many.p
  %none.p = getelementptr i64, ptr %b, i64 8
  %none = load ptr, ptr %none.p
  %last.p = getelementptr i64, ptr %rounds, i64 {LAST}
  %on = icmp ne i64 %begun, 0
  br i1 %on, label %run, label %begin
begin:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %look, label %end
look:
  %is.asked = icmp ne i64 %cond.word, 0
  br i1 %is.asked, label %ask, label %set
ask:
  %cond.row.p = getelementptr i64, ptr %cond, i64 {ROW}
  %cond.row = load i64, ptr %cond.row.p
  %cond.ended.p = getelementptr i64, ptr %cond, i64 {ENDED}
  store i64 0, ptr %cond.ended.p
  %asked = call i32 %drive(i64 %cond.word)
  %cond.ended = load i64, ptr %cond.ended.p
  %went = icmp eq i32 %asked, 0
  br i1 %went, label %answer, label %out
answer:
  %goes = icmp eq i64 %cond.ended, 0
  br i1 %goes, label %set, label %end
set:
  %row.p = getelementptr i64, ptr %rounds, i64 {ROW}
  store i64 %first, ptr %row.p
  %left.p = getelementptr i64, ptr %rounds, i64 {COUNT}
  store i64 %count, ptr %left.p
  %ended.p = getelementptr i64, ptr %rounds, i64 {ENDED}
  store i64 0, ptr %ended.p
  store i64 1, ptr %begun.p
  br label %run
run:
  %status = call i32 %drive(i64 %rounds.word)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %made, label %out
made:
  %last = load ptr, ptr %last.p
  br label %end
end:
  %row = phi ptr [ %none, %begin ], [ %none, %answer ], [ %last, %made ]
  br label %copies
copies:
  %c = phi i64 [ 0, %end ], [ %c.next, %copy ]
  %copy.p = phi ptr [ %results, %end ], [ %copy.next, %copy ]
  %more = icmp slt i64 %c, %many
  br i1 %more, label %copy, label %done
copy:
  %byte = load i64, ptr %copy.p
  %to.p = getelementptr i64, ptr %copy.p, i64 1
  %to = load ptr, ptr %to.p
  %size.p = getelementptr i64, ptr %copy.p, i64 2
  %size = load i64, ptr %size.p
  %from.p = getelementptr i8, ptr %row, i64 %byte
  %from = load ptr, ptr %from.p
  %copied = call ptr @memcpy(ptr %to, ptr %from, i64 %size)
  %c.next = add i64 %c, 1
  %copy.next = getelementptr i64, ptr %copy.p, i64 {_RESULT}
  br label %copies
done:
  store i64 0, ptr %begun.p
  ret i32 0
out:
  %why = phi i32 [ %asked, %ask ], [ %status, %run ]
  ret i32 %why
}}
"""


@functools.cache
def within_place() -> int:
    """Return the address of what runs a loop within, ``int within(int64_t *block)``."""
    (place,) = build([KernelSource("within", _TEXT, language="llvm")])
    return place


def _integer(value: Any) -> int | None:
    """Return a scalar of whole numbers as an integer, None for everything else."""
    if not isinstance(value, np.ndarray | np.generic) or value.size != 1:
        return None
    return int(value.item()) if value.dtype.kind in "iu" else None


class Rounds(Protocol):
    """The compiled body of a loop, or its condition, as a body of one round.

    Attributes:
        body: What it does.
    """

    body: Body

    def bind(self) -> tuple[list[Bound], Any]:
        """Return the instructions bound to buffers of their own, and the buffers' memory."""

    def table(self, bound: Sequence[Bound]) -> Table:
        """Return the table of what was bound."""


@final
class LoopWithin(Instruction):
    """A loop as a call of the rounds of another one."""

    name = "loop"

    def __init__(
        self,
        op: Operation,
        values: Values,
        held: HeldLoop,
        rounds: Rounds,
        cond: Rounds | None,
        read: Collection[Tensor],
    ) -> None:
        """Look at a loop.

        Args:
            op: The loop.
            values: Where the values live of the program that it is part of.
            held: How it runs.
            rounds: Its body.
            cond: Its condition, where that must be asked before the first round.
            read: The tensors that others read.

        Raises:
            Unfit: if it cannot run so.
        """
        self.ops = (op,)
        self.reads = op.inputs
        self.writes = tuple(t for t in op.outputs if t in read)
        self._rounds, self._cond, self._held = rounds, cond, held
        body = rounds.body
        given = [values.root(t) for t in op.inputs]
        # How many rounds there are at most, None where that depends on the values.
        self._count: int | None = None
        if held.count is not None:
            self._count = held.count.rounds([values.presets.get(root) for root in given])
        if self._count is None and cond is not None:
            self._count = _ENDLESS
        if not all(map(is_native, (*op.inputs, *self.writes))):
            raise Unfit(f"{op.name!r} reads or writes lists")
        # Which carried value each result is.
        self._results: list[tuple[Tensor, int]] = []
        for number, tensor in enumerate(op.outputs[: op.arity[0]]):
            if tensor in self.writes:
                carried = held.variables[number]
                if carried is None or size_of(body.results[carried]) != size_of(tensor):
                    raise Unfit(f"the counter of {op.name!r} is read")
                self._results.append((tensor, carried))
        self._counted: Counted | None = None
        if body.form.counters or body.picks:
            if self._count is None or self._count * len(op.inputs) > _MOST_COUNTED:
                raise Unfit(f"{op.name!r} counts too far")
            numbers = range(len(held.arguments))
            found = {i: _integer(values.presets.get(values.root(self.given(i)))) for i in numbers}
            integers = {i: n for i, n in found.items() if n is not None}
            self._counted = Counted(self._count, integers)
        if Cycle.latest(body, counted=self._counted is not None) is None:
            raise Unfit(f"{op.name!r} keeps values of its rounds")

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``.

        Raises:
            Unfit: if it cannot run so.
        """
        if self._count is None:
            raise Unfit(f"how often {self.ops[0].name!r} runs is not known before")
        return Binding(self, at).bound()

    def rounds(self, values: Sequence[Any]) -> int | None:
        """Return how many rounds it makes at most for values of its inputs, None if unknown."""
        if self._count is not None:
            return self._count
        assert self._held.count is not None
        return self._held.count.rounds(values)

    def given(self, number: int) -> Tensor:
        """Return what an argument of the body is in the first round."""
        return self.ops[0].inputs[self._held.arguments[number]]

    @property
    def parts(
        self,
    ) -> tuple[Rounds, Rounds | None, int | None, list[tuple[Tensor, int]], Counted | None]:
        """Its body and condition, how many rounds it makes at most, its results, its counters."""
        return self._rounds, self._cond, self._count, self._results, self._counted


class Binding:
    """A loop bound for one instance of the outer one; it is what is behind the call.

    Attributes:
        own: As in ``Inner``.
        held: As in ``Inner``.
        block: The block of the call.
        words: Words that are the address of a tensor and so many bytes.
    """

    def __init__(self, loop: LoopWithin, at: Addresses) -> None:
        """Bind it.

        Raises:
            Unfit: if it cannot run so.
        """
        self._loop, self._at = loop, at
        rounds, cond, most, results, counted = loop.parts
        count = 0 if most is None else most
        self.words: list[tuple[Tensor, int, int]] = []
        self._bound, self._memory = rounds.bind()
        self._table = rounds.table(self._bound)
        self._cond_bound: Any = None
        self._tables = [self._table]
        body = rounds.body
        # Besides what calls read, a row says where the results of its round are.
        roots = [body.values.root(body.results[carried]) for _, carried in results]
        width = len(self._table.columns)
        columns = [*self._table.columns, *roots]
        self._cycle = self._rows(body, columns, loop.given, counted)
        rows = self._cycle.rows
        self._enter(self._table, rows, count, 0 if counted is not None else self._cycle.again)
        self._copies: Array = np.zeros((max(len(results), 1), _RESULT), np.int64)
        self._none: Array = np.zeros(rows.shape[1], np.int64)
        for number, (tensor, carried) in enumerate(results):
            column = width + number
            self._copies[number] = 8 * column, 0, size_of(tensor)
            self._put(tensor, self._copies, number * _RESULT + 1)
            self._put(loop.given(carried), self._none, column)
        asked = 0
        if cond is not None:
            bound, memory = cond.bind()
            table = cond.table(bound)
            inputs = loop.ops[0].inputs
            cycle = self._rows(cond.body, table.columns, inputs.__getitem__)
            self._enter(table, cycle.rows, 1, 0)
            self._tables.append(table)
            self._cond_bound = bound, memory, cycle
            asked = address(table.block)
        words = (driver_place(), address(self._table.block), 0, address(rows), count, asked)
        last = (address(self._copies), len(results), address(self._none))
        self.block: Array = np.array((*words, *last), np.int64)
        self.own = any(table.own for table in self._tables)
        self.held: list[Held] = [each for table in self._tables for each in table.held]

    def _rows(
        self, body: Body, columns: Sequence[Tensor], given: Any, counted: Counted | None = None
    ) -> Cycle:
        latest = Cycle.latest(body, counted=counted is not None)
        assert latest is not None
        try:
            cycle = Cycle(body, columns, latest, counted)
        except Misfit:
            raise Unfit("what a loop within picks is not known before") from None
        for number, parts in cycle.parts.items():
            for word, offset in parts:
                self._put(given(number), cycle.rows, word, offset)
        for number, (shape, dtype, places) in cycle.given.items():
            tensor = given(number)
            if tensor.spec.shape.known != shape or tensor.dtype.numpy != dtype:
                raise Unfit("a variable of a loop within changes its shape")
            for place in places:
                self._put(tensor, cycle.rows, place)
        return cycle

    def _enter(self, table: Table, rows: Array, count: int, again: int) -> None:
        """Tell a table which rows it goes through."""
        stride, start = rows.strides[0], address(rows)
        table.block[ROW], table.block[STRIDE], table.block[COUNT] = start, stride, count
        table.block[END] = start + len(rows) * stride if again else 0
        table.block[BACK] = -again * stride

    def _put(self, tensor: Tensor, array: Array, word: int, offset: int = 0) -> None:
        """Let a word be where a tensor is, or so many bytes behind."""
        known = self._at.of(tensor)
        if known is not None:
            array.reshape(-1)[word] = known + offset
        else:
            self.words.append((tensor, address(array) + 8 * word, offset))

    def bound(self) -> Bound:
        """Return what the outer loop calls."""
        inner: Inner = self
        call = NativeCall(within_place(), (address(self.block),), checked=True)
        return Bound(self._alone, {}, Native((call,), tuple(self.words), inner=(inner,)))

    def make(self, count: int) -> None:
        """Make so many rounds at most, from the next call on."""
        self.block[_COUNT] = count

    def _alone(self) -> None:
        raise AssertionError("a loop within another is run by that")

    def allow(self, threads: int) -> None:
        """Let calls run on so many threads."""
        for table in self._tables:
            table.allow(threads)

    def pay_from(self, budget: int) -> None:
        """Take what begins a round from the word at an address; come back where it is 0."""
        for table in self._tables:
            table.pay_from(budget)

    def reset(self) -> None:
        """Forget what had begun, after a call has failed."""
        self.block[_BEGUN] = 0
        for table in self._tables:
            table.reset()
