"""Loops run at one go: what is set up before the first round, and the slices of rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, final

from headrace import Tensor
from headrace.extend.devices import LoopForm
from headrace_cpu.native.memory import Array, address
from headrace_cpu.native.threads import Share
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.program.lifetimes import Places
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values
from headrace_cpu.rounds.body import Body, Unfit, read
from headrace_cpu.rounds.columns import Misfit
from headrace_cpu.rounds.cycle import Cycle, CycleRun
from headrace_cpu.rounds.driver import Table, Turns, driver
from headrace_cpu.rounds.run import LoopRun, Placed

# A slice should take so long: it cannot be interrupted. The first one is short, as nobody knows yet
# how long a round takes.
_SLICE_S, _FIRST_ROUNDS = 0.005, 4
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
        self.body = read(region, items, values, form)
        self.share = share
        self.drive = driver()
        left_out = self.body.left_out
        self._items = [i for i in items if i.instruction is not None and i not in left_out]
        self._places = places
        self._arena = arena
        # How many seconds a round took last, 0.0 while nobody knows.
        self.pace = 0.0
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
        many = int(_SLICE_S / self.pace) if self.pace else _FIRST_ROUNDS
        many = max(many, 1)
        return many if left is None else min(left, many)

    def drive_rounds(self, instance: Instance, rows: Array, many: Turns) -> tuple[int, bool]:
        """Make rounds; return how many were made, and whether none failed."""
        share, table = self.share, instance.table
        threads = share.enter()
        began = perf_counter()
        try:
            # A library was prepared for as many threads as a step has that runs alone.
            if threads != share.threads and table.own:
                return 0, False
            made, fine = table.run(self.drive, rows, threads, many)
        finally:
            share.leave()
        self.pace = (perf_counter() - began) / max(made, 1)
        return made, fine

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
        natives = [bound.native for bound in self._bound if bound.native is not None]
        self.table = Table(natives, program.share.threads, program.body.going)
        self.cycle = Cycle.of(program.body, self.table.columns)
