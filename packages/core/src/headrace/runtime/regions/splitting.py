"""Splitting a region at operations that take long, so that these run in parallel.

A region runs one operation after the other. Where it has some that a kernel of their own computes,
take long, leave cores to others and do not wait for each other (``timing.py``), its graph is
planned anew with these running by themselves, and ``parallel.py`` sees to the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import StepGraph
from headrace.runtime.profiling.timing import LONG_S, RUNS, Timing, saved_s

# Fewer elements than these are not worth a look; where it is not known how many, it may be many.
_FEW = 1024

Program = Callable[[Sequence[Any]], list[Any]]


@final
class KernelTimings:
    """Measures the kernels of a region's operations."""

    def __init__(self) -> None:
        """Begin without any."""
        self.found: dict[Operation, Timing] = {}
        self._over = False

    def watched(self, op: Operation, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call of an operation, measured until it is decided what becomes of it."""
        # A kernel that says where it may compute has threads of its own.
        if self._over or hasattr(call, "within") or not _may_be_many(op):
            return call
        timing = self.found.setdefault(op, Timing())

        def measured(*values: Any) -> Any:
            return call(*values) if self._over else timing.measured(call, *values)

        return measured

    def decide(self, step: StepGraph) -> frozenset[Operation]:
        """Return the operations of a region's graph that should run by themselves; measure none."""
        self._over = True
        long = {op: timing for op, timing in self.found.items() if timing.long}
        if len(long) < 2 or saved_s(step.graph.operations, _needs, long) < LONG_S / 2:
            return frozenset()
        return frozenset(long)


@final
class MeasuredProgram:
    """A program in its first runs, before it is decided whether its region is split.

    Attributes:
        program: The program.
    """

    def __init__(
        self,
        program: Program,
        timings: KernelTimings,
        step: StepGraph,
        split: Callable[[StepGraph, frozenset[Operation]], Program],
        settle: Callable[[MeasuredProgram, Program], None],
    ) -> None:
        """Measure a program.

        Args:
            program: The program.
            timings: Measures its kernels.
            step: The region's graph.
            split: Returns a program in which operations run by themselves.
            settle: Called with this and the program to run from then on.
        """
        self.program = program
        self._timings = timings
        self._step = step
        self._split = split
        self._settle = settle
        self._runs = 0

    def __call__(self, values: Sequence[Any], /) -> list[Any]:
        """Run it."""
        results = self.program(values)
        self._runs += 1
        if self._runs == RUNS:
            apart = self._timings.decide(self._step)
            self._settle(self, self._split(self._step, apart) if apart else self.program)
        return results


def bare(program: Program) -> Program:
    """Return a program without what measures it."""
    return program.program if isinstance(program, MeasuredProgram) else program


def _needs(op: Operation) -> list[Operation]:
    return [*(t.op for t in op.inputs), *op.control_inputs]


def _may_be_many(op: Operation) -> bool:
    return any(map(_many, (*op.inputs, *op.outputs)))


def _many(tensor: Tensor) -> bool:
    if tensor.dtype.kind in ("resource", "list"):
        return False
    count = tensor.spec.shape.num_elements()
    return count is None or count >= _FEW
