"""Instructions of pools and of their gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace import Operation, Tensor
from headrace_cuda.pooling import kernels
from headrace_cuda.pooling.kernels import PoolShape
from headrace_cuda.program.each import start_each
from headrace_cuda.program.instruction import CudaInstruction
from headrace_cuda.program.platform import CudaSource, Function

# What several channels of a thread are moved by at a time.
_ALIGNED = 16


@dataclass(frozen=True, slots=True)
class PoolKind:
    """A pool or a gradient.

    Attributes:
        name: Of the instruction.
        make: Make the sources of its kernels, which run one after the other.
        reads: Which of the operation's inputs are read.
        gradient: Whether the images are what is written.
        places: Whether the first kernel writes the places of maxima, which the second reads.
    """

    name: str
    make: tuple[Callable[[PoolShape], CudaSource], ...]
    reads: tuple[int, ...]
    gradient: bool = False
    places: bool = False


POOLS = {
    "MaxPool": PoolKind("max_pool", (kernels.max_pool,), (0,)),
    "AvgPool": PoolKind("avg_pool", (kernels.avg_pool,), (0,)),
    "MaxPoolGrad": PoolKind(
        "max_pool_grad",
        (kernels.max_places, kernels.max_pool_grad),
        (0, 1),
        gradient=True,
        places=True,
    ),
    "AvgPoolGrad": PoolKind("avg_pool_grad", (kernels.avg_pool_grad,), (1,), gradient=True),
}


class Pool(CudaInstruction):
    """A pool or its gradient.

    Args:
        op: The operation, of a type of ``POOLS``.
        shape: Where the windows lie.
    """

    def __init__(self, op: Operation, shape: PoolShape) -> None:
        self._kind = POOLS[op.type]
        self.name = self._kind.name
        self.ops = (op,)
        self.reads = tuple(dict.fromkeys(op.inputs[i] for i in self._kind.reads))
        self.writes = (op.outputs[0],)
        self.scratch = shape.outputs * shape.place_size if self._kind.places else 0
        self._operands = tuple(op.inputs[i] for i in self._kind.reads)
        self._shape = shape
        # Those of several channels a thread, and those for what is not aligned as these need it.
        self._sources = {
            lanes: tuple(make(replace(shape, lanes=lanes)) for make in self._kind.make)
            for lanes in sorted({shape.most_lanes, 1})
        }
        self._functions: dict[int, tuple[Function, ...]] = {}

    def sources(self) -> Sequence[CudaSource]:
        """Return its kernels."""
        return [source for sources in self._sources.values() for source in sources]

    def load(self, functions: Mapping[str, Function]) -> None:
        """Take its kernels."""
        for lanes, sources in self._sources.items():
            self._functions[lanes] = tuple(functions[source.name] for source in sources)

    def start(self, at: Callable[[Tensor], int], scratch: int) -> None:
        """Start its kernels."""
        *given, last = map(at, self._operands)
        written, shape = at(self.writes[0]), self._shape
        lanes = shape.most_lanes
        if lanes > 1 and any(place % _ALIGNED for place in (*given, last, written)):
            lanes = 1
        functions = self._functions[lanes]
        outputs, inputs = shape.outputs // lanes, shape.inputs // lanes
        if self._kind.places:
            start_each(functions[0], outputs, *given, scratch)
            start_each(functions[1], inputs, scratch, last, written)
        else:
            start_each(functions[0], inputs if self._kind.gradient else outputs, last, written)

    def source(self) -> str:
        """Return the text of its kernels."""
        return "\n".join(source.text for source in self._sources[self._shape.most_lanes])
