"""Instructions that run generated kernels on blocks of numbers, plain kernels until then."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace_cpu.native.memory import Array, view
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import open_mp
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.windows.text import TEAM

Interpret = Callable[..., Array]


class Call:
    """A kernel's source, the names of its words, and the words that are known.

    Args:
        source: The kernel.
        words: The names of its words behind those of the team.
        tensors: Words that are addresses of tensors.
        scratch: Words that are addresses in scratch memory, as offsets.
        numbers: The other words.
    """

    def __init__(
        self,
        source: KernelSource,
        words: Sequence[str],
        *,
        tensors: Mapping[str, Tensor],
        scratch: Mapping[str, int],
        numbers: Mapping[str, int],
    ) -> None:
        self.source = source
        self._place = {name: i for i, name in enumerate((*TEAM, *words))}
        self._tensors = tensors
        self._scratch = scratch
        self._numbers = numbers

    def block(self, threads: int, at: Addresses) -> Block:
        """Return the kernel's block, for so many threads."""
        block = Block(len(self._place), at)
        if threads > 1:
            block.bind_team(*map(TEAM.index, ("number_of", "count_of", "barrier")))
            block.words[TEAM.index("most")] = threads
        for name, number in self._numbers.items():
            block.words[self._place[name]] = number
        for name, offset in self._scratch.items():
            block.bind_scratch(self._place[name], offset)
        for name, tensor in self._tensors.items():
            block.bind(tensor, self._place[name])
        return block


class WindowInstruction(Instruction):
    """Runs kernels one after the other; before ``prepare`` the plain kernel of its operation.

    Args:
        op: What it computes.
        reads: Tensors that the kernels read.
        interpret: The plain kernel, of the arrays of all inputs.
        threads: How many threads run the kernels.
    """

    def __init__(
        self, op: Operation, reads: Sequence[Tensor], interpret: Interpret, threads: int
    ) -> None:
        self.ops = (op,)
        self.reads = tuple(dict.fromkeys(reads))
        self.writes = (op.outputs[0],)
        self._op = op
        self._interpret = interpret
        self._threads = threads if open_mp() is not None else 1
        self._addresses: list[int] | None = None

    @abstractmethod
    def calls(self) -> Sequence[Call]:
        """Return what is called."""

    def around(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return a call with what must happen before and after it."""
        return call

    def kernels(self) -> Sequence[KernelSource]:
        """Return the kernels."""
        return [call.source for call in self.calls()]

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run the kernels."""
        self._addresses = list(addresses)

    def source(self) -> str:
        """Return the sources of the kernels."""
        return "\n".join(call.source.text for call in self.calls())

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        if self._addresses is None:
            return self._bind_plain(at)
        blocks = [call.block(self._threads, at) for call in self.calls()]
        runs = [
            block.launch(address, self._threads)
            for address, block in zip(self._addresses, blocks, strict=True)
        ]
        call = runs[0] if len(runs) == 1 else partial(_run, runs)
        return bound(self.around(call), blocks, (*self.reads, *self.writes), at)

    def _bind_plain(self, at: Addresses) -> Bound:
        tensors = (*self.reads, *self.writes)
        where = {tensor: at.of(tensor) for tensor in tensors}
        point = {t: partial(where.__setitem__, t) for t in tensors if where[t] is None}

        def array(tensor: Tensor) -> Any:
            shape = tuple(d or 0 for d in tensor.spec.shape.dims or ())
            if tensor not in where:
                # The sizes of a tensor; the kernels know them.
                return np.array(self._sizes(), tensor.dtype.numpy)
            place = where[tensor]
            assert place is not None
            return view(place, shape, tensor.dtype.numpy, self)

        def run() -> None:
            with np.errstate(all="ignore"):
                found = self._interpret(np, *map(array, self._op.inputs), **self._op.attrs)
                np.copyto(array(self.writes[0]), found)

        return Bound(run, point)

    def _sizes(self) -> tuple[int, ...]:
        return tuple(d or 0 for d in self.writes[0].spec.shape.dims or ())


def _run(runs: Sequence[Callable[[], object]]) -> None:
    """Call kernels one after the other."""
    for run in runs:
        run()
