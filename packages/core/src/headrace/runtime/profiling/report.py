"""Reports: what a piece of a step does, for explanations, traces and profiles."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.records import dataclass

# What tells when work began and ended, in nanoseconds.
clock = time.perf_counter_ns


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A piece of work: what one kernel, or one operation by itself, does in a step.

    Attributes:
        name: The kernel's name, or the operation's type.
        ops: What it computes.
        device: The device on which it runs.
        fused: Whether it is a kernel of the device's own making, not an op's plain kernel.
        bytes: Bytes of tensors that it reads and writes, as far as they are known before the step.
        flops: Floating-point operations, None where nobody counts them.
        source: The source of what it runs, where there is one to show.
        package: Who provides what it runs, as in ``"headrace-backend-cpu"``; empty where that is
            not known.
    """

    name: str
    ops: tuple[Operation, ...]
    device: str
    fused: bool = False
    bytes: int = 0
    flops: int | None = None
    source: str = ""
    package: str = ""

    @property
    def line(self) -> str:
        """The user's line that made the last of its operations."""
        return str(self.ops[-1].site) if self.ops else ""

    @property
    def types(self) -> str:
        """The types of its operations."""
        kinds: dict[str, int] = {}
        for op in self.ops:
            kinds[op.type] = kinds.get(op.type, 0) + 1
        return ", ".join(kind if n == 1 else f"{n} {kind}" for kind, n in kinds.items())


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A range of a program's arena, and when it is in use.

    Attributes:
        name: The tensors that lie in it one after the other, or whose scratch memory it is.
        offset: Where it begins, in bytes from the arena's beginning.
        size: Bytes.
        first: Index of the work that fills it.
        last: Index of the last work that reads it.
        scratch: Whether only the work that fills it reads it.
    """

    name: str
    offset: int
    size: int
    first: int
    last: int
    scratch: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ProgramReport:
    """What a compiled region does.

    Attributes:
        works: Its pieces of work, in order.
        source: The source of the function that runs them.
        arena_bytes: The block of memory in which its values lie.
        peak_bytes: The most of it that is in use at one time.
        result_bytes: The arrays that it makes for its caller.
        buffers: What lies in the arena, in the order in which it is filled.
        compiled: When and why its kernels were compiled, empty where it has none.
    """

    works: tuple[Work, ...]
    source: str = ""
    arena_bytes: int = 0
    peak_bytes: int = 0
    result_bytes: int = 0
    buffers: tuple[Buffer, ...] = ()
    compiled: str = ""


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of tensors, those of unknown size left out."""
    total = 0
    for tensor in tensors:
        spec = tensor.spec.content or tensor.spec
        if spec.dtype.kind in ("resource", "list", "string"):
            continue
        if spec.shape.is_fully_defined():
            count = int(np.prod(spec.shape.known, dtype=np.int64))
            total += count * spec.dtype.numpy.itemsize
    return total


def plain_work(op: Operation, device: str, package: str = "") -> Work:
    """Return the work of an operation that runs by itself."""
    # Reading a variable yields the array that it holds.
    moved = 0 if op.type == "ReadVariable" else bytes_of((*dict.fromkeys(op.inputs), *op.outputs))
    return Work(op.type, (op,), device, bytes=moved, package=package)


def amount(number: float, unit: str) -> str:
    """Return a number with a decimal prefix, as in ``1.2 MB``."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}"


def duration(seconds: float) -> str:
    """Return a length of time with three digits that count, as in ``1.2 ms``."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
