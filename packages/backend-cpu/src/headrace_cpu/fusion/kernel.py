"""Fused kernels as instructions of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, final

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.fusion.build import Builder
from headrace_cpu.fusion.emit import write_kernel
from headrace_cpu.fusion.hazards import check_updates, reusable
from headrace_cpu.fusion.interpret import data_inputs, interpret
from headrace_cpu.fusion.nodes import Check, uniform_value
from headrace_cpu.fusion.region import writes_of
from headrace_cpu.fusion.schedule import Schedule, make_schedule, own_cost
from headrace_cpu.fusion.space import make_space
from headrace_cpu.fusion.words import (
    BARRIER_WORD,
    COUNT_WORD,
    FIRST_WORD,
    REPORT_WORD,
    THREAD_WORD,
)
from headrace_cpu.native.memory import view
from headrace_cpu.program.instruction import Addresses, Bound, Instruction

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
        self.reads = tuple(t for t in outside if uniform_value(t) is None)
        space = make_space(builder, writes_of(builder, wanted), builder.checks)
        self.schedule = make_schedule(space)
        self.kernel = write_kernel(self.schedule, "fused")
        check_updates(self.schedule, self.kernel)
        self.checks = tuple(builder.checks)
        # What a check refuses is shown afterwards: it must still be there.
        shown = {check.indices for check in self.checks}
        pairs = reusable(self.schedule, self.kernel, self.writes)
        self.reuses = tuple(pair for pair in pairs if pair[1] not in shown)
        self.work = _work(self.schedule)
        self.threads = max(1, min(threads, self.work // _WORTH_A_THREAD))
        self.scratch = self.kernel.layout.place(self.threads)
        self._address: int | None = None

    def bind(self, at: Addresses) -> Bound:
        """Return the kernel on its block, or what runs the operations one by one."""
        if self._address is None:
            return _interpreted(self, at)
        return _native(self, self._address, at)

    def prepare(self) -> None:
        """Compile the kernel, or take it from the cache."""
        if self._address is None:
            from headrace_cpu.native.build import KernelSource, build

            self._address = build([KernelSource("fused", self.kernel.text, "kernel")])[0]

    def flops(self) -> int:
        """Return how many operations on numbers it does, functions counted as one."""
        sizes = self.schedule.space.sizes
        return sum(
            prod(sizes[dim] for dim in value.iterates)
            for value in self.schedule.space.values
            if value.kind in ("map", "fold")
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
        if value.kind in ("map", "fold", "load")
    )


class _Tensors:
    """Where tensors are, told when bound or in each step."""

    def __init__(self, kernel: FusedKernel, at: Addresses) -> None:
        self.kernel = kernel
        self.addresses: dict[Tensor, int] = {}
        self.point: dict[Tensor, Callable[[int], object]] = {}
        for tensor in dict.fromkeys((*kernel.reads, *kernel.writes, *kernel.updates)):
            found = at.of(tensor)
            if found is None:
                self.point[tensor] = functools.partial(self.addresses.__setitem__, tensor)
            else:
                self.addresses[tensor] = found

    def array(self, tensor: Tensor) -> Any:
        """Return a tensor's memory as an array."""
        content = tensor.spec.content
        spec = tensor.spec if content is None else content
        return view(self.addresses[tensor], spec.shape.known, spec.dtype.numpy, None)

    def run(self) -> None:
        """Run the operations."""
        kernel = self.kernel
        buffers = {t: self.array(t) for t in (*kernel.writes, *kernel.updates)}
        interpret(kernel.ops, self.array, buffers, kernel.writes)


def _interpreted(kernel: FusedKernel, at: Addresses) -> Bound:
    tensors = _Tensors(kernel, at)
    return Bound(tensors.run, tensors.point)


def _native(kernel: FusedKernel, address: int, at: Addresses) -> Bound:
    from headrace_cpu.native.threads import launch, open_mp

    layout: Any = kernel.kernel.layout
    block = np.zeros(FIRST_WORD + len(layout.names), np.int64)
    pool = open_mp() if kernel.threads > 1 else None
    threads = kernel.threads if pool is not None else 1
    if pool is not None:
        block[COUNT_WORD] = pool.symbols["omp_get_num_threads"]
        block[THREAD_WORD] = pool.symbols["omp_get_thread_num"]
        block[BARRIER_WORD] = pool.symbols["GOMP_barrier"]
    for index, number in layout.numbers.items():
        block[FIRST_WORD + index] = number
    if kernel.scratch:
        start = at.scratch()
        for index, piece in layout.pieces.items():
            block[FIRST_WORD + index] = start + piece.offset
    point: dict[Tensor, Callable[[int], object]] = {}
    words: dict[Tensor, list[tuple[int, int]]] = {}
    for (tensor, offset), index in layout.tensors.items():
        words.setdefault(tensor, []).append((FIRST_WORD + index, offset))
    for tensor in dict.fromkeys((*kernel.reads, *kernel.writes, *kernel.updates)):
        places = words.get(tensor, [])
        found = at.of(tensor)
        setter = _setter(block, places)
        if found is None:
            point[tensor] = setter
        else:
            setter(found)
    call: Any = launch(address, block.ctypes.data, threads)
    if kernel.checks:
        call = functools.partial(_checked, call, block, kernel.checks, words)
    else:
        # The kernel knows the block's address only.
        call = call if _keeps(call, block) else functools.partial(_holding, call, block)
    return Bound(call, point)


def _keeps(call: Any, block: Any) -> bool:
    try:
        call.block = block
    except AttributeError:
        return False
    return True


def _holding(call: Callable[[], object], block: Any) -> None:
    call()


def _setter(block: Any, places: Sequence[tuple[int, int]]) -> Callable[[int], object]:
    if len(places) == 1 and not places[0][1]:
        return functools.partial(block.__setitem__, places[0][0])

    def point(address: int) -> None:
        for index, offset in places:
            block[index] = address + offset

    return point


def _checked(
    call: Callable[[], object],
    block: Any,
    checks: Sequence[Check],
    words: Mapping[Tensor, Sequence[tuple[int, int]]],
) -> None:
    call()
    failed = int(block[REPORT_WORD])
    if failed:
        block[REPORT_WORD] = 0
        check = checks[failed - 1]
        given = check.indices
        if given is None or given not in words:
            raise check.error(check.message)
        word, offset = words[given][0]
        seen = view(int(block[word]) - offset, given.shape.known, given.dtype.numpy, None)
        wrong = seen[(seen < 0) | (seen >= check.size)]
        raise check.error(f"index {wrong[0]} is out of range: {check.message}")
