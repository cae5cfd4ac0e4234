"""A platform that pretends to be a GPU: kernels run on the host, at once."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.extend.kernels import HostArray
from headrace_cpu.for_backends import memory
from headrace_cuda.program.platform import ALIGNMENT, CudaSource, Function
from headrace_cuda.testing.host_compiler import host_functions
from headrace_cuda.testing.libraries import NumpyConvolutions, NumpyMatmuls
from headrace_cuda.testing.module import FakeArray


class FakePlatform:
    """Runs kernels on the host, on arrays of the pretended device.

    Attributes:
        processors: How many multiprocessors it pretends to have.
        started: How many kernels and library calls were started outside of graphs.
        captured: How many graphs were made.
        replayed: How often graphs ran.
    """

    def __init__(self, processors: int = 4) -> None:
        """Begin with nothing started."""
        self.processors = processors
        self.matmuls: Any = _Starting(NumpyMatmuls(), self)
        self.convolutions: Any = _Starting(NumpyConvolutions(), self)
        self.started = self.captured = self.replayed = 0
        # What the graph gets that a thread makes.
        self._thread = threading.local()
        self.stream = 0

    @property
    def _recording(self) -> list[Callable[[], None]] | None:
        found: list[Callable[[], None]] | None = getattr(self._thread, "recording", None)
        return found

    def load(self, sources: Sequence[CudaSource]) -> Mapping[str, Function]:
        """Return kernels compiled for the host."""
        return {name: self._starting(f) for name, f in host_functions(sources).items()}

    def _starting(self, function: Function) -> Function:
        def call(grid: Any, block: Any, *words: int) -> None:
            self.start(lambda: function(grid, block, *words))

        return call

    def start(self, work: Callable[[], None]) -> None:
        """Do work, or record it where a graph is made."""
        recording = self._recording
        if recording is not None:
            recording.append(work)
        else:
            self.started += 1
            work()

    def allocate(self, size: int) -> FakeArray:
        """Return memory that holds nothing sensible."""
        block = np.full(size + ALIGNMENT, 0xA5, np.uint8)
        start = -memory.address(block) % ALIGNMENT
        return FakeArray(block[start : start + size])

    def empty(self, shape: tuple[int, ...], dtype: Any) -> FakeArray:
        """Return an array that holds nothing sensible."""
        return FakeArray(np.frombuffer(self._noise(shape, dtype), dtype).reshape(shape).copy())

    def _noise(self, shape: tuple[int, ...], dtype: Any) -> bytes:
        size: int = math.prod(shape) * np.dtype(dtype).itemsize
        return b"\xa5" * size

    def upload(self, array: HostArray) -> FakeArray:
        """Return a copy that pretends to be on the GPU."""
        return FakeArray(np.array(array, order="C"))

    def download(self, array: FakeArray) -> HostArray:
        """Return a copy on the host."""
        return np.array(array.host)

    def address(self, array: FakeArray) -> int:
        """Return the address of an array's first element."""
        if self._recording is not None:
            raise AssertionError("addresses are found before a graph is made")
        return memory.address(array.host)

    def view(self, place: int, shape: tuple[int, ...], dtype: Any, owner: Any) -> FakeArray:
        """Return an array over memory."""
        return FakeArray(memory.view(place, shape, dtype, owner))

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record what ``work`` starts."""
        recorded: list[Callable[[], None]] = []
        self._thread.recording = recorded
        try:
            work()
        finally:
            self._thread.recording = None
        self.captured += 1

        def replay() -> None:
            self.replayed += 1
            for each in recorded:
                each()

        return replay

    def measure(self, work: Callable[[], None]) -> float:
        """Run work once, and pretend that it took no time."""
        work()
        return 0.0

    def wait(self) -> None:
        """Do nothing: what was started is done."""

    def shared_words(self, count: int) -> Any:
        """Return numbers that are 0."""
        return np.zeros(count, np.int32)


class _Starting:
    """A library of which everything that it starts is started by a platform."""

    def __init__(self, library: Any, platform: FakePlatform) -> None:
        self._library = library
        self._platform = platform

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def plan(self, *args: Any) -> Any:
        """Prepare something."""
        made = self._library.plan(*args)
        return None if made is None else _Started(made, self._platform)


class _Started:
    def __init__(self, made: Any, platform: FakePlatform) -> None:
        self._made = made
        self._platform = platform

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def start(self, places: Any, scratch: int) -> None:
        self._platform.start(lambda: self._made.start(places, scratch))
