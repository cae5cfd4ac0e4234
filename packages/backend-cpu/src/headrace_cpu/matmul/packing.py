"""Packs a matrix that many matmuls of a few rows share.

A recurrent network multiplies by the same weights in each step of time. Where the steps stand in
one program, the weights are brought into the order in which the kernel reads them once, before the
first matmul: cache lines that follow one another, which the processor asks for by itself, instead
of one from each row of the matrix, or of squares that have to be transposed each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace import Shape, Tensor
from headrace.extend.kernels import TensorSpec
from headrace.extend.records import dataclass
from headrace_cpu.matmul.short import LANES, Short
from headrace_cpu.native.assembly import Assembly
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.program.kernel import KernelInstruction
from headrace_cpu.program.schedule import Item

# Packing [400, 800] took 60 us, and each matmul 8 less then; 24 where the matrix is transposed.
_FEWEST, _FEWEST_TRANSPOSED = 10, 4


@dataclass(frozen=True, slots=True)
class Packing:
    """A kernel that packs a matrix: [columns / lanes, inner, lanes].

    Attributes:
        inner: Rows of the matrix that is meant.
        columns: Its columns.
        transposed: Whether it lies in memory as [columns, inner].
    """

    inner: int
    columns: int
    transposed: bool

    @property
    def words(self) -> tuple[str, ...]:
        """What the words of the kernel's block are the addresses of."""
        return ("b", "packed", "scratch")

    @property
    def flops(self) -> int:
        """Floating-point operations: none."""
        return 0

    @property
    def title(self) -> str:
        """What it is."""
        return "a kernel that packs a matrix for the matmuls that share it"

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory it needs: none."""
        del threads
        return 0

    def source(self) -> KernelSource:
        """Return the kernel; its threads share the columns."""
        name = f"pack_{'transposed_' if self.transposed else ''}{self.inner}x{self.columns}"
        code = Assembly("float", LANES)
        at = code.words(self.words)
        _, first, last = code.part(self.columns // LANES)
        step = LANES if self.transposed else 1
        with code.loop(first, last) as panel, code.loop(0, self.inner, step) as k:
            place = panel.index * (self.inner * LANES) + k.index * LANES
            if self.transposed:
                corner = panel.index * (LANES * self.inner) + k.index
                rows = [code.load(at["b"], corner + i * self.inner) for i in range(LANES)]
                for i, row in enumerate(code.transposed(rows)):
                    code.store(row, at["packed"], place + i * LANES)
            else:
                value = code.load(at["b"], k.index * self.columns + panel.index * LANES)
                code.store(value, at["packed"], place)
        return KernelSource(name, code.text(name), language="llvm")


class ShortInstruction(KernelInstruction):
    """Computes a matmul of a few rows, with what follows it."""

    def __init__(
        self, kernel: Short, operands: dict[str, Tensor], *, threads: int, instead: Instruction
    ) -> None:
        """Describe it; ``operands`` are the tensors of the words of the kernel's block."""
        super().__init__(kernel, operands, "c", name="multiply", threads=threads, instead=instead)
        self.short = kernel
        self.matrix = operands["b"]
        self._packing: KernelInstruction | None = None

    @property
    def ready(self) -> bool:
        """Whether the kernel is what computes it: the one that packs must be there, too."""
        return super().ready and (self._packing is None or self._packing.ready)

    def take(self, packing: KernelInstruction) -> None:
        """Read the matrix as it was packed."""
        (packed,) = packing.writes
        self._packing = packing
        self._kernel = self.short = replace(self.short, transposed=False, packed=True)
        self._operands = {**self._operands, "b": packed}
        self.reads = (*self.reads, packed)
        if self.matrix not in self._operands.values():
            self.spare = (self.matrix,)


def pack_shared(items: Sequence[Item], threads: int) -> list[Item]:
    """Return the items of a program with others that pack what many of them share.

    Each stands before the first matmul that reads what it packs: so the order is that of the
    schedule, which must be known.
    """
    sharing: dict[tuple[Tensor, bool], list[ShortInstruction]] = {}
    for item in items:
        if isinstance(item.instruction, ShortInstruction):
            matmul = item.instruction
            sharing.setdefault((matmul.matrix, matmul.short.transposed), []).append(matmul)
    before: dict[Instruction, KernelInstruction] = {}
    for (_, transposed), matmuls in sharing.items():
        if len(matmuls) >= (_FEWEST_TRANSPOSED if transposed else _FEWEST):
            before[matmuls[0]] = packing = _packing(matmuls[0], threads)
            for matmul in matmuls:
                matmul.take(packing)
    found: list[Item] = []
    for item in items:
        if item.instruction in before:
            found.append(Item(item.ops, before[item.instruction], item.place))
        found.append(item)
    return found


def _packing(matmul: ShortInstruction, threads: int) -> KernelInstruction:
    """Return what packs the matrix of a matmul."""
    short, matrix = matmul.short, matmul.matrix
    spec = TensorSpec(matrix.dtype, Shape((short.columns // LANES, short.inner, LANES)))
    # No operation yields it: it is one more output of the first that needs it.
    op = matmul.ops[0]
    packed = Tensor(op, len(op.outputs), spec)
    return KernelInstruction(
        Packing(short.inner, short.columns, short.transposed),
        {"b": matrix, "packed": packed},
        "packed",
        name="pack",
        threads=threads,
        instead=_Unpacked(matmul, packed),
    )


class _Unpacked(Instruction):
    """Packs nothing: matmuls take the matrix as it is until all kernels are compiled."""

    def __init__(self, matmul: ShortInstruction, packed: Tensor) -> None:
        self.ops = matmul.ops
        self.reads = (matmul.matrix,)
        self.writes = (packed,)

    def bind(self, at: Addresses) -> Bound:
        """Return what does nothing."""
        point = {tensor: _nothing for tensor in self.reads if at.of(tensor) is None}
        return Bound(_nothing, point)


def _nothing(_: int = 0) -> None:
    pass
