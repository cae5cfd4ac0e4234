"""Picking slices along an axis: one thread for each element of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace import Operation
from headrace_cpu.for_backends import Refusal
from headrace_cuda.program.each import NUMBER, start_each
from headrace_cuda.program.instruction import FAILED, REPORT, CudaInstruction
from headrace_cuda.program.platform import CudaSource, Function

# What moves an element of so many bytes.
WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
INDICES = {"int32": "int", "int64": "long long"}


@dataclass(frozen=True, slots=True)
class GatherShape:
    """What is picked, as ``out[b, o, i, k] = params[b, o, indices[b, i], k]``.

    Attributes:
        batches: How many leading elements share their indices' place.
        outer: Elements between those and the axis.
        size: Of the axis.
        inner: Elements behind the axis.
        picked: Indices of each batch.
        item: Bytes of an element.
        index: The dtype of indices.
    """

    batches: int
    outer: int
    size: int
    inner: int
    picked: int
    item: int
    index: str

    @property
    def count(self) -> int:
        """How many elements the result has."""
        return self.batches * self.outer * self.picked * self.inner

    def source(self) -> CudaSource:
        """Return the kernel: an index out of range is reported, and picks the first slice."""
        word = WORDS[self.item]
        return CudaSource.of(
            f"""extern "C" __global__ void KERNEL(
    const {word} *params, const {INDICES[self.index]} *indices, {word} *out,
    int *report, int *failed
) {{
    const long long n = {NUMBER};
    if (n >= {self.count}LL) return;
    const long long k = n % {self.inner}LL, i = n / {self.inner}LL % {self.picked}LL;
    const long long o = n / {self.inner * self.picked}LL;
    long long at = indices[o / {self.outer}LL * {self.picked}LL + i];
    if (at < 0 || at >= {self.size}LL) {{
        *report = 1;
        *failed = 1;
        at = 0;
    }}
    out[n] = params[(o * {self.size}LL + at) * {self.inner}LL + k];
}}
"""
        )


class Gather(CudaInstruction):
    """An operation that picks slices."""

    name = "gather"

    def __init__(self, op: Operation, shape: GatherShape, what: str) -> None:
        """Describe it.

        Args:
            op: The operation.
            shape: What it picks.
            what: What indices are into, for messages.
        """
        self.ops = (op,)
        self.reads = tuple(dict.fromkeys(op.inputs[:2]))
        self.writes = op.outputs
        self._params, self._indices = op.inputs[:2]
        self._shape = shape
        self._source = shape.source()
        message = f"is out of range [0, {shape.size}) of {what}"
        self._check = Refusal(message, IndexError, self._indices, shape.size)
        self._function: Function

    @property
    def checks(self) -> Sequence[Refusal]:
        """That all indices are within the axis."""
        return (self._check,)

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernel."""
        return (self._source,)

    def load(self, functions: Mapping[str, Function]) -> None:
        """Take the kernel."""
        self._function = functions[self._source.name]

    def start(self, at: Callable[[Any], int], scratch: int) -> None:
        """Start the kernel."""
        places = (at(each) for each in (self._params, self._indices, *self.writes, REPORT, FAILED))
        start_each(self._function, self._shape.count, *places)

    def source(self) -> str:
        """Return the kernel in CUDA C++."""
        return self._source.text
