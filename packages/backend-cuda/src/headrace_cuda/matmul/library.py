"""What multiplies matrices on a GPU, as instructions see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulShape:
    """A product of matrices in C order, ``out = relu(left @ right + addend + bias)``.

    Attributes:
        rows: Of each result.
        columns: Of each result.
        depth: What is summed over.
        transpose_left: Whether a left matrix lies as [depth, rows].
        transpose_right: Whether a right matrix lies as [columns, depth].
        batch: How many products there are; results lie one behind the other.
        left_step: Elements from one left matrix to the next, 0 for the same one.
        right_step: Elements from one right matrix to the next, 0 for the same one.
        dtype: Of all operands.
        precision: "highest", or "tf32" for 10 bits of the fraction of float32.
        bias: Whether a vector [columns] is added to every row.
        addend: Whether a tensor of the result's shape is added.
        relu: Whether negative elements become 0.
        deterministic: Whether equal operands must give equal bits in all processes.
    """

    rows: int
    columns: int
    depth: int
    transpose_left: bool = False
    transpose_right: bool = False
    batch: int = 1
    left_step: int = 0
    right_step: int = 0
    dtype: str = "float32"
    precision: str = "highest"
    bias: bool = False
    addend: bool = False
    relu: bool = False
    deterministic: bool = False

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        return 2 * self.batch * self.rows * self.columns * self.depth

    def __str__(self) -> str:
        """Say what is multiplied, for messages."""
        left = f"[{self.rows}, {self.depth}]"
        right = f"[{self.depth}, {self.columns}]"
        marks = [
            *(["left transposed"] if self.transpose_left else []),
            *(["right transposed"] if self.transpose_right else []),
            *([f"{self.batch} times"] if self.batch != 1 else []),
            *(name for name in ("bias", "addend", "relu") if getattr(self, name)),
        ]
        return ", ".join([f"{left} @ {right} of {self.dtype} ({self.precision})", *marks])


@dataclass(frozen=True, slots=True)
class MatmulPlaces:
    """Addresses of the operands of a product, aligned to the elements at least.

    Attributes:
        left: The left matrices.
        right: The right matrices.
        out: The results.
        bias: The bias, 0 where there is none.
        addend: What is added, 0 where nothing is; it may be ``out``.
    """

    left: int
    right: int
    out: int
    bias: int = 0
    addend: int = 0


class Matmul(Protocol):
    """A product for which everything is prepared.

    Attributes:
        scratch: Bytes of scratch memory that it needs while it runs.
        name: What computes it, for explanations.
    """

    scratch: int
    name: str

    def start(self, places: MatmulPlaces, scratch: int) -> None:
        """Start it on the GPU's stream; allocates nothing, and waits for nothing.

        Args:
            places: Where the operands are.
            scratch: The address of its scratch memory, aligned to 256 bytes.

        Raises:
            ExecutionError: if the library refuses it.
        """


class MatmulLibrary(Protocol):
    """Something that multiplies matrices on a GPU."""

    def plan(self, shape: MatmulShape) -> Matmul | None:
        """Prepare a product; None where the library has none of this kind.

        Raises:
            ExecutionError: if the library fails.
        """
