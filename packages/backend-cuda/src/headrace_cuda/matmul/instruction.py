"""Instructions that multiply matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace import Operation, Tensor
from headrace_cuda.matmul.library import Matmul, MatmulPlaces, MatmulShape
from headrace_cuda.program.instruction import CudaInstruction


class Multiply(CudaInstruction):
    """A product of matrices, with what follows it.

    Args:
        ops: What it computes.
        shape: The product.
        matmul: What computes it.
        left: The left matrices.
        right: The right matrices.
        out: What is written.
        bias: What is added to every row.
        addend: What is added to the result.
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

    def start(self, at: Callable[[Tensor], int], scratch: int) -> None:
        """Start the product."""
        places = MatmulPlaces(
            at(self._left),
            at(self._right),
            at(self._out),
            0 if self._bias is None else at(self._bias),
            0 if self._addend is None else at(self._addend),
        )
        self._matmul.start(places, scratch)

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self.shape.flops

    def source(self) -> str:
        """Return what computes it."""
        return f"{self._matmul.name}: {self.shape}"
