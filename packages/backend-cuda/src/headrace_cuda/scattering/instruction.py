"""Adding rows up by index: into sums by segments, and into variables where they are.

Threads add atomically, in the order in which they come: sums of floats come out in other bits in
each run, as on the device's plain kernels. Indices are looked at before anything is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace import Operation, Tensor
from headrace_cpu.for_backends import Refusal
from headrace_cuda.program.each import NUMBER, start_each
from headrace_cuda.program.instruction import FAILED, REPORT, CudaInstruction
from headrace_cuda.program.platform import CudaSource, Function

INDICES = {"int32": "int", "int64": "long long"}
# What can be added up atomically.
NUMBERS = {"float32": "float", "float64": "double", "int32": "int", "int64": "int64"}


@dataclass(frozen=True, slots=True)
class ScatterShape:
    """What is added: ``total[indices[i], k] += sign * rows[i, k]``.

    Attributes:
        rows: How many rows there are.
        width: Elements of a row.
        size: Rows of the total.
        dtype: Of rows.
        index: Of indices.
        sign: 1 or -1.
        drops: Whether negative indices drop their rows; they are refused otherwise.
        clears: Whether the total begins with zeros.
        spread: Whether one number is added everywhere, in place of rows.
    """

    rows: int
    width: int
    size: int
    dtype: str
    index: str
    sign: int = 1
    drops: bool = False
    clears: bool = False
    spread: bool = False

    def look(self) -> CudaSource:
        """Return the kernel that refuses indices out of range, and clears the total."""
        below = "false" if self.drops else "at < 0"
        clear = ""
        if self.clears:
            clear = f"if (n < {self.size * self.width}LL) total[n] = 0;"
        return CudaSource.of(
            f"""extern "C" __global__ void KERNEL(
    const {INDICES[self.index]} *indices, {NUMBERS[self.dtype]} *total, int *report, int *failed
) {{
    const long long n = {NUMBER};
    {clear}
    if (n >= {self.rows}LL) return;
    const long long at = indices[n];
    if ({below} || at >= {self.size}LL) {{
        *report = 1;
        *failed = 1;
    }}
}}
"""
        )

    def add(self) -> CudaSource:
        """Return the kernel that adds, unless something has failed."""
        place = "0" if self.spread else "n"
        sign = "" if self.sign > 0 else "-"
        return CudaSource.of(
            f"""extern "C" __global__ void KERNEL(
    const {INDICES[self.index]} *indices, const {NUMBERS[self.dtype]} *rows,
    {NUMBERS[self.dtype]} *total, const int *failed
) {{
    const long long n = {NUMBER};
    if (n >= {self.rows * self.width}LL || *failed) return;
    const long long at = indices[n / {self.width}LL];
    {NUMBERS[self.dtype]} *const place = total + at * {self.width}LL + n % {self.width}LL;
    if (at >= 0) hr_atomic_add(place, {sign}rows[{place}]);
}}
"""
        )


class AddRows(CudaInstruction):
    """An operation that adds rows up by index."""

    name = "add_rows"

    def __init__(
        self,
        op: Operation,
        shape: ScatterShape,
        indices: Tensor,
        rows: Tensor,
        total: Tensor,
        what: str,
    ) -> None:
        """Describe it.

        Args:
            op: The operation.
            shape: What it adds.
            indices: Where each row belongs.
            rows: What is added.
            total: What it is added to: a result, or the handle of a variable.
            what: What indices are into, for messages.
        """
        self.ops = (op,)
        self.reads = tuple(dict.fromkeys((indices, rows)))
        self.writes = (total,) if shape.clears else ()
        self.updates = () if shape.clears else (total,)
        self._shape, self._indices, self._rows, self._total = shape, indices, rows, total
        self._look, self._add = shape.look(), shape.add()
        message = f"is out of range [0, {shape.size}) of {what}"
        self._check = Refusal(message, IndexError, indices, shape.size)
        self._functions: Mapping[str, Function] = {}

    @property
    def checks(self) -> Sequence[Refusal]:
        """That all indices are within the total."""
        return (self._check,)

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernels."""
        return (self._look, self._add)

    def load(self, functions: Mapping[str, Function]) -> None:
        """Take the kernels."""
        self._functions = functions

    def start(self, at: Callable[[Any], int], scratch: int) -> None:
        """Start the kernels."""
        shape, total = self._shape, at(self._total)
        looked = max(shape.rows, shape.size * shape.width if shape.clears else 0)
        look, add = (self._functions[each.name] for each in (self._look, self._add))
        start_each(look, looked, at(self._indices), total, at(REPORT), at(FAILED))
        added = shape.rows * shape.width
        start_each(add, added, at(self._indices), at(self._rows), total, at(FAILED))

    def flops(self) -> int:
        """Return how many additions it does."""
        return self._shape.rows * self._shape.width

    def source(self) -> str:
        """Return the kernels in CUDA C++."""
        return f"{self._look.text}\n{self._add.text}"
