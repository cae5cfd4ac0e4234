"""The driver: one kernel that makes all calls of many iterations of a loop.

What a round calls is a table of functions and their words. What changes from round to round is
where tensors are, which is known before the first round: a matrix of addresses, a row for each
round. Before the calls of a round the driver puts its row where kernels look for it: into their
blocks, and into the table itself.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from headrace import Tensor
from headrace_cpu.native.build import build
from headrace_cpu.native.memory import Array, address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import bare_kernel, open_mp
from headrace_cpu.program.instruction import Held, Inner, Native, NativeCall

# Words of the driver's block: the table of calls, how many there are, the table of what is put
# where, how many, the byte in the row where it is told whether another round follows, -1 where
# nothing says so; the row of the first round, the bytes of a row, the number of rounds, where the
# rows end, how many bytes before that they go on; then what it reports: how many rounds were made,
# the number of the call that failed, from 1 on, and whether a round said that none follows; the row
# of the last round that was made; where it is told how many rounds may be begun before it comes
# back; and the number of the call, from 1 on, with which it goes on where it has come back in a
# round. Such a round has begun already: whoever goes on makes one more in the innermost loop.
WORDS = 16
_ASKS, ROW, STRIDE, COUNT, END, BACK, DONE, _FAILED, ENDED, LAST, BUDGET, AT = range(4, 16)
# What a driver, or a call of one, returns when it has come back before the end: nobody else does.
PAUSED = 1 << 30
# More rounds than anybody begins.
_ENDLESS = 1 << 62
# Words of a call: the function, its four words, whether it returns a status, where it reports.
_CALL = 8
_STATUS, _REPORT = 5, 6
# What is written into the block for a run, and what is read out of it afterwards.
_pack = struct.Struct(f"{ENDED + 1 - ROW}q").pack_into
_unpack = struct.Struct(f"{ENDED + 1 - DONE}q").unpack_from
# Words of a place: where it is, the byte in the row, the bytes that are added.
_PLACE = 3
_ARGUMENTS = 4

_TEXT = """\
define i32 @rounds(i64 %block) {
entry:
  %b = inttoptr i64 %block to ptr
  %calls = load ptr, ptr %b
  %count.p = getelementptr i64, ptr %b, i64 1
  %count = load i64, ptr %count.p
  %places.p = getelementptr i64, ptr %b, i64 2
  %places = load ptr, ptr %places.p
  %many.p = getelementptr i64, ptr %b, i64 3
  %many = load i64, ptr %many.p
  %asks.p = getelementptr i64, ptr %b, i64 4
  %asks = load i64, ptr %asks.p
  %asked = icmp sge i64 %asks, 0
  %first.p = getelementptr i64, ptr %b, i64 5
  %first = load ptr, ptr %first.p
  %stride.p = getelementptr i64, ptr %b, i64 6
  %stride = load i64, ptr %stride.p
  %rounds.p = getelementptr i64, ptr %b, i64 7
  %rounds = load i64, ptr %rounds.p
  %end.p = getelementptr i64, ptr %b, i64 8
  %rows.end = load ptr, ptr %end.p
  %back.p = getelementptr i64, ptr %b, i64 9
  %back = load i64, ptr %back.p
  %done.p = getelementptr i64, ptr %b, i64 10
  %failed.p = getelementptr i64, ptr %b, i64 11
  %ended.p = getelementptr i64, ptr %b, i64 12
  %last.p = getelementptr i64, ptr %b, i64 13
  %budget.p.p = getelementptr i64, ptr %b, i64 14
  %budget.p = load ptr, ptr %budget.p.p
  %at.p = getelementptr i64, ptr %b, i64 15
  %at = load i64, ptr %at.p
  store i64 0, ptr %at.p
  %resumed = icmp ne i64 %at, 0
  %before = sub i64 %at, 1
  %first.call = select i1 %resumed, i64 %before, i64 0
  %at.byte = mul i64 %first.call, 64
  %at.call = getelementptr i8, ptr %calls, i64 %at.byte
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r.next, %on ]
  %row = phi ptr [ %first, %entry ], [ %row.next, %on ]
  %begin = phi i64 [ %first.call, %entry ], [ 0, %on ]
  %is.paid = phi i1 [ %resumed, %entry ], [ false, %on ]
  %begin.p = phi ptr [ %at.call, %entry ], [ %calls, %on ]
  store i64 %r, ptr %done.p
  %going = icmp slt i64 %r, %rounds
  br i1 %going, label %owe, label %end
owe:
  br i1 %is.paid, label %place, label %pay
pay:
  %budget = load i64, ptr %budget.p
  %paid = icmp sgt i64 %budget, 0
  br i1 %paid, label %begun, label %pause
begun:
  %budget.then = sub i64 %budget, 1
  store i64 %budget.then, ptr %budget.p
  br label %place
place:
  %p = phi i64 [ 0, %begun ], [ 0, %owe ], [ %p.next, %put ]
  %place.p = phi ptr [ %places, %begun ], [ %places, %owe ], [ %place.next, %put ]
  %more = icmp slt i64 %p, %many
  br i1 %more, label %put, label %call
