"""Native loops as instructions: where all shapes are known, a program runs them without Python.

A node that calls its native loop looks at its arrays, makes others and writes down their addresses
in each step, which takes several microseconds. What it would find is known when the program is
made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from headrace import Operation, Tensor
from headrace.extend.devices import located
from headrace.extend.records import dataclass
from headrace_cpu.fusion.interpret import interpret
from headrace_cpu.native.memory import Array, view
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native_loops.native_loop import STATUS, TEAM, NativeLoop
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import Addresses, Bound, Instruction, NativeCall
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.values import is_native


@dataclass(frozen=True, slots=True)
class Step:
    """One native loop of an instruction.

    Attributes:
        native_loop: Its source.
        threads: How many threads it is worth.
        numbers: Its words that are numbers, by their names; others are 0.
        tensors: Those that are the addresses of tensors, or of the variable that is changed.
        scratch: Those that are addresses in scratch memory: at so many bytes.
        arrays: Those that are addresses of arrays that are made with the instruction.
        offsets: Of those that are tensors, how many bytes behind the tensor's address they lie.
    """

    native_loop: NativeLoop
    threads: int
    numbers: Mapping[str, int]
    tensors: Mapping[str, Tensor]
    scratch: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """How native loops compute an operation whose shapes are known.

    Attributes:
        steps: The native loops, one after the other. Each is right whatever those before have
        refused.
        scratch: The bytes of scratch memory.
        flops: How many floating-point operations they do.
        moved: The bytes that they read and write where that is not all of each tensor: of a table
            they read the rows that are picked, of a variable they change those that are named.
        output: Which of the operation's outputs they compute. Nothing reads the others.
    """

    steps: Sequence[Step]
    scratch: int = 0
    flops: int = 0
    moved: int | None = None
    output: int = 0


# The plan of an operation on so many threads, None where native loops do not compute it.
Planner = Callable[[Operation, int], Plan | None]


# Computes the result of an operation of its inputs, None where only the plain kernel can.
Until = Callable[..., Array | None]


class BoundNativeLoop(Instruction):
    """Runs the native loops of one operation on the buffers of a program."""

    def __init__(self, op: Operation, plan: Plan, until: Until | None = None) -> None:
        """Describe it.

        Args:
            op: The operation.
            plan: Its native loops.
            until: Computes what the native loops do until they are compiled, where the plain
            kernel's
                result has other bits.
        """
        self.ops = (op,)
        self.name = plan.steps[-1].native_loop.name
        self._op, self._plan, self._until = op, plan, until
        changes = op.schema.changes
        self.updates = (op.inputs[0],) if changes else ()
        # What is known needs no memory; the plain kernel gets its value.
        given = [
            t for t in op.inputs[len(self.updates) :] if t.spec.value is None or _is_read(plan, t)
        ]
        self.reads = tuple(dict.fromkeys(given))
        self.writes = () if changes else (op.outputs[plan.output],)
        self.scratch = plan.scratch
        self._kernels: list[int] = []

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self._plan.flops

    def moved(self) -> int:
        """Return how many bytes of tensors and variables it reads and writes."""
        return super().moved() if self._plan.moved is None else self._plan.moved

    def source(self) -> str:
        """Return the source of its kernels."""
        return "\n".join(step.native_loop.source().text for step in self._plan.steps)

    def kernels(self) -> Sequence[KernelSource]:
        """Return its kernels; the plain kernel computes until they are there."""
        return [] if self._kernels else [step.native_loop.source() for step in self._plan.steps]

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run the kernels."""
        if addresses:
            self._kernels = list(addresses)

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        tensors = (*self.reads, *self.writes, *self.updates)
        # The words that the plain kernel wants.
        all_of = Block(len(tensors), at)
        for i, tensor in enumerate(tensors):
            all_of.bind(tensor, i)
        plain = partial(self._plain, all_of.words)
        if not self._kernels:
            early = plain if self._until is None else partial(self._early, all_of.words)
            return bound(all_of.kept(early), [all_of], tensors, at)
        blocks, calls, natives = [all_of], [], []
        for step, kernel in zip(self._plan.steps, self._kernels, strict=True):
            block = self._block(step, at)
            calls.append(block.launch(kernel, step.threads))
            native: NativeCall = calls[-1].__dict__["native"]
            natives.append(replace(native, report=block.address + 8 * STATUS))
            blocks.append(block)
        refuses = [
            block.words if _refuses(step) else None
            for step, block in zip(self._plan.steps, blocks[1:], strict=True)
        ]
        call = all_of.kept(_runner(refuses, calls, plain))
        if not self.updates:
            refused = partial(_compute_instead, [w for w in refuses if w is not None], plain)
            call.__dict__.update(native=tuple(natives), refused=refused)
        return bound(call, blocks, tensors, at)

    def _block(self, step: Step, at: Addresses) -> Block:
        words = (*TEAM, *step.native_loop.words)
        place = {word: i for i, word in enumerate(words)}
        block = Block(len(words), at)
        if step.threads > 1:
            block.bind_team(*map(TEAM.index, ("number_of", "count_of", "barrier")))
        for name, number in step.numbers.items():
            block.words[place[name]] = number
        for name, tensor in step.tensors.items():
            block.bind(tensor, place[name], step.offsets.get(name, 0))
        for name, offset in step.scratch.items():
            block.bind_scratch(place[name], offset)
        for name, array in step.arrays.items():
            block.words[place[name]] = array.__array_interface__["data"][0]
        return block

    def _early(self, words: Array) -> None:
        """Compute what the native loops do."""
        assert self._until is not None
        found = self._found(words)
        result = self._until(*(found[t] for t in self._op.inputs))
        if result is None:
            self._plain(words)
        else:
            np.copyto(found[self.writes[0]], result)

    def _found(self, words: Array) -> dict[Tensor, Array]:
        """Return arrays over all buffers, by their tensors."""
        found: dict[Tensor, Array] = {}
        tensors = (*self.reads, *self.writes, *self.updates)
        for tensor, place in zip(tensors, words.tolist(), strict=True):
            spec = tensor.spec if tensor.spec.content is None else tensor.spec.content
            found[tensor] = view(place, spec.shape.known, spec.dtype.numpy, self)
        return found

    def _plain(self, words: Array) -> None:
        """Let the plain kernel compute it, or refuse what is wrong."""
        found = self._found(words)
        if not self.updates:
            try:
                interpret(self.ops, found.__getitem__, found, self.writes)
            except Exception as error:
                # What it was given, under the shapes that it has for it.
                given = [found.get(t, t.spec.value) for t in self._op.inputs]
                raise located(error, self._op, given) from error
            return
        handle, *others = self._op.inputs
        given = [found.get(t, t.spec.value) for t in others]
        with np.errstate(all="ignore"):
            _kernel(self._op)(SimpleNamespace(xp=np), _Lent(handle, found[handle]), *given)


