"""The platform of a real GPU: kernels through NVRTC and CuPy, graphs by capture of a stream."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.extend.kernels import HostArray
from headrace_cuda.convolution.library import ConvolutionLibrary
from headrace_cuda.hardware import Hardware
from headrace_cuda.matmul.library import MatmulLibrary
from headrace_cuda.nvrtc import Program, cubin
from headrace_cuda.program.platform import CudaSource, Function, Grid
from headrace_cuda.program.prelude import PRELUDE

# How often work is measured of which the quickest is chosen, and how often it runs each time.
_TIMES, _IN_A_ROW = 3, 4


class GpuPlatform:
    """One GPU, as compiled steps use it.

    Attributes:
        processors: How many multiprocessors it has.
    """

    def __init__(self, hardware: Hardware) -> None:
        """Use a GPU that is open."""
        import cupy

        self._cupy = cupy
        self._hardware = hardware
        with hardware.activate():
            device = cupy.cuda.Device(hardware.index)
            attributes, capability = device.attributes, device.compute_capability
            self._recorder = _Recorder(cupy.cuda.Stream(non_blocking=True))
            # Libraries measure while they hold what a graph that is made elsewhere may wait for.
            self._trials = _Recorder(cupy.cuda.Stream(non_blocking=True))
        self.processors: int = attributes["MultiProcessorCount"]
        # As in "90".
        self._arch = f"sm_{capability}"
        self._functions: dict[str, Function] = {}
        self._modules: list[Any] = []
        self._lock = threading.Lock()

    @functools.cached_property
    def matmuls(self) -> MatmulLibrary:
        """What multiplies matrices."""
        # lazy: it loads a large library
        from headrace_cuda.matmul.cublaslt import CublasLt

        return CublasLt(self)

    @functools.cached_property
    def convolutions(self) -> ConvolutionLibrary | None:
        """What computes convolutions, None where the library is not installed."""
        # lazy: it loads a large library
        from headrace_cuda.convolution.cudnn import open_cudnn

        return open_cudnn(self)

    @property
    def stream(self) -> int:
        """The handle of the stream on which this thread starts work."""
        handle: int = self._cupy.cuda.get_current_stream().ptr
        return handle

    def load(self, sources: Sequence[CudaSource]) -> Mapping[str, Function]:
        """Return kernels by name, compiled or taken from the cache."""
        with self._lock:
            missing = sorted({s.name: s for s in sources if s.name not in self._functions}.items())
            if missing:
                self._load([source for _, source in missing])
            return {source.name: self._functions[source.name] for source in sources}

    def _load(self, sources: Sequence[CudaSource]) -> None:
        text = "\n".join([PRELUDE, *(source.text for source in sources)])
        image = cubin(Program("headrace.cu", text, self._arch))
        module = self._cupy.cuda.function.Module()
        module.load(image)
        self._modules.append(module)
        for source in sources:
            self._functions[source.name] = _started(module.get_function(source.name))

    def allocate(self, size: int) -> Any:
        """Return memory of the GPU."""
        return self._cupy.empty(size, np.uint8)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array of the GPU that is not initialised."""
        return self._cupy.empty(shape, dtype)

    def upload(self, array: HostArray) -> Any:
        """Return an array of the GPU with the contents of one of the host."""
        return self._cupy.array(array, order="C")

    def download(self, array: Any) -> HostArray:
        """Return an array of the host with the contents of one of the GPU."""
        host: HostArray = array.get()
        return host

    def address(self, array: Any) -> int:
        """Return the address of an array's first element."""
        place: int = array.data.ptr
        return place

    def view(self, place: int, shape: tuple[int, ...], dtype: Any, owner: Any) -> Any:
        """Return an array over memory of the GPU, which keeps ``owner``."""
        cuda, kind = self._cupy.cuda, np.dtype(dtype)
        size = kind.itemsize * int(np.prod(shape, dtype=int))
        memory = cuda.UnownedMemory(place, size, owner, self._hardware.index)
        return self._cupy.ndarray(shape, kind, cuda.MemoryPointer(memory, 0))

    def wait(self) -> None:
        """Wait until all that was started is done."""
        self._hardware.synchronize()

    def shared_words(self, count: int) -> Any:
        """Return numbers that are 0, in memory of the host that kernels can write to."""
        memory = self._cupy.cuda.alloc_pinned_memory(4 * count)
        words = np.frombuffer(memory, np.int32, count)
        words[...] = 0
        return words

    def measure(self, work: Callable[[], None]) -> float:
        """Run work a few times, and return the least seconds that it took."""
        work()
        # In a graph: by itself it may take longer to start than to run.
        several = self._trials.record(lambda: _repeat(work), self._hardware.stream)
        several()
        return min(self._timed(several) for _ in range(_TIMES)) / _IN_A_ROW

    def _timed(self, work: Callable[[], None]) -> float:
        begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        begin.record(self._hardware.stream)
        work()
        end.record(self._hardware.stream)
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(begin, end)) * 1e-3

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return what runs at one go all that ``work`` starts."""
        return self._recorder.record(work, self._hardware.stream)


@functools.cache
def platform_of(hardware: Hardware) -> GpuPlatform:
    """Return the platform of a GPU, which is one for all sessions of the process."""
    return GpuPlatform(hardware)


class _Recorder:
    """Makes graphs, on a stream of its own: what other threads start does not get into them."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def record(self, work: Callable[[], None], target: Any) -> Callable[[], None]:
        """Return what runs on a stream all that ``work`` starts."""
        with self._lock, self._stream:
            self._stream.begin_capture()
            try:
                work()
            except BaseException:
                self._stream.end_capture()
                raise
            graph = self._stream.end_capture()
        graph.upload(target)
        return functools.partial(graph.launch, target)


def _repeat(work: Callable[[], None]) -> None:
    for _ in range(_IN_A_ROW):
        work()


def _started(kernel: Any) -> Function:
    def start(grid: Grid, block: Grid, *words: int) -> None:
        kernel(grid, block, words)

    return start
