"""Instructions that run one generated kernel on the threads of the pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace import Tensor
from headrace_cpu.native.assembly import COUNTER_WORDS, counter_in
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import Addresses, Bound, Instruction


class Kernel(Protocol):
    """A kernel that is written for sizes."""

    @property
    def words(self) -> tuple[str, ...]:
        """What the words of its block are the addresses of.

        Besides tensors there may be ``scratch``, its scratch memory, and ``counter``, see
        ``Assembly.taken``.
        """

    @property
    def flops(self) -> int:
        """Floating-point operations."""

    @property
    def title(self) -> str:
        """What it is, for people."""

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""

    def source(self) -> KernelSource:
        """Return its source."""


class KernelInstruction(Instruction):
    """Runs a generated kernel.

    Until it is prepared, and where it cannot be, another instruction does the work: kernels take a
    tenth to a third of a second to compile.
    """

    def __init__(
        self,
        kernel: Kernel,
        operands: Mapping[str, Tensor],
        result: str,
        *,
        name: str,
        threads: int,
        instead: Instruction,
    ) -> None:
        """Describe it.

        Args:
            kernel: What is computed.
            operands: The tensor of each word of the kernel's block that is one.
            result: The word whose tensor is written.
            name: Its name.
            threads: How many threads it may use.
            instead: What computes the same until it is prepared.
        """
        self.ops = instead.ops
        self.name = name
        self.reads = tuple(dict.fromkeys(t for w, t in operands.items() if w != result))
        self.writes = (operands[result],)
        self.scratch = max(kernel.scratch(threads), instead.scratch)
        self._kernel = kernel
        self._operands = operands
        self._threads = threads
        self._instead = instead
        self._address: int | None = None

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self._kernel.flops

    def source(self) -> str:
        """Return what computes it."""
        return self._kernel.title

    @property
    def ready(self) -> bool:
        """Whether the kernel is what computes it."""
        return self._address is not None

    def kernels(self) -> Sequence[KernelSource]:
        """Return the kernel."""
        return [self._kernel.source()] if self._address is None else []

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run the kernel."""
        for address in addresses:
            self._address = address

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        if self._address is None or not self.ready:
            return self._instead.bind(at)
        names = self._kernel.words
        block = Block(len(names) + COUNTER_WORDS, at)
        if self.scratch:
            block.bind_scratch(names.index("scratch"))
        if "counter" in names:
            counter = counter_in(block.address, len(block.words))
            block.words[names.index("counter")] = counter
        for word, tensor in self._operands.items():
            block.bind(tensor, names.index(word))
        call = block.launch(self._address, self._threads)
        return bound(call, [block], (*self.reads, *self.writes), at)
