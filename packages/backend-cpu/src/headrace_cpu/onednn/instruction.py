"""Instructions that execute a oneDNN primitive on tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int
from functools import partial
from typing import Any

from headrace import Operation, Tensor
from headrace.extend.records import dataclass
from headrace_cpu.native.memory import address, allocate
from headrace_cpu.onednn.library import (
    DST,
    SCRATCHPAD,
    SRC,
    UNIMPLEMENTED,
    Argument,
    Library,
    OnednnError,
)
from headrace_cpu.onednn.memory import Descriptor, Layout, Memory
from headrace_cpu.onednn.primitive import Primitive, reorder
from headrace_cpu.program.instruction import (
    ALIGNMENT,
    Addresses,
    Bound,
    Instruction,
    Native,
    NativeCall,
)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a primitive reads or writes.

    Attributes:
        number: Of the primitive's argument.
        tensor: The tensor.
        layout: How the tensor lies in its buffer.
        written: Whether the primitive writes it.
    """

    number: int
    tensor: Tensor
    layout: Layout
    written: bool = False


@dataclass(frozen=True, slots=True)
class _Reordered:
    """An operand which the primitive wants in another layout, for which there is scratch memory."""

    operand: Operand
    plain: Descriptor
    offset: int
    copy: Primitive


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class PrimitiveInstruction(Instruction):
    """Executes a primitive, and reorders what it wants in another layout before and after it.

    Primitives divide their work for a number of threads when they are made. Where a step has fewer,
    because others run at the same time, the instruction makes another primitive and keeps it.

    Args:
        library: oneDNN.
        primitive: Made for ``threads`` threads.
        prepare: Makes it for another number of threads; None where oneDNN has none.
        ops: What it computes.
        operands: What it reads and writes.
        name: Its name.
        flops: Floating-point operations.
        threads: How many threads it runs on where a step has as many.

    Raises:
        OnednnError: if oneDNN cannot reorder an operand.
    """

    package = "onednn"

    def __init__(
        self,
        library: Library,
        primitive: Primitive,
        prepare: Callable[[int], Primitive | None],
        ops: Sequence[Operation],
        operands: Sequence[Operand],
        *,
        name: str,
        flops: int,
        threads: int,
    ) -> None:
        self.ops = tuple(ops)
        self.reads = tuple(dict.fromkeys(o.tensor for o in operands if not o.written))
        self.writes = tuple(o.tensor for o in operands if o.written)
        self.name = name
        self.primitive = primitive
        self._library = library
        self._prepare = prepare
        self._operands = tuple(operands)
        self._flops = flops
        self._threads = threads
        self._plain = {o.number: Descriptor.of(library, o.layout) for o in operands}
        self._reordered, self.scratch = self._plan()

    def _plan(self) -> tuple[dict[int, _Reordered], int]:
        """Return what is reordered, and the bytes of scratch memory for it and the primitives."""
        found: dict[int, _Reordered] = {}
        end = 0
        for operand in self._operands:
            plain, wanted = self._plain[operand.number], self.primitive.argument(operand.number)
            if plain == wanted:
                continue
            pair = (wanted, plain) if operand.written else (plain, wanted)
            copy = reorder(self._library, self._threads, *pair)
            found[operand.number] = _Reordered(operand, plain, end, copy)
            end += _aligned(wanted.size)
        # One after the other, they use the same scratch memory, behind the reordered tensors.
        return found, end + max([self.primitive.scratch, *(r.copy.scratch for r in found.values())])

    @property
    def reordered(self) -> tuple[Tensor, ...]:
        """Tensors that are copied to another layout."""
        return tuple(r.operand.tensor for r in self._reordered.values())

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self._flops

    def source(self) -> str:
        """Return what oneDNN computes it with."""
        copied = ", ".join(o.tensor.name for o in self._operands if o.number in self._reordered)
        return f"oneDNN {self.primitive.implementation}" + (
            f", reorders {copied}" if copied else ""
        )

    def on(self, threads: int) -> PrimitiveInstruction:
        """Return the same on another number of threads.

        Raises:
            OnednnError: if oneDNN has no primitive for it.
        """
        primitive = self._prepare(threads)
        if primitive is None:
            raise OnednnError(f"{self.name} on {threads} threads", UNIMPLEMENTED)
        return PrimitiveInstruction(
            self._library,
            primitive,
            self._prepare,
            self.ops,
            self._operands,
            name=self.name,
            flops=self._flops,
            threads=threads,
        )

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        return _Binder(self, self._library, at).bound(
            self._operands, self._plain, self._reordered, self._threads
        )


