"""Instructions that run the plain kernels of their operations on buffers, until others can."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from headrace import Operation, Tensor
from headrace_cpu.fusion.interpret import data_inputs, interpret
from headrace_cpu.native.memory import view
from headrace_cpu.program.instruction import Addresses, Bound, Instruction


def interpreted(instruction: Instruction, ops: Sequence[Operation], at: Addresses) -> Bound:
    """Return what computes operations one by one on the buffers of an instruction."""
    tensors = _Tensors(instruction, ops, at)
    return Bound(tensors.run, tensors.point)


class Interpreted(Instruction):
    """Runs operations one by one with the plain kernels."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        """Describe it.

        Args:
            ops: The operations, in an order in which they can run; only the last is read by others.
        """
        self.ops = tuple(ops)
        made = {tensor for op in ops for tensor in op.outputs}
        outside = dict.fromkeys(t for op in ops for t in data_inputs(op) if t not in made)
        self.reads = tuple(outside)
        self.writes = ops[-1].outputs

    def bind(self, at: Addresses) -> Bound:
        """Return what runs the operations on buffers at ``at``."""
        return interpreted(self, self.ops, at)


class _Tensors:
    """Where tensors are, told when bound or in each step."""

    def __init__(self, instruction: Instruction, ops: Sequence[Operation], at: Addresses) -> None:
        self.ops = ops
        self.instruction = instruction
        self.addresses: dict[Tensor, int] = {}
        self.point: dict[Tensor, Callable[[int], object]] = {}
        named = (*instruction.reads, *instruction.writes, *instruction.updates)
        for tensor in dict.fromkeys(named):
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
        instruction = self.instruction
        buffers = {t: self.array(t) for t in (*instruction.writes, *instruction.updates)}
        interpret(self.ops, self.array, buffers, instruction.writes)
