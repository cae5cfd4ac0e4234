"""Instructions that convolve by Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.native.build import build
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import launch
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.winograd.forward import Forward
from headrace_cpu.winograd.gradient import Gradient


class WinogradInstruction(Instruction):
    """Computes a convolution, or one of its gradients, by Winograd's algorithm.

    Until it is prepared another instruction does the work, where there is one: the kernel takes a
    third of a second to compile.
    """

    def __init__(
        self,
        kernel: Forward | Gradient,
        operands: Mapping[str, Tensor],
        result: str,
        *,
        ops: tuple[Operation, ...],
        name: str,
        threads: int,
        instead: Instruction | None,
    ) -> None:
        """Describe it.

        Args:
            kernel: What is computed.
            operands: The tensor of each word of the kernel's block that is one.
            result: The word whose tensor is written.
            ops: What it computes.
            name: Its name.
            threads: How many threads it may use.
            instead: What computes the same ops until it is prepared.
        """
        self.ops = ops
        self.name = name
        self.reads = tuple(dict.fromkeys(t for w, t in operands.items() if w != result))
        self.writes = (operands[result],)
        self.scratch = max(kernel.scratch(threads), instead.scratch if instead is not None else 0)
        self._kernel = kernel
        self._operands = operands
        self._threads = threads
        self._instead = instead
        self._address: int | None = None

    def flops(self) -> int:
        """Return how many floating-point operations the direct way takes."""
        return self._kernel.tiling.flops

    def source(self) -> str:
        """Return what computes it."""
        block, tiles = self._kernel.block, self._kernel.tiling.tiles
        return f"Winograd F(2x2, 3x3), {min(block, tiles)} of {tiles} tiles at once"

    def prepare(self) -> None:
        """Compile the kernel, or take it from the cache."""
        if self._address is None:
            self._address = build([self._kernel.source()])[0]

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        if self._address is None:
            if self._instead is not None:
                return self._instead.bind(at)
            self.prepare()
        assert self._address is not None
        names = self._kernel.words
        words = np.zeros(len(names), np.int64)
        words[-1] = at.scratch()
        places: dict[Tensor, list[int]] = {}
        for word, tensor in self._operands.items():
            places.setdefault(tensor, []).append(names.index(word))
        point: dict[Tensor, Callable[[int], object]] = {}
        for tensor, indices in places.items():
            known = at.of(tensor)
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
