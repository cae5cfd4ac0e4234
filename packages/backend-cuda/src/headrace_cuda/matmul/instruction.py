"""Instructions that multiply matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace import Operation, Tensor
from headrace_cuda.matmul.library import Matmul, MatmulPlaces, MatmulShape
from headrace_cuda.program.instruction import CudaInstruction


@dataclass(frozen=True, slots=True)
class Skip:
    """Where a product begins, in bytes from where its operands do.

    Attributes:
        left: Of the left matrices.
        right: Of the right matrices.
        out: Of the results, and of what is added to them.
    """

    left: int = 0
    right: int = 0
    out: int = 0


class Multiply(CudaInstruction):
    """A product of matrices, or several of one shape, with what follows.

    Args:
        ops: What it computes.
        shape: The product.
        matmul: What computes it.
        left: The left matrices.
        right: The right matrices.
        out: What is written.
        bias: What is added to every row.
        addend: What is added to the result.
        skips: Where each of the products begins.
    """

    name = "multiply"

    def __init__(
        self,
        ops: Sequence[Operation],
        shape: MatmulShape,
        matmul: Matmul,
        left: Tensor,
        right: Tensor,
        out: Tensor,
        bias: Tensor | None = None,
        addend: Tensor | None = None,
        skips: Sequence[Skip] = (Skip(),),
    ) -> None:
        self.ops = tuple(ops)
        others = [t for t in (bias, addend) if t is not None]
        self.reads = tuple(dict.fromkeys([left, right, *others]))
        self.writes = (out,)
        self.scratch = matmul.scratch
        if addend is not None and addend not in (left, right, bias):
            self.reuses = ((out, addend),)
        self.shape = shape
        self._matmul = matmul
        self._left, self._right, self._out = left, right, out
        self._bias, self._addend = bias, addend
        self._skips = tuple(skips)

    def start(self, at: Callable[[Tensor], int], scratch: int) -> None:
        """Start the products."""
        left, right, out = at(self._left), at(self._right), at(self._out)
        bias = 0 if self._bias is None else at(self._bias)
        addend = None if self._addend is None else at(self._addend)
        for skip in self._skips:
            added = 0 if addend is None else addend + skip.out
            places = MatmulPlaces(left + skip.left, right + skip.right, out + skip.out, bias, added)
            self._matmul.start(places, scratch)

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return len(self._skips) * self.shape.flops

    def source(self) -> str:
        """Return what computes it."""
        times = "" if len(self._skips) == 1 else f"{len(self._skips)} times "
        return f"{self._matmul.name}: {times}{self.shape}"
