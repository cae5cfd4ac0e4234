"""Instructions of pools and of their gradients, by generated loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace import Operation, Tensor
from headrace.extend.records import dataclass
from headrace_cpu.kernels.pool import avg_pool, avg_pool_grad, max_pool, max_pool_grad
from headrace_cpu.native.source import KernelSource
from headrace_cpu.windows import pool_kernels as kernels
from headrace_cpu.windows.convolution import numbers
from headrace_cpu.windows.geometry import Geometry
from headrace_cpu.windows.instruction import Call, Interpret, WindowInstruction
from headrace_cpu.windows.text import SIZES

# Fewer channels than this are no work for a thread of its own.
_FEW_CHANNELS = 16


@dataclass(frozen=True, slots=True)
class _Kind:
    """A pool or a gradient.

    Attributes:
        name: Of the instruction.
        interpret: The plain kernel.
        make: Makes the source of the kernel.
        words: Names of its words.
        reads: Names of the words for the operation's inputs, None for those it does not read.
        places: Whether scratch memory is needed for maxima and their places.
    """

    name: str
    interpret: Interpret
    make: Callable[[str], KernelSource]
    words: tuple[str, ...]
    reads: tuple[str | None, ...]
    places: bool = False


_KINDS = {
    "MaxPool": _Kind("max_pool", max_pool, kernels.max_pool, kernels.POOL, ("x",)),
    "AvgPool": _Kind("avg_pool", avg_pool, kernels.avg_pool, kernels.POOL, ("x",)),
    "MaxPoolGrad": _Kind(
        "max_pool_grad",
        max_pool_grad,
        kernels.max_pool_grad,
        kernels.MAX_POOL_GRAD,
        ("x", "grad"),
        places=True,
    ),
    "AvgPoolGrad": _Kind(
        "avg_pool_grad",
        avg_pool_grad,
        kernels.avg_pool_grad,
        kernels.AVG_POOL_GRAD,
        (None, "grad"),
    ),
}


class Pool(WindowInstruction):
    """A pool or its gradient."""

    def __init__(self, op: Operation, shape: Geometry, threads: int) -> None:
        kind = _KINDS[op.type]
        named: dict[str, Tensor] = {
            name: tensor
            for name, tensor in zip(kind.reads, op.inputs, strict=True)
            if name is not None
        }
        super().__init__(op, tuple(named.values()), kind.interpret, threads)
        self.name = kind.name
        self._kind = kind
        self._named = named
        self._shape = shape
        self._dtype = self.writes[0].dtype.name
        # The maxima and their places, in cache lines of the thread's own.
        size = 2 * shape.channels * SIZES[self._dtype]
        self._room = -(-size // 64) * 64 if kind.places else 0
        self.scratch = self._room * self._threads

    def calls(self) -> Sequence[Call]:
        """Return the one kernel."""
        shape = self._shape
        wanted = -(-self._threads // shape.images)
        words = {
            "strips": max(1, min(wanted, shape.channels // _FEW_CHANNELS)),
            **numbers(shape),
        }
        if self._room:
            words["scratch_step"] = self._room
        call = Call(
            self._kind.make(self._dtype),
            self._kind.words,
            tensors={**self._named, "y": self.writes[0]},
            scratch={"scratch": 0} if self._room else {},
            numbers=words,
        )
        return [call]