class _Binder:
    """Makes the memories and the steps of one bound instruction."""

    def __init__(self, instruction: PrimitiveInstruction, library: Library, at: Addresses) -> None:
        self._instruction = instruction
        self._library = library
        self._at = at
        self._stream = library.create("dnnl_stream_create", library.engine, 1)
        self._base = at.scratch() if instruction.scratch else 0
        self._memories: list[Memory] = []

    def bound(
        self,
        operands: Sequence[Operand],
        plain: dict[int, Descriptor],
        reordered: dict[int, _Reordered],
        threads: int,
    ) -> Bound:
        primitive = self._instruction.primitive
        room = sum(_aligned(primitive.argument(n).size) for n in reordered)
        pad = self._base + room
        point: dict[Tensor, Any] = {}
        late: list[NativeCall] = []
        arguments: dict[int, Memory] = {}
        places: dict[Tensor, Memory] = {}
        before: list[Callable[[], object]] = []
        after: list[Callable[[], object]] = []
        for operand in operands:
            memory = self._memory(plain[operand.number])
            self._place(memory, operand.tensor, point)
            if operand.tensor in point:
                late.append(self._pointing(memory, operand.tensor))
            places[operand.tensor] = memory
            changed = reordered.get(operand.number)
            if changed is not None:
                inner = self._memory(primitive.argument(operand.number))
                inner.point(self._base + changed.offset)
                pair = (inner, memory) if operand.written else (memory, inner)
                step = self._step(changed.copy, {SRC: pair[0], DST: pair[1]}, pad)
                (after if operand.written else before).append(step)
                memory = inner
            arguments[operand.number] = memory
        steps = (*before, self._step(primitive, arguments, pad), *after)
        run = _Run(
            *(self._instruction, self._library, threads, self._stream, steps, places),
            self._memories,
        )
        calls = (*late, *(self._native(step, threads) for step in steps))
        return Bound(run, point, Native(calls, (), self._library.set_threads_at))

    def _pointing(self, memory: Memory, tensor: Tensor) -> NativeCall:
        """Return what tells a memory where a tensor is."""
        place = self._library.places["dnnl_memory_set_data_handle"]
        return NativeCall(place, (memory.handle.value, 0), checked=True, late={1: tensor})

    def _native(self, step: Any, threads: int) -> NativeCall:
        primitive, stream, count, array = step.args
        words = (primitive.value, stream.value, count.value, addressof(array))
        place = self._library.places["dnnl_primitive_execute"]
        return NativeCall(place, words, checked=True, own=threads)

    def _memory(self, descriptor: Descriptor) -> Memory:
        memory = Memory(self._library, descriptor)
        self._memories.append(memory)
        return memory

    def _place(self, memory: Memory, tensor: Tensor, point: dict[Tensor, Any]) -> None:
        address = self._at.of(tensor)
        if address is not None:
            memory.point(address)
        elif tensor in point:
            point[tensor] = _both(point[tensor], memory.point)
        else:
            point[tensor] = memory.point

    def _step(
        self, primitive: Primitive, arguments: dict[int, Memory], pad: int
    ) -> Callable[[], object]:
        given = dict(arguments)
        if primitive.scratch:
            given[SCRATCHPAD] = self._memory(primitive.argument(SCRATCHPAD))
            given[SCRATCHPAD].point(pad)
        array = (Argument * len(given))(*[Argument(n, m.handle) for n, m in given.items()])
        return partial(
            self._library.execute, primitive.handle, self._stream, c_int(len(given)), array
        )


def _both(one: Callable[[int], object], other: Callable[[int], object]) -> Callable[[int], object]:
    def point(address: int) -> None:
        one(address)
        other(address)

    return point


class _Late(Addresses):
    """Addresses that are all told later, and scratch memory of its own."""

    def __init__(self, size: int) -> None:
        self._scratch = allocate(size)

    def of(self, tensor: Tensor) -> None:
        return None

    def scratch(self) -> int:
        return address(self._scratch)


class _Run:
    """Executes primitives one after the other; keeps what they need, and frees the stream."""

    __slots__ = (
        "__weakref__",
        "_instruction",
        "_kept",
        "_library",
        "_others",
        "_places",
        "_steps",
        "_threads",
    )

    def __init__(
        self,
        instruction: PrimitiveInstruction,
        library: Library,
        threads: int,
        stream: Any,
        steps: Sequence[Callable[[], object]],
        places: dict[Tensor, Memory],
        kept: object,
    ) -> None:
        self._instruction, self._library, self._threads = instruction, library, threads
        self._steps, self._places, self._kept = steps, places, kept
        self._others: dict[int, tuple[Bound, _Late]] = {}
        release = weakref.finalize(self, library.call, "dnnl_stream_destroy", stream)
        release.atexit = False

    def __call__(self) -> None:
        there = self._library.get_threads()
        if there == self._threads:
            for step in self._steps:
                step()
        elif there > self._threads:
            self._library.run(self._threads, self._steps)
        else:
            self._on_fewer(there)

    def _on_fewer(self, threads: int) -> None:
        """Execute the same on the same buffers with a primitive for fewer threads."""
        if threads not in self._others:
            other = self._instruction.on(threads)
            at = _Late(other.scratch)
            self._others[threads] = other.bind(at), at
        bound, _ = self._others[threads]
        for tensor, point in bound.point.items():
            point(self._places[tensor].address)
        bound.call()