put:
  %where = load ptr, ptr %place.p
  %byte.p = getelementptr i64, ptr %place.p, i64 1
  %byte = load i64, ptr %byte.p
  %added.p = getelementptr i64, ptr %place.p, i64 2
  %added = load i64, ptr %added.p
  %from = getelementptr i8, ptr %row, i64 %byte
  %base = load i64, ptr %from
  %address = add i64 %base, %added
  store i64 %address, ptr %where
  %p.next = add i64 %p, 1
  %place.next = getelementptr i64, ptr %place.p, i64 3
  br label %place
call:
  %c = phi i64 [ %begin, %place ], [ %c.next, %fine ]
  %call.p = phi ptr [ %begin.p, %place ], [ %call.next, %fine ]
  %left = icmp slt i64 %c, %count
  br i1 %left, label %make, label %round.end
make:
  %function = load ptr, ptr %call.p
  %w0.p = getelementptr i64, ptr %call.p, i64 1
  %w0 = load i64, ptr %w0.p
  %w1.p = getelementptr i64, ptr %call.p, i64 2
  %w1 = load i64, ptr %w1.p
  %w2.p = getelementptr i64, ptr %call.p, i64 3
  %w2 = load i64, ptr %w2.p
  %w3.p = getelementptr i64, ptr %call.p, i64 4
  %w3 = load i64, ptr %w3.p
  %status = call i32 %function(i64 %w0, i64 %w1, i64 %w2, i64 %w3)
  %checked.p = getelementptr i64, ptr %call.p, i64 5
  %checked = load i64, ptr %checked.p
  %status64 = sext i32 %status to i64
  %bad = and i64 %status64, %checked
  %report.p = getelementptr i64, ptr %call.p, i64 6
  %report = load ptr, ptr %report.p
  %said = load i64, ptr %report
  %any = or i64 %bad, %said
  %wrong = icmp ne i64 %any, 0
  br i1 %wrong, label %look, label %fine
fine:
  %c.next = add i64 %c, 1
  %call.next = getelementptr i64, ptr %call.p, i64 8
  br label %call
round.end:
  %r.next = add i64 %r, 1
  br i1 %asked, label %ask, label %on
ask:
  %told.p = getelementptr i8, ptr %row, i64 %asks
  %told = load ptr, ptr %told.p
  %said.so = load i8, ptr %told
  %goes = icmp ne i8 %said.so, 0
  br i1 %goes, label %on, label %stop
on:
  store ptr %row, ptr %last.p
  %row.then = getelementptr i8, ptr %row, i64 %stride
  %at.end = icmp eq ptr %row.then, %rows.end
  %by = select i1 %at.end, i64 %back, i64 0
  %row.next = getelementptr i8, ptr %row.then, i64 %by
  br label %round
stop:
  store ptr %row, ptr %last.p
  store i64 %r.next, ptr %done.p
  store i64 1, ptr %ended.p
  br label %end
look:
  %reached.call = add i64 %c, 1
  %is.paused = icmp eq i64 %bad, 1073741824
  br i1 %is.paused, label %pause, label %fail
pause:
  %reached = phi i64 [ 0, %pay ], [ %reached.call, %look ]
  store i64 %reached, ptr %at.p
  store ptr %row, ptr %first.p
  %rest = sub i64 %rounds, %r
  store i64 %rest, ptr %rounds.p
  ret i32 1073741824
fail:
  %number = add i64 %c, 1
  store i64 %number, ptr %failed.p
  ret i32 1
