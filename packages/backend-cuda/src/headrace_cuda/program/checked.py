"""Instructions that check what is in their inputs: the host waits for what they found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from headrace import Tensor
from headrace_cpu.fusion.nodes import Check
from headrace_cuda.fusion.kernel import FusedKernels
from headrace_cuda.program.instruction import CudaInstruction
from headrace_cuda.program.platform import CudaSource, Function, Platform


@final
class CheckedKernels(CudaInstruction):
    """Fused kernels of which a step raises what they found wrong, before anything is changed."""

    waits = True

    def __init__(self, kernels: FusedKernels, platform: Platform) -> None:
        """Check what kernels report."""
        self._kernels = kernels
        self._platform = platform
        self.ops, self.name = kernels.ops, kernels.name
        shown = (c.indices for c in kernels.checks if c.indices is not None)
        self.reads = tuple(dict.fromkeys((*kernels.reads, *shown)))
        self.writes, self.updates = kernels.writes, kernels.updates
        self.scratch = kernels.scratch

    def sources(self) -> Sequence[CudaSource]:
        """Return the kernels."""
        return self._kernels.sources()

    def load(self, functions: Mapping[str, Function]) -> None:
        """Take the kernels."""
        self._kernels.load(functions)

    def start(self, at: Callable[[Tensor], int], scratch: int) -> None:
        """Run the kernels, and raise what they found."""
        self._kernels.start(at, scratch)
        checks = self._kernels.checks
        found = self._platform.words(scratch + self._kernels.report, len(checks))
        for check, failed in zip(checks, found, strict=True):
            if failed:
                raise self._error(check, at)

    def _error(self, check: Check, at: Callable[[Tensor], int]) -> Exception:
        given = check.indices
        if given is None:
            return check.error(check.message)
        shape, dtype = given.shape.known, given.dtype.numpy
        view = self._platform.view(at(given), shape, dtype, None)
        seen: Any = self._platform.download(view)
        wrong = seen[(seen < 0) | (seen >= check.size)]
        return check.error(f"index {wrong[0]} is out of range: {check.message}")

    def flops(self) -> int:
        """Return how many operations on numbers it does."""
        return self._kernels.flops()

    def source(self) -> str:
        """Return the kernels in CUDA C++."""
        return self._kernels.source()
