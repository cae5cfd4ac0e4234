"""Instructions of programs on a GPU: each starts one or several kernels on addresses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace import Tensor
from headrace_cpu.for_backends import Implementation, Refusal
from headrace_cuda.program.platform import CudaSource, Function


class Mark:
    """Stands in the place of a tensor for memory that belongs to no tensor."""

    def __init__(self, name: str) -> None:
        """Give it a name for messages."""
        self.name = name


# An int32 that is not 0 once a check of the graph has failed: then no variable is changed.
FAILED = Mark("failed")
# An int32 of the host for each check of an instruction, which becomes 1 where it fails.
REPORT = Mark("report")
Place = Tensor | Mark


class CudaInstruction(Implementation, ABC):
    """An implementation on buffers of a GPU, which runs as a part of a graph."""

    package = "headrace-backend-cuda"

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernels that it starts; those of one program are compiled together."""
        return ()

    def load(self, functions: Mapping[str, Function]) -> None:
        """Take its kernels, by name, and prepare everything that allocates; called once."""

    @abstractmethod
    def start(self, at: Callable[[Any], int], scratch: int) -> None:
        """Start its work on the GPU's stream; allocate nothing, and wait for nothing.

        It may be recorded into a CUDA graph, which later runs with the same addresses.

        Args:
            at: Returns the address of each tensor that it reads, writes or updates, and of marks.
            scratch: The address of its scratch memory, aligned to 256 bytes.
        """

    @property
    def checks(self) -> Sequence[Refusal]:
        """What no element may be: what each found is in ``REPORT`` once the instruction has run."""
        return ()

    def guard(self) -> None:
        """Change no variable where a check before it has failed; called before ``sources``."""