end:
  ret i32 0
}
"""


def driver_place() -> int:
    """Return the address of the driver.

    Raises:
        KernelError: if it cannot be compiled.
    """
    (place,) = build([KernelSource("rounds", _TEXT, language="llvm")])
    return place


def driver() -> Callable[[int], object]:
    """Return the driver, a function of the address of its block.

    Raises:
        KernelError: if it cannot be compiled.
    """
    return bare_kernel(driver_place())


class Turns(NamedTuple):
    """How rounds go through the rows that say where tensors are.

    Attributes:
        rounds: How many rounds.
        first: The row of the first of them.
        again: From the last row on, so many rows come again and again; 0 where no row does.
    """

    rounds: int
    first: int = 0
    again: int = 0


@dataclass(slots=True)
class _Parallel:
    """A call on several threads: which row of the table it is, and how many threads it wants."""

    row: int
    threads: int


class Table:
    """The tables of one instance of a loop's body.

    Attributes:
        columns: The tensors of the columns of the matrix of addresses.
        own: Whether a library behind some call is set to a number of threads of its own.
        held: The libraries that must be held while it runs.
        ended: Whether the last round that was made said that none follows.
        inner: The tables behind calls that are loops themselves.
        block: The driver's block.
    """

    def __init__(
        self, natives: Sequence[Native], threads: int, going: Tensor | None = None
    ) -> None:
        """Lay the tables out.

        Args:
            natives: What each instruction runs, in order.
            threads: How many threads a step has that runs alone.
            going: What says after each round whether another one follows; None if nothing does.
        """
        self.columns: list[Tensor] = []
        self.own = False
        self.ended: int = False
        self.inner: list[Inner] = [each for native in natives for each in native.inner]
        found: list[Held | None] = [c.held for native in natives for c in native.calls]
        for each in self.inner:
            found += each.held
            self.own |= each.own
        self.held: list[Held] = list(
            {id(each): each for each in found if each is not None}.values()
        )
        self._number: dict[Tensor, int] = {}
        self._parallel: list[_Parallel] = []
        self._pool = open_mp()
        self._reports = [c.report for native in natives for c in native.calls if c.report]
        rows = [each for native in natives for each in self._rows(native, threads)]
        calls = np.zeros((len(rows), _CALL), np.int64)
        # What reports nothing is looked at as if it did.
        silence = np.zeros(1, np.int64)
        places: list[tuple[int, int, int]] = []
        for number, made in enumerate(rows):
            self._fill(calls[number], made, address(silence))
            base = address(calls) + 8 * _CALL * number
            if made.threads > 1 and self._pool is not None:
                self._parallel.append(_Parallel(number, made.threads))
            places += [(base + 8 * (1 + w), self._column(t), 0) for w, t in made.late.items()]
        for native in natives:
            places += [(where, self._column(t), added) for t, where, added in native.words]
        self._places = np.array(places, np.int64).reshape(len(places), _PLACE)
        self._calls, self._silence = calls, silence
        self.block: Any = np.zeros(WORDS, np.int64)
        self.block[:4] = address(calls), len(rows), address(self._places), len(places)
        self.block[_ASKS] = -1 if going is None else self._column(going)
        self._words = address(self.block)
        self._budget = np.full(1, _ENDLESS, np.int64)
        self.pay_from(address(self._budget))

    def run(
        self, drive: Callable[[int], object], rows: Array, threads: int, many: Turns
    ) -> tuple[int, bool]:
        """Make rounds.

        Where calls are loops themselves, it may come back in the middle of a round, with which it
        goes on then.

        Args:
            drive: The driver.
            rows: [rows, columns], int64, where the tensors are in each round.
            threads: How many threads the step may use.
            many: How many rounds to make, and how they go through the rows.

        Returns:
            How many rounds were made, fewer than asked for where one failed or was the last; and
            whether none failed.
        """
        self.allow(threads)
        start, stride = address(rows), rows.strides[0]
        end = start + len(rows) * stride if many.again else 0
        row = start + many.first * stride
        _pack(self.block, 8 * ROW, row, stride, many.rounds, end, -many.again * stride, 0, 0, 0)
        for each in self.held:
            each.hold()
        try:
            drive(self._words)
        finally:
            for each in self.held:
                each.let_go()
        done, failed, self.ended = _unpack(self.block, 8 * DONE)
        if failed:
            self.reset()
        return done, not failed

    def allow(self, threads: int) -> None:
        """Let calls run on so many threads."""
        for call in self._parallel:
            self._calls[call.row, 3] = min(call.threads, threads)
        for each in self.inner:
            each.allow(threads)

    def pay_from(self, budget: int) -> None:
        """Take what begins a round from the word at an address; come back where it is 0."""
        self.block[BUDGET] = budget
        for each in self.inner:
            each.pay_from(budget)

    def give(self, rounds: int) -> None:
        """Let it begin so many rounds, those of loops inside included, before it comes back."""
        self._budget[0] = rounds

    @property
    def left(self) -> int:
        """How many rounds it may still begin."""
        return int(self._budget[0])

    def reset(self) -> None:
        """Forget what had begun, after a call has failed."""
        self.block[AT] = 0
        for place in self._reports:
            ctypes.c_int64.from_address(place).value = 0
        for each in self.inner:
            each.reset()

    def _rows(self, native: Native, threads: int) -> list[NativeCall]:
        """Return the calls of an instruction, with those that set its library's threads."""
        made: list[NativeCall] = []
        for call in native.calls:
            if not call.own or not native.set_threads:
                made.append(call)
                continue
            self.own = True
            if call.own == threads:
                made.append(call)
                continue
            before, after = (NativeCall(native.set_threads, (n,)) for n in (call.own, threads))
            made += [before, call, after]
        return made

    def _fill(self, row: Array, call: NativeCall, silence: int) -> None:
        function, words = call.function, call.words
        if call.threads > 1 and self._pool is not None:
            function, words = self._pool.symbols["GOMP_parallel"], (function, *words, 1, 0)
        row[0] = function
        row[1 : 1 + len(words)] = words
        row[_STATUS] = -1 if call.checked else 0
        row[_REPORT] = call.report or silence

    def _column(self, tensor: Tensor) -> int:
        """Return the byte of a row where the address of a tensor is."""
        number = self._number.setdefault(tensor, len(self.columns))
        if number == len(self.columns):
            self.columns.append(tensor)
        return 8 * number
