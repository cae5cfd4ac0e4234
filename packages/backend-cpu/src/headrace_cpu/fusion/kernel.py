"""Fused kernels as instructions of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, final

from headrace import Operation, Tensor
from headrace_cpu.fusion.bands import find_bands
from headrace_cpu.fusion.build import Builder, Unfit
from headrace_cpu.fusion.constants import (
    BARRIER_WORD,
    COUNT_WORD,
    FIRST_WORD,
    REPORT_WORD,
    THREAD_WORD,
)
from headrace_cpu.fusion.emit import write_kernel
from headrace_cpu.fusion.fusion_group import writes_of
from headrace_cpu.fusion.hazards import check_updates, reusable
from headrace_cpu.fusion.interpret import data_inputs
from headrace_cpu.fusion.nodes import Check, uniform_value
from headrace_cpu.fusion.periods import widen
from headrace_cpu.fusion.schedule import Schedule, make_schedule, own_cost
from headrace_cpu.fusion.space import make_space
from headrace_cpu.fusion.vocabulary import ELEMENTARY_FUNCTIONS
from headrace_cpu.native.memory import view
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.program.interpreted import interpreted

# What NumPy takes for an addition of many elements; measured between 0.4 and 1.0.
_PLAIN_ADDITION_S = 0.5e-9
# Additions that a thread should have to do, at least, for the sake of waking it.
_WORTH_A_THREAD = 1 << 19


@final
class FusedKernel(Instruction):
    """Operations that one generated kernel computes.

    Until it is prepared, it runs them one by one with the plain kernels.
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        builder: Builder,
        wanted: Sequence[Tensor],
        threads: int = 1,
        name: str = "fused",
    ) -> None:
        """Generate the source.

        Args:
            ops: The operations, in an order in which they can run.
            builder: Their nodes.
            wanted: Which of their outputs others read.
            threads: How many threads it may use.
            name: What it is called in the program's source.

        Raises:
            Unfit: if what it updates in place is read in an order that no kernel keeps.
        """
        self.ops = tuple(ops)
        self.name = name
        self.writes = tuple(wanted)
        self.updates = tuple(builder.updates)
        made = {tensor for op in ops for tensor in op.outputs}
        # The plain kernels read these; the generated one perhaps not all of them.
        outside = dict.fromkeys(t for op in ops for t in data_inputs(op) if t not in made)
        self.reads = tuple(t for t in outside if not builder.literal or uniform_value(t) is None)
        space = make_space(builder, writes_of(builder, wanted), builder.checks)
        widen(space)
        try:
            self._write(make_schedule(space), threads)
        except Unfit:
            # What is computed in fewer nests reads each variable in fewer orders.
            self._write(make_schedule(space, again=True), threads)
        self.checks = tuple(builder.checks)
        # What a check refuses is shown afterwards: it must still be there.
        shown = {check.indices for check in self.checks}
        pairs = reusable(self.schedule, self.kernel, self.writes)
        self.reuses = tuple(pair for pair in pairs if pair[1] not in shown)
        self.scratch = self.kernel.layout.place(self.threads)
        self._address: int | None = None

    def _write(self, schedule: Schedule, threads: int) -> None:
        """Write the kernel of a schedule, and refuse what it updates in no order that is right."""
        self.schedule = schedule
        self.work = _work(schedule)
        self.threads = max(1, min(threads, self.work // _WORTH_A_THREAD))
        schedule.bands = find_bands(schedule, self.threads)
        self.kernel = write_kernel(schedule, "fused")
        check_updates(schedule, self.kernel)

    def bind(self, at: Addresses) -> Bound:
        """Return the kernel on its block, or what runs the operations one by one."""
        if self._address is None:
            return interpreted(self, self.ops, at)
        return _native(self, self._address, at)

    def kernels(self) -> Sequence[KernelSource]:
        """Return the kernel."""
        if self._address is not None:
            return []
        return [KernelSource("fused", self.kernel.text, vocabulary=ELEMENTARY_FUNCTIONS)]

    def plain_seconds(self) -> float:
        """Return about how long the plain kernels take."""
        return 0.0 if self._address is not None else self.work * _PLAIN_ADDITION_S

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run the kernel."""
        for address in addresses:
            self._address = address

    def flops(self) -> int:
        """Return how many operations on numbers it does, functions counted as one."""
        sizes = self.schedule.space.sizes
        return sum(
            prod(sizes[dim] for dim in value.iterates)
            for value in self.schedule.space.values
            if value.kind in ("map", "reduce")
        )

    def bytes(self) -> int:
        """Return how many bytes of tensors it reads and writes."""
        total = 0
        for tensor in (*self.reads, *self.writes, *self.updates, *self.updates):
            content = tensor.spec.content
            spec = tensor.spec if content is None else content
            total += prod(spec.shape.known) * spec.dtype.numpy.itemsize
        return total

    def source(self) -> str:
        """Return the generated Python, with a comment that says what it computes."""
        sizes = self.schedule.space.sizes
        layout = self.kernel.layout
        lines = ["# " + ", ".join(op.type for op in self.ops)]
        numbers = ", ".join(f"{layout.names[i]}={n}" for i, n in layout.numbers.items())
        domain = " x ".join(map(str, sizes)) or "scalar"
        lines.append(f"# space {domain}" + (f", with {numbers}" if numbers else ""))
        nests = "; ".join(
            "x".join(str(sizes[d]) for d in nest.dims) + f" in {max(nest.phases, 1)} phases"
            if nest.dims
            else "scalar"
            for nest in self.schedule.nests
        )
        lines.append(f"# nests: {nests}")
        for tensor, offset in layout.tensors:
            name = layout.names[layout.tensors[tensor, offset]]
            shift = f" + {offset} bytes" if offset else ""
            lines.append(f"# {name}: {tensor.name}{shift}")
        lines.append(
            f"# {self.bytes()} bytes, {self.flops()} flops, {self.scratch} bytes of scratch, "
            f"{self.threads} threads"
        )
        return "\n".join(lines) + "\n\n" + self.kernel.text


def _work(schedule: Schedule) -> int:
    sizes = schedule.space.sizes
    return sum(
        prod(sizes[dim] for dim in value.iterates) * max(1, own_cost(value))
        for value in schedule.space.values
        if value.kind in ("map", "reduce", "load")
    )


def _native(kernel: FusedKernel, address: int, at: Addresses) -> Bound:
    layout = kernel.kernel.layout
    block = Block(FIRST_WORD + len(layout.names), at)
    if kernel.threads > 1:
        block.bind_team(THREAD_WORD, COUNT_WORD, BARRIER_WORD)
    for index, number in layout.numbers.items():
        block.words[FIRST_WORD + index] = number
    for index, piece in layout.pieces.items():
        block.bind_scratch(FIRST_WORD + index, piece.offset)
    words: dict[Tensor, list[tuple[int, int]]] = {}
    for (tensor, offset), index in layout.tensors.items():
        block.bind(tensor, FIRST_WORD + index, offset)
        words.setdefault(tensor, []).append((FIRST_WORD + index, offset))
    call = block.launch(address, kernel.threads)
    if kernel.checks:
        native = replace(call.__dict__["native"], report=block.address + 8 * REPORT_WORD)
        refused = functools.partial(_refuse, block.words, kernel.checks, words)
        call = functools.partial(_checked, call, block.words, refused)
        call.__dict__.update(native=native, refused=refused)
    return bound(call, [block], (*kernel.reads, *kernel.writes, *kernel.updates), at)


def _checked(call: Callable[[], object], block: Any, refused: Callable[[], object]) -> None:
    call()
    if block[REPORT_WORD]:
        refused()


def _refuse(
    block: Any, checks: Sequence[Check], words: Mapping[Tensor, Sequence[tuple[int, int]]]
) -> None:
    """Say what is wrong where a kernel has reported it."""
    failed = int(block[REPORT_WORD])
    block[REPORT_WORD] = 0
    check = checks[failed - 1]
    given = check.indices
    if given is None or given not in words:
        raise check.error(check.message)
    word, offset = words[given][0]
    seen = view(int(block[word]) - offset, given.shape.known, given.dtype.numpy, None)
    wrong = seen[(seen < 0) | (seen >= check.size)]
    raise check.error(f"index {wrong[0]} is out of range: {check.message}")
