"""Instructions that convolve images, and compute the gradients of that.

Libraries have the channels last in activations and in filters. Filters lie as [height, width, in,
out] in tensors; so they are transposed into scratch memory before, and back after, which is little
beside the convolution. Activations whose channels are first are transposed too: cuDNN's own kernels
for them take gigabytes of scratch memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headrace import Operation, Tensor
from headrace_cuda.convolution.library import (
    Convolution,
    ConvolutionPlaces,
    ConvolutionShape,
    Direction,
)
from headrace_cuda.convolution.transpose import TRANSPOSE, transpose
from headrace_cuda.program.instruction import CudaInstruction
from headrace_cuda.program.platform import ALIGNMENT, CudaSource, Function

_NAMES = {
    Direction.FORWARD: "convolve",
    Direction.TO_ACTIVATIONS: "convolve_to_activations",
    Direction.TO_FILTER: "convolve_to_filter",
}
_SIZE = 4


@dataclass(frozen=True, slots=True)
class _Change:
    """How an operand is transposed into scratch memory, or from there.

    Attributes:
        offset: Where it lies in scratch memory.
        rows: Of each matrix, as it lies in the tensor.
        columns: Of each matrix.
        batch: How many matrices there are.
    """

    offset: int
    rows: int
    columns: int
    batch: int = 1


@dataclass(frozen=True, slots=True)
class ConvolutionOperands:
    """The tensors of a convolution.

    Attributes:
        activations: The activations, or their gradient.
        filter: The filter, or its gradient.
        out: The result, or its gradient.
        bias: What is added to every pixel of the result.
    """

    activations: Tensor
    filter: Tensor
    out: Tensor
    bias: Tensor | None = None


class Convolve(CudaInstruction):
    """A convolution with what follows it, or a gradient of one.

    Args:
        ops: What it computes.
        shape: The convolution.
        convolution: What computes it.
        operands: Its tensors.
        channels_first: Whether activations and results lie as [images, channels, height, width].
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        shape: ConvolutionShape,
        convolution: Convolution,
        operands: ConvolutionOperands,
        channels_first: bool = False,
    ) -> None:
        self.name = _NAMES[shape.direction]
        self.ops = tuple(ops)
        self.shape = shape
        self._convolution = convolution
        self._operands = operands
        named = {
            "activations": operands.activations,
            "filter": operands.filter,
            "out": operands.out,
        }
        self._written = {
            Direction.FORWARD: "out",
            Direction.TO_ACTIVATIONS: "activations",
            Direction.TO_FILTER: "filter",
        }[shape.direction]
        self._named = named
        bias = [] if operands.bias is None else [operands.bias]
        read = [tensor for name, tensor in named.items() if name != self._written]
        self.reads = tuple(dict.fromkeys([*read, *bias]))
        self.writes = (named[self._written],)
        self._changes, room = _changes(shape, channels_first)
        self._room = room
        self.scratch = room + convolution.scratch
        self._transpose: Function | None = None

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernel that transposes, where something is."""
        return [TRANSPOSE] if self._changes else []

    def load(self, functions: Mapping[str, Function]) -> None:
        """Take the kernel."""
        if self._changes:
            self._transpose = functions[TRANSPOSE.name]

    def start(self, at: Callable[[Tensor], int], scratch: int) -> None:
        """Start the convolution, between what transposes its operands."""
        places = {name: at(tensor) for name, tensor in self._named.items()}
        inner = dict(places)
        for name, change in self._changes.items():
            inner[name] = scratch + change.offset
            if name != self._written:
                self._change(places[name], inner[name], change.rows, change.columns, change.batch)
        bias = 0 if self._operands.bias is None else at(self._operands.bias)
        self._convolution.start(ConvolutionPlaces(**inner, bias=bias), scratch + self._room)
        back = self._changes.get(self._written)
        if back is not None:
            source, target = inner[self._written], places[self._written]
            self._change(source, target, back.columns, back.rows, back.batch)

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return self.shape.flops

    def source(self) -> str:
        """Return what computes it."""
        changed = ", ".join(self._named[name].name for name in self._changes)
        return f"{self._convolution.name}: {self.shape}" + (
            f", transposes {changed}" if changed else ""
        )

    def _change(self, source: int, target: int, rows: int, columns: int, batch: int) -> None:
        assert self._transpose is not None, "the instruction is not loaded"
        transpose(self._transpose, source, target, rows, columns, batch)


def _changes(shape: ConvolutionShape, channels_first: bool) -> tuple[dict[str, _Change], int]:
    """Return what is transposed, and the bytes of scratch memory for it."""
    taps = math.prod(shape.window) * shape.channels // shape.groups
    matrices = {"filter": (taps, shape.filters, 1)}
    if channels_first:
        matrices |= {
            "activations": (shape.channels, math.prod(shape.image), shape.images),
            "out": (shape.filters, math.prod(shape.out), shape.images),
        }
    found: dict[str, _Change] = {}
    end = 0
    for name, (rows, columns, batch) in matrices.items():
        # A row or a column lies as its transpose does.
        if rows > 1 and columns > 1:
            found[name] = _Change(end, rows, columns, batch)
            end += -(-rows * columns * batch * _SIZE // ALIGNMENT) * ALIGNMENT
    return found, end
