"""Runs of instructions that are started as one CUDA graph.

A graph has the addresses with which it was made. Between steps only what is handed in, fetched or
held by a variable may have another address, and in a loop of steps CuPy's pool gives the same ones
again: so a few graphs, by these addresses, serve all steps. What comes with new addresses for the
first time is started instruction by instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from headrace import Operation, Tensor
from headrace_cpu.for_backends import Addresses, Bound, Instruction, ProgramAddresses, Refusal
from headrace_cuda.program.instruction import FAILED, REPORT, CudaInstruction
from headrace_cuda.program.platform import CudaSource, Function, Platform

# Graphs for more combinations of addresses are not kept: each holds memory of the driver.
_MOST_GRAPHS = 8
# Fewer instructions are started as fast one by one.
_LEAST = 2


@dataclass(frozen=True, slots=True)
class Part:
    """An instruction of a graph.

    Attributes:
        instruction: It.
        places: By each of its tensors, the tensor or handle that has the memory.
    """

    instruction: CudaInstruction
    places: Mapping[Tensor, Tensor]


@final
class GraphInstruction(Instruction):
    """Instructions that follow one another, with nothing in between."""

    package = "headrace-backend-cuda"

    def __init__(
        self, parts: Sequence[Part], reads: Sequence[Operation], platform: Platform
    ) -> None:
        """Take instructions together.

        Args:
            parts: In the order in which they run.
            reads: Reads of variables that parts update: who reads such a value takes it out of the
                variable, before the update.
            platform: The GPU.
        """
        self.parts = tuple(parts)
        self._platform = platform
        self.ops = (*reads, *(op for part in parts for op in part.instruction.ops))
        self.writes = tuple(dict.fromkeys(t for p in parts for t in p.instruction.writes))
        self.updates = tuple(dict.fromkeys(t for p in parts for t in p.instruction.updates))
        made = {*self.writes, *self.updates}
        needed = dict.fromkeys(
            place for part in parts for tensor, place in part.places.items() if place not in made
        )
        self.reads = tuple(needed)
        self.name = parts[0].instruction.name if len(parts) == 1 else "graph"
        checked = False
        for part in parts:
            if checked:
                part.instruction.guard()
            checked = checked or bool(part.instruction.checks)

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernels of the parts."""
        return [source for part in self.parts for source in part.instruction.sources()]

    def load(self, functions: Mapping[str, Function]) -> None:
        """Hand the parts their kernels."""
        for part in self.parts:
            part.instruction.load(functions)

    def bind(self, at: Addresses) -> Bound:
        """Return what starts the parts on buffers at ``at``."""
        assert isinstance(at, ProgramAddresses)
        runner = _Runner(self.parts, at, self, self._platform)
        return Bound(runner.run, runner.point)

    def flops(self) -> int:
        """Return how many floating-point operations the parts do."""
        return sum(part.instruction.flops() for part in self.parts)

    def source(self) -> str:
        """Return what the parts run."""
        return "\n".join(filter(None, (part.instruction.source() for part in self.parts)))


class FailedCheckError(Exception):
    """What a check in a graph has found.

    Attributes:
        op: The operation that refuses its inputs.
        error: What it says.
    """

    def __init__(self, op: Operation, error: Exception) -> None:
        """Say which operation refuses what."""
        super().__init__(str(error))
        self.op = op
        self.error = error


def _checked_op(instruction: CudaInstruction, check: Refusal) -> Operation:
    """Return the operation of an instruction to which a check belongs."""
    readers = (op for op in instruction.ops if check.indices in op.inputs)
    return next(readers, instruction.ops[0])