def _refuses(step: Step) -> bool:
    """Whether a native loop may tell that something is wrong."""
    return "set_word" in step.native_loop.written()


def _runner(
    words: Sequence[Array | None],
    calls: Sequence[Callable[[], object]],
    plain: Callable[[], object],
) -> Callable[[], object]:
    """Return what makes calls, and then runs the plain kernel where one of them refused.

    Args:
        words: For each call, its block, None where it never refuses.
        calls: The calls.
        plain: Says what is wrong.
    """
    block, call = words[0], calls[0]
    if len(calls) == 1:
        # Most have one native loop, and many take less time than a turn of a loop in Python.
        return partial(call) if block is None else partial(_run_one, block.item, block, call, plain)
    return partial(_run, words, calls, plain)


def _compute_instead(blocks: Sequence[Array], plain: Callable[[], object]) -> None:
    """Let the plain kernel compute it, or say what is wrong, where a native loop has refused."""
    for block in blocks:
        block[STATUS] = 0
    plain()


def _run_one(
    item: Callable[[int], int], block: Array, call: Callable[[], object],
    plain: Callable[[], object],
) -> None:  # fmt: skip
    call()
    if item(STATUS):
        block[STATUS] = 0
        plain()


def _run(
    words: Sequence[Array | None],
    calls: Sequence[Callable[[], object]],
    plain: Callable[[], object],
) -> None:
    wrong = False
    for block, call in zip(words, calls, strict=True):
        call()
        if block is not None and block.item(STATUS):
            block[STATUS] = 0
            wrong = True
    if wrong:
        plain()


class _Lent:
    """A variable that was taken out of its cell already, as plain kernels want one."""

    def __init__(self, handle: Tensor, value: Array) -> None:
        self.name = handle.op.name
        self._value = value

    def take(self) -> tuple[Array, Array]:
        """Return the value, to be changed in place, and the value."""
        return self._value, self._value

    def give(self, value: Array) -> None:
        """Do nothing: who took it gives it back."""


def _kernel(op: Operation) -> Callable[..., object]:
    # lazy: the plain kernels of variables are needed where there are such operations
    from headrace_cpu.kernels.state import KERNELS

    return next(kernel.function for kernel in KERNELS if kernel.op == op.type)


def _is_read(plan: Plan, tensor: Tensor) -> bool:
    """Whether a native loop of a plan reads a tensor."""
    return any(tensor in step.tensors.values() for step in plan.steps)


def wants(candidate: Candidate) -> bool:
    """Whether an operation may have a plan: all that it reads is numbers of known shape."""
    op = candidate.op
    if op.schema.changes:
        handle, *others = op.inputs
        content = handle.spec.content
        if content is None or not content.shape.is_fully_defined():
            return False
        if handle.op.type != "VarHandle" or candidate.matches.needed_outside(op.outputs[0], ()):
            return False
        return all(is_native(t) for t in others)
    matches = candidate.matches
    read = [t for t in op.outputs if matches.users(t) or t in matches.results]
    return len(read) == 1 and all(is_native(t) for t in (*op.inputs, *read))
