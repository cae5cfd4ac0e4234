"""Sequences: short kernels that follow one another, called by one kernel.

To call a kernel from Python takes a third to half a microsecond, as long as many take that work on
a few thousand elements. What runs on one thread, changes no variable and takes some microseconds is
put together with what follows it: a table has the function and the words of each call, and one
kernel makes the calls. Variables are read, and what is no kernel and needs nothing of the sequence
is computed, before it. What takes longer stays by itself: between calls Python looks for signals.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from headrace import Tensor
from headrace.extend.devices import Region
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.instruction import (
    Addresses,
    Bound,
    Instruction,
    NativeCall,
    setter_of_all,
)
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Values

# What a kernel may read and write in bytes, and compute, to be called with others: each is about 20
# microseconds on one core. A sequence ends where all of its kernels have come to 16 times as much.
_MOST_BYTES = 1 << 18
_MOST_FLOPS = 1 << 18
_MOST_KERNELS = 16
# Words of a call in the table: the function, its four words, where it reports.
_CALL = 6
# Words of the driver's block: the table, the first call to make, and the number of calls.
_TABLE, _FIRST, _COUNT = range(3)

_DRIVER = KernelSource(
    "calls",
    """\
define i64 @calls(i64 %block) {
entry:
  %b = inttoptr i64 %block to ptr
  %table = load ptr, ptr %b
  %first.p = getelementptr i64, ptr %b, i64 1
  %first = load i64, ptr %first.p
  %count.p = getelementptr i64, ptr %b, i64 2
  %count = load i64, ptr %count.p
  %begin = mul i64 %first, 6
  %begin.p = getelementptr i64, ptr %table, i64 %begin
  br label %next
next:
  %c = phi i64 [ %first, %entry ], [ %then, %make ]
  %call.p = phi ptr [ %begin.p, %entry ], [ %call.next, %make ]
  %left = icmp slt i64 %c, %count
  br i1 %left, label %make, label %end
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
  call void %function(i64 %w0, i64 %w1, i64 %w2, i64 %w3)
  %report.p = getelementptr i64, ptr %call.p, i64 5
  %report = load ptr, ptr %report.p
  %said = load i64, ptr %report
  %wrong = icmp ne i64 %said, 0
  %then = add i64 %c, 1
  %call.next = getelementptr i64, ptr %call.p, i64 6
  br i1 %wrong, label %stop, label %next
stop:
  ret i64 %then
end:
  ret i64 0
}
""",
    language="llvm",
)
_Driver = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class PartError(Exception):
    """A part of a sequence has failed.

    Attributes:
        item: The part.
        cause: What it raised.
    """

    def __init__(self, item: Item, cause: Exception) -> None:
        """Tell which, and why."""
        super().__init__(str(cause))
        self.item = item
        self.cause = cause


class CallSequence(Instruction):
    """Instructions that run one after another.

    Attributes:
        parts: Their items, in order.
    """

    name = "calls"

    def __init__(self, parts: Sequence[Item]) -> None:
        """Put items together that have instructions which change no variables."""
        self.parts = tuple(parts)
        self.ops = tuple(op for item in parts for op in item.ops)
        self.reads = tuple(dict.fromkeys(t for each in self._instructions for t in each.reads))
        self.writes = tuple(t for each in self._instructions for t in each.writes)
        self._driver = 0

    @property
    def _instructions(self) -> list[Instruction]:
        return [i.instruction for i in self.parts if isinstance(i.instruction, Instruction)]

    def kernels(self) -> Sequence[KernelSource]:
        """Return what makes the calls; those that it calls are compiled by themselves."""
        return [] if self._driver else [_DRIVER]

    def adopt(self, addresses: Sequence[int]) -> None:
        """Make calls by the driver."""
        if addresses:
            (self._driver,) = addresses

    def bind(self, at: Addresses) -> Bound:
        """Return what runs the parts on buffers at ``at``."""
        made = [each.bind(at.part(each)) for each in self._instructions]
        point: dict[Tensor, list[Callable[[int], object]]] = {}
        for each in made:
            for tensor, setter in each.point.items():
                point.setdefault(tensor, []).append(setter)
        steps: list[Callable[[], object]] = []
        firsts: list[Item] = []
        begin = 0
        while begin < len(made):
            end = begin
            while self._driver and end < len(made) and _fits(made[end]):
                end += 1
            firsts.append(self.parts[begin])
            if end - begin > 1:
                steps.append(_Calls(self._driver, made[begin:end], self.parts[begin:end]))
            else:
                end = begin + 1
                steps.append(made[begin].call)
            begin = end
        call = steps[0] if len(steps) == 1 else _InTurn(steps, firsts)
        return Bound(call, {tensor: setter_of_all(setters) for tensor, setters in point.items()})


def _fits(made: Bound) -> bool:
    """Whether an instruction is calls of functions on one thread, of which nothing else is to do.

    A call that may refuse something fits where the instruction says what to do then.
    """
    native = made.native
    if native is None or native.inner:
        return False
    if native.refused is None and any(call.report for call in native.calls):
        return False
    return all(_is_bare(call) for call in native.calls)


def _is_bare(call: NativeCall) -> bool:
    bound = not call.late and not call.own and call.held is None
    return bound and call.threads == 1 and not call.checked


class _Calls:
    """Calls kernels by the driver."""

    def __init__(self, driver: int, made: Sequence[Bound], parts: Sequence[Item]) -> None:
        # The tables have but addresses of what these keep.
        self._made = made
        self._parts = parts
        rows = [(i, call) for i, each in enumerate(made) for call in _native_calls(each)]
        # The part of each call, and the first call of each part, and behind the last.
        self._part = [i for i, _ in rows]
        self._first = [self._part.index(i) for i in range(len(made))] + [len(rows)]
        self._silence = np.zeros(1, np.int64)
        self._table = np.zeros((len(rows), _CALL), np.int64)
        for row, (_, call) in zip(self._table, rows, strict=True):
            row[0] = call.function
            row[1 : 1 + len(call.words)] = call.words
            row[-1] = call.report or address(self._silence)
        self._block = np.array([address(self._table), 0, len(rows)], np.int64)
        self._drive = _Driver(driver)
        self._words = address(self._block)

    def __call__(self) -> None:
        stopped = self._drive(self._words)
        if stopped:
            self._go_on(stopped)

    def _go_on(self, stopped: int) -> None:
        """Let a part do what follows where it has refused something, and go on behind it."""
        try:
            while stopped:
                part = self._part[stopped - 1]
                native = self._made[part].native
                assert native is not None
                assert native.refused is not None
                try:
                    native.refused()
                except Exception as error:
                    raise PartError(self._parts[part], error) from error
                self._block[_FIRST] = self._first[part + 1]
                stopped = self._drive(self._words)
        finally:
            self._block[_FIRST] = 0


def _native_calls(made: Bound) -> Sequence[NativeCall]:
    return () if made.native is None else made.native.calls


class _InTurn:
    """Runs parts, or several of them by the driver, one after another."""

    def __init__(self, steps: Sequence[Callable[[], object]], parts: Sequence[Item]) -> None:
        self._steps = steps
        # The part that each step is, or the first of those.
        self._parts = parts

    def __call__(self) -> None:
        at = 0
        try:
            for step in self._steps:
                step()
                at += 1
        except PartError:
            raise
        except Exception as error:
            raise PartError(self._parts[at], error) from error


def in_sequences(items: Sequence[Item], values: Values, region: Region) -> list[Item]:
    """Return the items of a program with sequences in place of short kernels.

    Args:
        items: The items, in order.
        values: Where their tensors are.
        region: What the program computes.
    """
    if region.options.recorder is not None:
        # What is measured runs by itself.
        return list(items)
    return _Sequencing(values, region).run(items)


class _Sequencing:
    def __init__(self, values: Values, region: Region) -> None:
        self._values = values
        self._region = region
        self._early = {values.root(region.outputs[number]) for number in region.early}
        self._out: list[Item] = []
        # What is in the sequence, and what has no work and stands behind it.
        self._parts: list[Item] = []
        self._views: list[Item] = []
        self._made: set[Tensor] = set()
        self._bytes = self._flops = 0

    def run(self, items: Sequence[Item]) -> list[Item]:
        for item in items:
            instruction = item.instruction
            if self._values.is_view(item):
                self._views.append(item)
            elif isinstance(instruction, Instruction) and self._is_short(instruction):
                self._parts.append(item)
                self._made.update(map(self._values.root, instruction.writes))
                full = max(self._bytes / _MOST_BYTES, self._flops / _MOST_FLOPS) > _MOST_KERNELS
                if full or not self._early.isdisjoint(instruction.writes):
                    self._end()
            elif self._goes_before(item):
                self._out.append(item)
            else:
                self._end()
                self._out.append(item)
        self._end()
        return self._out

    def _is_short(self, instruction: Instruction) -> bool:
        if instruction.updates:
            return False
        moved, flops = instruction.moved(), instruction.flops()
        if moved > _MOST_BYTES or flops > _MOST_FLOPS:
            return False
        self._bytes += moved
        self._flops += flops
        return True

    def _goes_before(self, item: Item) -> bool:
        """Whether an item may run before what is in the sequence."""
        if item.instruction is not None or item.op in self._region.reserved:
            return False
        if item.op.type == "ReadVariable":
            # Nothing in the sequence changes a variable.
            return True
        schema = item.op.schema
        waits = schema.stateful or schema.holds or schema.blocking or schema.calls_out
        return not waits and self._made.isdisjoint(map(self._values.root, item.op.inputs))

    def _end(self) -> None:
        parts = self._parts
        if len(parts) > 1:
            ops = tuple(op for item in parts for op in item.ops)
            parts = [Item(ops, CallSequence(parts), parts[-1].place)]
        self._out += [*parts, *self._views]
        self._parts, self._views = [], []
        self._made.clear()
        self._bytes = self._flops = 0
