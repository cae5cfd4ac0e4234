"""Fused groups as instructions: one kernel or several, started one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, final

from headrace import Operation, Tensor
from headrace_cpu.for_backends import (
    BYTES,
    Builder,
    Refusal,
    Value,
    data_inputs,
    make_schedule,
    make_space,
    uniform_value,
    writes_of,
)
from headrace_cuda.fusion.launches import Launch, write_passes
from headrace_cuda.fusion.passes import Kind, passes_of, reductions_read
from headrace_cuda.fusion.reductions import partials
from headrace_cuda.fusion.writer import Word, wide
from headrace_cuda.program.instruction import CudaInstruction
from headrace_cuda.program.platform import ALIGNMENT, CudaSource, Function, Platform


@final
class FusedKernels(CudaInstruction):
    """Operations that generated kernels compute."""

    def __init__(
        self,
        ops: Sequence[Operation],
        builder: Builder,
        wanted: Sequence[Tensor],
        platform: Platform,
        name: str = "fused",
    ) -> None:
        """Generate the kernels.

        Args:
            ops: The operations, in an order in which they can run.
            builder: Their nodes.
            wanted: Which of their outputs others read.
            platform: The GPU.
            name: What it is called in the program's source.

        Raises:
            Unfit: if what it updates in place is read in an order that no kernel keeps.
        """
        self.ops = tuple(ops)
        self.name = name
        self.writes = tuple(wanted)
        self.updates = tuple(builder.updates)
        self._checks = tuple(builder.checks)
        space = make_space(builder, writes_of(builder, wanted), builder.checks)
        self._space = space
        # What is cheap to compute twice is not kept: memory is what kernels of a GPU wait for.
        passes = passes_of(make_schedule(space, keeps=False))
        homes = {value for step in passes for value in reductions_read(step)}
        homes |= {r.value for p in passes if p.kind is Kind.REDUCE for r in p.roots}
        self._homes = frozenset(homes)
        self._places: dict[Word, int] = {}
        for value in homes:
            self._reserve(Word(value), value.code, value)
        self._passes = [(step, partials(step, space, platform.processors)) for step in passes]
        for step, parts in self._passes:
            for root in step.roots if parts > 1 else ():
                word = Word(root.value, partial=True)
                self._reserve(word, wide(root.value), root.value, parts)
        self.launches = self._written(guarded=False)
        read = {w.of for each in self.launches for w in each.words if isinstance(w.of, Tensor)}
        made = {tensor for op in ops for tensor in op.outputs}
        outside = dict.fromkeys(t for op in ops for t in data_inputs(op) if t not in made)
        self.reads = tuple(t for t in outside if t in read and uniform_value(t) is None)
        self._functions: Mapping[str, Function] = {}

    def _written(self, *, guarded: bool) -> list[Launch]:
        return write_passes(self._passes, self._space, self._homes, guarded=guarded)

    def _reserve(self, word: Word, code: str, value: Value, times: int = 1) -> None:
        count = prod(self._space.sizes[d] for d in value.dims)
        self._places[word] = self.scratch
        self.scratch += -(-count * times * BYTES[code] // ALIGNMENT) * ALIGNMENT

    @property
    def checks(self) -> Sequence[Refusal]:
        """What no element may be."""
        return self._checks

    def guard(self) -> None:
        """Change no variable where a check before it has failed."""
        if self.updates:
            self.launches = self._written(guarded=True)

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernels."""
        return [launch.source for launch in self.launches]

    def load(self, functions: Mapping[str, Function]) -> None:
        """Take the kernels."""
        self._functions = functions

    def start(self, at: Callable[[Any], int], scratch: int) -> None:
        """Start the kernels."""
        for launch in self.launches:
            words = [
                scratch + self._places[word] if isinstance(word.of, Value) else at(word.of)
                for word in launch.words
            ]
            self._functions[launch.source.name](launch.grid, launch.block, *words)

    def flops(self) -> int:
        """Return how many operations on numbers it does, functions counted as one."""
        sizes = self._space.sizes
        return sum(
            prod(sizes[dim] for dim in value.iterates)
            for value in self._space.values
            if value.kind in ("map", "reduce")
        )

    def source(self) -> str:
        """Return the kernels in CUDA C++."""
        head = "// " + ", ".join(op.type for op in self.ops) + "\n"
        return head + "\n".join(launch.source.text for launch in self.launches)


class FusedMaker:
    """Makes the fused kernels of a region."""

    def __init__(self, platform: Platform) -> None:
        """Make them for a GPU."""
        self._platform = platform

    def kernel(
        self,
        ops: Sequence[Operation],
        builder: Callable[[], Builder],
        wanted: Sequence[Tensor],
        settings: object,
        name: str,
    ) -> FusedKernels:
        """Return the kernels of operations.

        Args:
            ops: The operations.
            builder: Returns their nodes.
            wanted: Which of their outputs others read.
            settings: Not used: what they go by is known.
            name: What it is called.

        Raises:
            Unfit: if no kernels compute them together.
        """
        return FusedKernels(ops, builder(), wanted, self._platform, name)
