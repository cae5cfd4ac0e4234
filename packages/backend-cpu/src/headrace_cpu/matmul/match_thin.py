"""Which matmuls of a region have a few rows or columns, and the instructions that compute them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence

from headrace import Operation, Tensor
from headrace.extend.records import dataclass
from headrace_cpu.matmul.thin import MOST_VECTORS, NUMBERS, POINTERS, Thin
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.block import Block, bound
from headrace_cpu.program.instruction import Addresses, Bound, Instruction, NativeCall
from headrace_cpu.program.interpreted import Interpreted
from headrace_cpu.program.matching import Candidate

_SIZES = {"float32": 4, "float64": 8}
# Below so many bytes of matrices, waking a second thread takes longer than it saves.
_SERIAL_BYTES = 1 << 17
# Matrices of so many bytes do not stay in the cache of a core.
_IN_TURNS_BYTES = 1 << 19
# Threads share sums where each would get fewer elements of results than these.
_FEWEST_ELEMENTS = 64


@dataclass(frozen=True, slots=True)
class Product:
    """A batch of matmuls of which each has a few rows or columns.

    Attributes:
        kernel: What computes it on one thread.
        matrix: Which operand is the matrix, 0 or 1.
        numbers: The numbers of the kernel's block, by name.
    """

    kernel: Thin
    matrix: int
    numbers: dict[str, int]

    @property
    def bytes(self) -> int:
        """The bytes of the matrices."""
        n = self.numbers
        each = n["lines"] * n["length"] * _SIZES[self.kernel.dtype]
        return each * (n["batch"] if n["matrix_batch"] else 1)

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        n = self.numbers
        return 2 * n["batch"] * n["lines"] * n["length"] * self.kernel.vectors


def product_of(op: Operation) -> Product | None:
    """Return a ``MatMul`` of known shapes as a product of matrices and a few vectors."""
    a, b = op.inputs
    dtype = a.dtype.name
    if dtype not in _SIZES:
        return None
    left, right, out = (t.spec.shape.known for t in (a, b, op.outputs[0]))
    batch = _batch(left[:-2], right[:-2], out[:-2])
    ta, tb = bool(op.attrs["transpose_a"]), bool(op.attrs["transpose_b"])
    rows, columns, inner = out[-2], out[-1], left[-2] if ta else left[-1]
    if batch is None or not rows or not columns or not inner or not batch[0]:
        return None
    if batch[1] and not batch[2] and not ta:
        # Many matrices times one are one of more rows.
        rows, batch = rows * batch[0], (1, 0, 0)
    count, batch_a, batch_b = batch
    # A vector lies in memory as its transpose does.
    ta, tb = ta and rows > 1, tb or columns == 1
    n = {"batch": count, "out_batch": rows * columns}
    # Where either operand may be the matrix: the one whose lines are summed up.
    either = rows <= MOST_VECTORS and columns <= MOST_VECTORS and (columns == 1 or not ta)
    if rows <= MOST_VECTORS and not either:
        n |= {"matrix_batch": batch_b * inner * columns, "vectors_batch": batch_a * rows * inner}
        n |= {"vector_step": 1 if ta else inner, "element_step": rows if ta else 1}
        n |= {"out_vector_step": columns, "out_element_step": 1}
        lines, length, vectors, matrix, dots = columns, inner, rows, 1, tb
    elif columns <= MOST_VECTORS:
        n |= {"matrix_batch": batch_a * rows * inner, "vectors_batch": batch_b * inner * columns}
        n |= {"vector_step": inner if tb else 1, "element_step": 1 if tb else columns}
        n |= {"out_vector_step": 1, "out_element_step": columns}
        lines, length, vectors, matrix, dots = rows, inner, columns, 0, not ta
    else:
        return None
    if not dots:
        lines, length = length, lines
    straight = n["element_step" if dots else "out_element_step"] == 1
    if dots and not straight and count > 1:
        return None
    n |= {"lines": lines, "length": length, "line_step": length, "backwards": 0}
    return Product(Thin(dots, vectors, dtype, straight=straight), matrix, n)


def _batch(
    left: Sequence[int], right: Sequence[int], out: Sequence[int]
) -> tuple[int, int, int] | None:
    """Return how many matmuls there are, and for each operand 1 if each has another one, else 0.

    None where an operand is repeated along some axes and not along others.
    """
    count = math.prod(out)
    steps = []
    for shape in (left, right):
        size = math.prod(shape)
        if size not in (1, count):
            return None
        steps.append(0 if size == 1 else 1)
    return count, steps[0], steps[1]


def wants(candidate: Candidate) -> bool:
    """Whether an operation is a matmul of a few rows or columns."""
    op = candidate.op
    return op.type == "MatMul" and not op.control_inputs and product_of(op) is not None


def make(candidate: Candidate) -> Instruction:
    """Return the instruction that computes it."""
    op = candidate.op
    product = product_of(op)
    assert product is not None
    return ThinInstruction(op, product, candidate.settings.threads)


class ThinInstruction(Instruction):
    """Computes products of matrices and a few vectors."""

    name = "thin_matmul"

    def __init__(self, op: Operation, product: Product, threads: int) -> None:
        """Describe it.

        Args:
            op: The ``MatMul``.
            product: What it is.
            threads: How many threads it may use.
        """
        self.ops = (op,)
        self.reads = tuple(dict.fromkeys(op.inputs))
        self.writes = op.outputs
        self.product = product
        self.threads = threads if product.bytes >= _SERIAL_BYTES else 1
        self.kernel = _shared(product, self.threads)
        n = product.numbers
        self.scratch = self.kernel.scratch(n["lines"], n["length"], self.threads)
        self._instead = Interpreted((op,))
        self._address: int | None = None
        # What turns the way through the lines.
        self._turner = 0

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self.product.flops

    def source(self) -> str:
        """Return what computes it."""
        n = self.product.numbers
        kind = "multiplied by" if self.kernel.dots else "added up for"
        return f"{n['batch']} x {n['lines']} lines of {n['length']}, {kind} {self._vectors}"

    @property
    def _vectors(self) -> str:
        count = self.kernel.vectors
        return f"{count} vector{'s' * (count > 1)}"

    def kernels(self) -> Sequence[KernelSource]:
        """Return the kernel, and what turns its way, which loops run at one go call, too."""
        if self._address is not None:
            return []
        return [self.kernel.source(), *([_TURN] if self._turns else [])]

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run the kernel."""
        if addresses:
            self._address, self._turner = addresses[0], addresses[-1]

    @property
    def _turns(self) -> bool:
        """Whether every other call takes the lines from the last one on: results are the same."""
        n = self.product.numbers
        return self.kernel.dots and n["batch"] == 1 and self.product.bytes >= _IN_TURNS_BYTES

    def bind(self, at: Addresses) -> Bound:
        """Return what runs it on buffers at ``at``."""
        if self._address is None:
            return self._instead.bind(at)
        block = Block(len(POINTERS) + len(NUMBERS), at)
        (op,) = self.ops
        tensors: tuple[Tensor, ...] = (
            op.inputs[self.product.matrix],
            op.inputs[1 - self.product.matrix],
            op.outputs[0],
        )
        for word, tensor in enumerate(tensors):
            block.bind(tensor, word)
        if self.scratch:
            block.bind_scratch(POINTERS.index("scratch"))
        for word, name in enumerate(NUMBERS, len(POINTERS)):
            block.words[word] = self.product.numbers[name]
        call = block.launch(self._address, self.threads)
        if self._turns:
            place = block.address + 8 * (len(POINTERS) + NUMBERS.index("backwards"))
            turn = NativeCall(self._turner, (place,))
            natives = (turn, call.__dict__["native"])
            call = block.kept(_in_turns(call, ctypes.c_int64.from_address(place)))
            call.__dict__["native"] = natives
        return bound(call, [block], (*self.reads, *self.writes), at)


_TURN = KernelSource(
    "turn",
    """\
define void @turn(i64 %block) {
  %word = inttoptr i64 %block to ptr
  %way = load i64, ptr %word
  %other = xor i64 %way, 1
  store i64 %other, ptr %word
  ret void
}
""",
    language="llvm",
)


def _in_turns(call: Callable[[], object], backwards: ctypes.c_int64) -> Callable[[], object]:
    """Return a call that goes through lines the other way each time."""

    def run() -> None:
        backwards.value ^= 1
        call()

    return run


def _shared(product: Product, threads: int) -> Thin:
    """Return the kernel for so many threads: whether they share elements of results, or sums."""
    k, n = product.kernel, product.numbers
    elements = n["lines"] if k.dots else n["length"]
    few = elements < (4 if k.dots else _FEWEST_ELEMENTS) * threads
    if threads == 1 or not few or n["batch"] > 1:
        return k
    return Thin(k.dots, k.vectors, k.dtype, shared_sums=True, straight=k.straight)
