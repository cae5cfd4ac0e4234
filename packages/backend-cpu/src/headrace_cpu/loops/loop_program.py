"""Programs of loops: what is set up before the first iteration, and the slices of iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, final

from headrace import Operation, Tensor
from headrace.extend.devices import HeldLoop, LoopForm, LoopingProgram, Region
from headrace_cpu.loops.body import Body, Later, Unfit, read
from headrace_cpu.loops.carried_loops import Cycle, CycleRun
from headrace_cpu.loops.columns import Misfit
from headrace_cpu.loops.driver import Table, Turns, driver
from headrace_cpu.loops.loop_run import LoopRun, Placed
from headrace_cpu.loops.nested_loops import LoopWithin
from headrace_cpu.native.memory import Array, address
from headrace_cpu.native.threads import Share
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.program.lifetimes import Places
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values

# A slice should take so long: it cannot be interrupted. The first one is short, as nobody knows yet
# how long a round takes.
SLICE_S, FIRST_BEGUN = 0.005, 4
# So many rounds are prepared for where nobody knows how many there will be.
_LIKELY = 16


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
        items = [_with_loops(item, region, items, values) for item in items]
        self.body = read(region, items, values, form)
        self.share = share
        self.drive = driver()
        left_out = self.body.left_out
        self._items = [i for i in items if i.instruction is not None and i not in left_out]
        self._places = places
        self._arena = arena
        # How many seconds a round took last, 0.0 while nobody knows.
        self.pace = 0.0
        # How many rounds a slice may begin, those of loops inside included.
        self._begins = FIRST_BEGUN
        # How many rounds a run may make that says itself when it ends.
        self.likely = _LIKELY
        # Where everything was in runs that have ended.
        self.placed: list[Placed] = []
        self._free = [Instance(self)]

    def start(self, arguments: Sequence[Any], count: int | None) -> LoopRun | CycleRun | None:
        """Begin a run; None where these arguments do not fit."""
        try:
            instance = self._free.pop()
        except IndexError:
            instance = Instance(self)
        try:
            if instance.cycle is not None:
                return CycleRun(self, instance, instance.cycle, arguments, count)
            return LoopRun(self, instance, arguments, count)
        except (Misfit, MemoryError):
            self.free(instance)
            return None

    def free(self, instance: Instance) -> None:
        """Take an instance back."""
        self._free.append(instance)

    def slice(self, left: int | None) -> int:
        """Return how many rounds a slice makes where so many are left; None is any number."""
        many = int(SLICE_S / self.pace) if self.pace else FIRST_BEGUN
        many = max(many, 1)
        return many if left is None else min(left, many)

    def drive_rounds(self, instance: Instance, rows: Array, many: Turns) -> tuple[int, bool]:
        """Make rounds; return how many were made, and whether none failed."""
        share, table = self.share, instance.table
        budget = self._begins if table.inner else 0
        if budget:
            table.give(budget)
        threads = share.enter()
        began = perf_counter()
        try:
            # A library was prepared for as many threads as a step has that runs alone.
            if threads != share.threads and table.own:
                return 0, False
            made, fine = table.run(self.drive, rows, threads, many)
        finally:
            share.leave()
        seconds = perf_counter() - began
        self.pace = seconds / max(made, 1)
        if budget:
            begun = budget - table.left
            self._begins = max(int(begun * SLICE_S / max(seconds, 1e-9)), 1)
        return made, fine

    def table(self, bound: Sequence[Bound]) -> Table:
        """Return the table of what was bound."""
        natives = [each.native for each in bound if each.native is not None]
        return Table(natives, self.share.threads, self.body.going)

    def bind(self) -> tuple[list[Bound], Any]:
        """Return the instructions bound to buffers of their own, and the buffers' memory."""
        memory = self._arena()
        start = 0 if memory is None else address(memory)
        made = []
        for item in self._items:
            assert isinstance(item.instruction, Instruction)
            at = _Addresses(item.instruction, self.body, self._places, start)
            made.append(item.instruction.bind(at))
            if made[-1].native is None:
                raise Unfit(f"{item.op.type} {item.op.name!r} is called by Python")
        return made, memory


def _with_loops(item: Item, region: Region, items: Sequence[Item], values: Values) -> Item:
    """Return an item, with an instruction if it is a loop that can run without Python."""
    if item.instruction is not None or item.op.type != "While":
        return item
    return Item(item.ops, loop_within(item.op, region, items, values), item.place)


def loop_within(op: Operation, region: Region, items: Sequence[Item], values: Values) -> LoopWithin:
    """Return what runs a loop inside of a region without Python.

    Args:
        op: The loop.
        region: The region.
        items: What its program does.
        values: Where the program's values live.

    Raises:
        Later: if kernels are not there yet.
        Unfit: if it cannot run so.
    """
    held, body, cond = parts_of(op, region)
    return LoopWithin(op, values, held, body, cond, read_in(region, items))


def read_in(region: Region, items: Sequence[Item]) -> set[Tensor]:
    """Return the tensors that a region's program reads or hands back."""
    read = {t for item in items for op in item.ops for t in op.inputs}
    return read.union(region.outputs)


def parts_of(op: Operation, region: Region) -> tuple[HeldLoop, LoopProgram, LoopProgram | None]:
    """Return how a loop inside of a region runs, its body, and its condition where it is asked.

    Raises:
        Later: if kernels are not there yet.
        Unfit: if its rounds do not run at one go.
    """
    held = region.loop(op)
    if held is None:
        raise Unfit(f"the condition of {op.name!r} is asked by itself")
    given = [t.spec for t in op.inputs]
    start = op.arity[0] + op.arity[1]
    cond = None
    if held.cond is not None:
        form = LoopForm(held.cond.feeds, 0, asks=True)
        cond = _rounds(op, held.cond.settled_for(given[:start]), form)
    body = _rounds(op, held.body.settled_for([given[i] for i in held.arguments]), held.form)
    return held, body, cond


def _rounds(op: Operation, program: Any, form: LoopForm) -> LoopProgram:
    found = program.rounds(form) if isinstance(program, LoopingProgram) else None
    if found is None:
        raise Later(f"{op.name!r} has not run yet")
    if isinstance(found, LoopProgram):
        return found
    why = f"{op.name!r} runs round by round: {found}"
    raise Later(why) if program.waits_for_kernels else Unfit(why)


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


class Instance:
    """The tables of one run at a time, and the memory that they know by address."""

    def __init__(self, program: LoopProgram) -> None:
        self._bound, self._memory = program.bind()
        self.table = program.table(self._bound)
        self.cycle = Cycle.of(program.body, self.table.columns)
