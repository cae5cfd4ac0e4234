"""Instructions that follow plans: on the threads of the step, in its buffers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace_cpu.lapack import driver
from headrace_cpu.lapack.plan import Plan, Reports
from headrace_cpu.lapack.run import follow
from headrace_cpu.native.memory import Array, address, view
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import launch
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import Addresses, Bound, Instruction

# Computes an operation where its plan fails: of arrays, for the results or the error.
Otherwise = Callable[..., Any]

# Below so many operations a second thread is not worth being woken.
_SERIAL_FLOPS = 1_000_000


class LapackInstruction(Instruction):
    """Computes an operation on matrices by its plan, and where that fails by NumPy's kernel."""

    def __init__(
        self, op: Operation, plan: Plan, otherwise: Otherwise, *, name: str, threads: int
    ) -> None:
        """Describe it.

        Args:
            op: The operation.
            plan: How it is computed.
            otherwise: NumPy's kernel, which raises what is to be raised.
            name: Its name.
            threads: How many threads it may use.
        """
        self.ops = (op,)
        self.reads = tuple(dict.fromkeys(op.inputs))
        self.writes = op.outputs[: len(plan.outputs)]
        self.name = name
        self._plan = plan
        self._otherwise = otherwise
        self._threads = threads if plan.flops >= _SERIAL_FLOPS else 1
        self.scratch = plan.scratch(self._threads)
        self._kernel: int | None = None

    def flops(self) -> int:
        """Return how many floating-point operations it does, about."""
        return self._plan.flops

    def source(self) -> str:
        """Return what computes it."""
        return f"LAPACK of {self._plan.table.lapack.blas.path}, on {self._threads} threads"

    def kernels(self) -> Sequence[KernelSource]:
        """Return the kernel that makes the calls; until it is there Python makes them."""
        return [driver.source()] if self._kernel is None else []

    def adopt(self, addresses: Sequence[int]) -> None:
        """Let the kernel make the calls."""
        for each in addresses:
            self._kernel = each

    def bind(self, at: Addresses) -> Bound:
        """Return what computes it on buffers at ``at``."""
        (op,) = self.ops
        # The address of a table, then the bases: 0, operands, scratch memory.
        operands = (*op.inputs, *self.writes)
        block = Block(3 + len(operands), at)
        for word, tensor in enumerate(operands, 2):
            block.bind(tensor, word)
        if self.scratch:
            block.bind_scratch(2 + len(operands))
        seen: dict[int, Reports] = {}
        call = block.kept(functools.partial(self._run, block.words, self._launched(block), seen))
        return bound(call, [block], (*self.reads, *self.writes), at)

    def _launched(self, block: Block) -> Callable[[], object] | None:
        if self._kernel is None:
            return None
        call = launch(self._kernel, block.address, self._threads)
        return self._plan.table.lapack.blas.alone(call)

    def _run(
        self, words: Array, launched: Callable[[], object] | None, seen: dict[int, Reports]
    ) -> None:
        plan = self._plan
        bases = words[1:].tolist()
        done = (
            follow(plan, bases, self._arrays(bases, self.writes, len(self.ops[0].inputs)))
            if launched is None
            else self._launch(words, bases, launched, seen)
        )
        if not done:
            self._again(bases)

    def _launch(
        self,
        words: Array,
        bases: list[int],
        launched: Callable[[], object],
        seen: dict[int, Reports],
    ) -> bool:
        plan, scratch = self._plan, bases[-1]
        reports = seen.get(scratch)
        if reports is None:
            # Scratch memory mostly stays where it is.
            seen.clear()
            reports = seen[scratch] = plan.views(scratch)
        if reports.failures is not None:
            reports.failures.fill(0)
        if plan.before is not None:
            words[0] = address(plan.before.words)
            launched()
            if not reports.sound():
                return False
        words[0] = address(plan.table.words)
        launched()
        if not reports.done():
            return False
        if plan.finish is not None:
            plan.finish(reports, self._arrays(bases, self.writes, len(self.ops[0].inputs)))
        return True

    def _arrays(self, bases: list[int], tensors: Sequence[Tensor], before: int) -> list[Array]:
        """Return arrays over the buffers of tensors, which stand behind others."""
        places = bases[1 + before : 1 + before + len(tensors)]
        return [
            view(place, tensor.shape.known, tensor.dtype.numpy, None)
            for place, tensor in zip(places, tensors, strict=True)
        ]

    def _again(self, bases: list[int]) -> None:
        """Let NumPy's kernel compute what could not be."""
        (op,) = self.ops
        with np.errstate(all="ignore"):
            found = self._otherwise(*self._arrays(bases, op.inputs, 0))
        results = found if isinstance(found, tuple) else (found,)
        made = self._arrays(bases, self.writes, len(op.inputs))
        for target, result in zip(made, results, strict=False):
            np.copyto(target, result)
