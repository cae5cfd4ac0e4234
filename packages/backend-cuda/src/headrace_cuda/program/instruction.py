"""Instructions of programs on a GPU: each starts one or several kernels on addresses."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from headrace import Tensor
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cuda.program.platform import CudaSource, Function


class CudaInstruction(Instruction):
    """Something that a program does on buffers of a GPU.

    What an instruction says of itself (``ops``, ``reads``, ``writes``, ``updates``, ``scratch``,
    ``reuses``, ``name``) means what it means on the CPU. Buffers are C-contiguous, of known shapes
    and of the tensors' dtypes; bool is a byte of 0 or 1.

    Attributes:
        waits: Whether the host waits for something in it: such a one is no part of a graph.
    """

    package = "headrace-backend-cuda"
    waits = False

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernels that it starts; those of one program are compiled together."""
        return ()

    def load(self, functions: Mapping[str, Function]) -> None:  # noqa: B027 - some have no kernels
        """Take its kernels, by name, and prepare everything that allocates; called once."""

    @abstractmethod
    def start(self, at: Callable[[Tensor], int], scratch: int) -> None:
        """Start its work on the GPU's stream; allocate nothing, and wait for nothing.

        It may be recorded into a CUDA graph, which later runs with the same addresses.

        Args:
            at: Returns the address of each tensor that it reads, writes or updates.
            scratch: The address of its scratch memory, aligned to 256 bytes.
        """

    def bind(self, at: Addresses) -> Bound:
        """Return what starts the instruction on buffers at ``at``."""
        known: dict[Tensor, int] = {}
        point: dict[Tensor, Callable[[int], object]] = {}
        for tensor in dict.fromkeys((*self.reads, *self.writes, *self.updates)):
            found = at.of(tensor)
            if found is None:
                point[tensor] = functools.partial(known.__setitem__, tensor)
            else:
                known[tensor] = found
        scratch = at.scratch() if self.scratch else 0
        return Bound(functools.partial(self.start, known.__getitem__, scratch), point)
