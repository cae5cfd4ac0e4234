"""Programs on a GPU: a compiled region in the GPU's memory, and what runs it for the runtime."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from headrace import Tensor
from headrace.extend.devices import ProgramReport, Region, located
from headrace_cpu.for_backends import (
    Compilation,
    CompileSettings,
    Item,
    Lowered,
    Places,
    Program,
    Values,
    describe,
)
from headrace_cuda.program.graph import FailedCheckError, GraphInstruction
from headrace_cuda.program.memory import DeviceMemory
from headrace_cuda.program.platform import Platform


class CudaProgram(Program):
    """A program whose values live on a GPU."""

    def __init__(
        self,
        region: Region,
        items: Sequence[Item],
        values: Values,
        places: Places,
        lowered: Lowered,
        settings: CompileSettings,
        platform: Platform,
        memory: DeviceMemory,
        single: Sequence[Item],
    ) -> None:
        """Compile and load the kernels of the items.

        Args:
            region: What it computes.
            items: What it does, in order.
            values: Where its tensors live.
            places: Where its buffers are.
            lowered: The source of the function that does it.
            settings: What it goes by.
            platform: The GPU.
            memory: Its memory.
            single: The items as they were before they became parts of graphs.

        Raises:
            ExecutionError: if one does not compile.
        """
        self._memory = memory
        self._platform = platform
        self._single = single
        self._uploaded: dict[Tensor, Any] = {}
        super().__init__(region, items, values, places, lowered, settings)
        graphs = [i for i in self.instructions if isinstance(i, GraphInstruction)]
        sources = {s.name: s for graph in graphs for s in graph.sources()}
        functions = platform.load(list(sources.values())) if sources else {}
        for graph in graphs:
            graph.load(functions)

    def _to_compile(self, settings: CompileSettings) -> Compilation | None:
        return None

    def describe(self) -> ProgramReport:
        """Return what it does, with sources."""
        return describe(self.region, self._single, self._values, self._places, self.source)

    def _located(self, error: Exception, traceback: TracebackType | None) -> BaseException:
        if isinstance(error, FailedCheckError):
            return located(error.error, error.op, [], self.region.uses)
        return super()._located(error, traceback)

    def _noted(self, note: Callable[[int], object]) -> Callable[[int], object]:
        def wait(began: int) -> None:
            self._platform.wait()
            note(began)

        return wait

    def _preset(self, root: Tensor) -> Any:
        found = self._uploaded.get(root)
        if found is None:
            value = super()._preset(root)
            if not isinstance(value, np.ndarray):
                return value
            found = self._uploaded[root] = self._platform.upload(value)
        return found


class MakesPrograms(Protocol):
    """Makes the programs of a region."""

    def __call__(self, *, matched: bool) -> CudaProgram:
        """Return one with kernels of its own, or one that runs node by node."""


class HostToHost:
    """Runs a region for the runtime: feeds come from the host, and fetches go back to it.

    The first runs go node by node, as what runs once is not worth a compiler.

    Attributes:
        region: What it computes.
    """

    def __init__(
        self,
        region: Region,
        make: MakesPrograms,
        activate: Any,
        platform: Platform,
        runs: int,
    ) -> None:
        """Begin node by node.

        Args:
            region: The region.
            make: Makes its programs.
            activate: Returns a context in which the GPU is used.
            platform: The GPU.
            runs: How many runs go node by node.
        """
        self.region = region
        self._make = make
        self._activate = activate
        self._platform = platform
        self._left = runs
        self._lock = threading.Lock()
        with activate():
            self._program = make(matched=runs == 0)
        self._compiled = runs == 0

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Run once: return the outputs for values of the inputs."""
        context: AbstractContextManager[Any] = self._activate()
        upload, download = self._platform.upload, self._platform.download
        with context:
            if not self._compiled:
                self._count()
            given = [upload(v) if isinstance(v, np.ndarray) else v for v in values]
            results = self._program(given)
            for index in range(self.region.fetched):
                results[index] = download(results[index])
        return results

    def describe(self) -> ProgramReport:
        """Return what it does, with sources."""
        return self._program.describe()

    def _count(self) -> None:
        with self._lock:
            if self._compiled:
                return
            self._left -= 1
            if self._left < 0:
                self._program = self._make(matched=True)
                self._compiled = True