class _Runner:
    """A graph on the buffers of one instance of a program."""

    def __init__(
        self,
        parts: Sequence[Part],
        at: ProgramAddresses,
        graph: GraphInstruction,
        platform: Platform,
    ) -> None:
        self._platform = platform
        self._known: dict[Tensor, int] = {}
        self._failed: Any
        self._late: list[Tensor] = []
        self.point: dict[Tensor, Callable[[int], object]] = {}
        named = (*graph.reads, *graph.writes, *graph.updates)
        for tensor in dict.fromkeys(named):
            found = at.of(tensor)
            if found is None:
                self._late.append(tensor)
                self.point[tensor] = self._pointer(tensor)
            else:
                self._known[tensor] = found
        late = frozenset(self._late)
        self._lasting = {
            tensor: functools.partial(self._known.__getitem__, place)
            for part in parts
            for tensor, place in part.places.items()
            if place in late
        }
        self._checks = [
            (_checked_op(part.instruction, check), check)
            for part in parts
            for check in part.instruction.checks
        ]
        # A word on the GPU that says whether a check failed, and one on the host for each of them.
        self._failed = platform.upload(np.zeros(1, np.int32)) if self._checks else None
        self._report = platform.shared_words(len(self._checks)) if self._checks else None
        self._starts = []
        before = 0
        for part in parts:
            self._starts.append(self._start_of(part, at, before))
            before += len(part.instruction.checks)
        self._graphs: dict[tuple[int, ...], Callable[[], None] | None] = {}
        # What runs with the addresses of the last step.
        self._ready: Callable[[], None] | None = None

    def _pointer(self, tensor: Tensor) -> Callable[[int], object]:
        known = self._known

        def point(address: int) -> None:
            known[tensor] = address
            self._ready = None

        return point

    def _start_of(self, part: Part, at: ProgramAddresses, before: int) -> Callable[[], None]:
        """Return what starts a part, which so many checks come before."""
        instruction, places, known = part.instruction, part.places, self._known
        scratch = at.scratch_of(instruction) if instruction.scratch else 0
        marks: dict[Any, int] = {}
        if self._report is not None:
            failed = self._platform.address(self._failed)
            marks = {FAILED: failed, REPORT: self._report.ctypes.data + 4 * before}

        def address(of: Any) -> int:
            return marks[of] if of in marks else known[places[of]]

        return lambda: instruction.start(address, scratch)

    def run(self) -> None:
        """Start the parts."""
        ready = self._ready
        if ready is None:
            ready = self._find()
        ready()
        if self._report is not None:
            self._look(self._report)

    def _look(self, report: Any) -> None:
        """Wait for what the checks have found, and raise it."""
        self._platform.wait()
        if not report.any():
            return
        found = report.tolist()
        report[...] = 0
        self._failed.fill(0)
        op, check = next(c for c, failed in zip(self._checks, found, strict=True) if failed)
        raise FailedCheckError(op, self._error(check))

    def _error(self, check: Refusal) -> Exception:
        given = check.indices
        # What was computed in the step may have made room for something else.
        at = None if given is None else self._lasting.get(given)
        predicate = check.message.startswith("is ")
        if given is None or at is None:
            return check.error(f"an index {check.message}" if predicate else check.message)
        view = self._platform.view(at(), given.shape.known, given.dtype.numpy, None)
        seen: Any = self._platform.download(view)
        wrong = seen[(seen < 0) | (seen >= check.size)]
        said = check.message if predicate else f"is out of range: {check.message}"
        return check.error(f"index {wrong[0]} {said}")

    def _find(self) -> Callable[[], None]:
        """Return what runs the parts with the addresses of this step."""
        if len(self._starts) < _LEAST:
            self._ready = self._each
            return self._each
        key = tuple(map(self._known.__getitem__, self._late))
        if key not in self._graphs:
            if len(self._graphs) >= _MOST_GRAPHS:
                # The oldest one.
                del self._graphs[next(iter(self._graphs))]
            self._graphs[key] = None
            # The second step with these addresses makes a graph, also if it is the next one.
            return self._each
        graph = self._graphs[key]
        if graph is None:
            graph = self._graphs[key] = self._platform.capture(self._each)
        self._ready = graph
        return graph

    def _each(self) -> None:
        for start in self._starts:
            start()
