"""Instructions that run one generated kernel on the threads of the pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import numpy as np

from headrace.graph.tensor import Tensor
from headrace_cpu.native.assembly import COUNTER_WORDS, counter_in
from headrace_cpu.native.build import KernelSource, build
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import launch
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

    def prepare(self) -> None:
        """Compile the kernel, or take it from the cache."""
        if self._address is None:
            self._address = build([self._kernel.source()])[0]

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        if self._address is None or not self.ready:
            return self._instead.bind(at)
        names = self._kernel.words
        words = np.zeros(len(names) + COUNTER_WORDS, np.int64)
        if self.scratch:
            words[names.index("scratch")] = at.scratch()
        if "counter" in names:
            words[names.index("counter")] = counter_in(address(words), len(words))
        places: dict[Tensor, list[int]] = {}
        for word, tensor in self._operands.items():
            places.setdefault(tensor, []).append(names.index(word))
        point: dict[Tensor, Callable[[int], object]] = {}
        for tensor in (*self.reads, *self.writes):
            indices, known = places.get(tensor, []), at.of(tensor)
            if known is None:
                point[tensor] = partial(_put, words, indices)
            else:
                words[indices] = known
        run = launch(self._address, address(words), self._threads)
        # The kernel knows the block's address only.
        return Bound(partial(_keeping, run, words), point)


def _put(words: np.ndarray, indices: list[int], place: int) -> None:
    words[indices] = place


def _keeping(run: Callable[[], object], _: object) -> None:
    run()
