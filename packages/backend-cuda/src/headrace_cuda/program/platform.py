"""What compiled steps need of a GPU, behind one small interface.

The real one is ``gpu.py``; ``headrace_cuda.testing`` has one that runs the same kernels, compiled
by a C++ compiler, on the host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headrace.extend.kernels import HostArray

if TYPE_CHECKING:
    from headrace_cuda.convolution.library import ConvolutionLibrary
    from headrace_cuda.matmul.library import MatmulLibrary

# Buffers start at multiples of this many bytes, as those of the driver do.
ALIGNMENT = 256
# What stands for a kernel's name in its source.
NAME = "KERNEL"

Grid = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class CudaSource:
    """A kernel in CUDA C++.

    Every parameter is a pointer or a ``long long``. What it may use besides the language is in
    ``prelude.py``.

    Attributes:
        name: The function's name, which depends on the text alone.
        text: The function, ``extern "C" __global__ void name(...)``.
    """

    name: str
    text: str

    @classmethod
    def of(cls, text: str) -> CudaSource:
        """Return a kernel with the name that follows from its text, which says ``KERNEL``."""
        name = f"k{hashlib.sha256(text.encode()).hexdigest()[:20]}"
        return cls(name, text.replace(NAME, name))


class Function(Protocol):
    """A kernel that is loaded."""

    def __call__(self, grid: Grid, block: Grid, *words: int) -> None:
        """Start it on the GPU's stream.

        Args:
            grid: How many blocks there are.
            block: How many threads each has.
            words: Addresses and numbers.
        """


class Streaming(Protocol):
    """What libraries need of a GPU: where work is started, and how long it takes."""

    def allocate(self, size: int) -> Any:
        """Return memory of the GPU: [size], uint8, not initialised, aligned to 256 bytes."""

    def address(self, array: Any) -> int:
        """Return the address of an array's first element."""

    def view(self, place: int, shape: tuple[int, ...], dtype: Any, owner: Any) -> Any:
        """Return an array over memory of the GPU, which keeps ``owner``."""

    def download(self, array: Any) -> HostArray:
        """Return an array of the host with the contents of one of the GPU, once they are there."""

    def measure(self, work: Callable[[], None]) -> float:
        """Run work a few times, and return the least seconds that it took; the host waits."""

    @property
    def stream(self) -> int:
        """The handle of the stream on which the calling thread starts work now.

        It is the GPU's, or the one of which a graph is made.
        """


class Platform(Streaming, Protocol):
    """A GPU, as compiled steps use it. All work goes to one stream.

    Attributes:
        processors: How many multiprocessors it has.
    """

    processors: int

    @property
    def matmuls(self) -> MatmulLibrary:
        """What multiplies matrices."""

    @property
    def convolutions(self) -> ConvolutionLibrary | None:
        """What computes convolutions, None where the library is not installed."""

    def load(self, sources: Sequence[CudaSource]) -> Mapping[str, Function]:
        """Return kernels by name, compiled or taken from the cache.

        Raises:
            ExecutionError: if one does not compile.
        """

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array of the GPU that is not initialised."""

    def upload(self, array: HostArray) -> Any:
        """Return an array of the GPU with the contents of one of the host."""

    def wait(self) -> None:
        """Wait until all that was started is done."""

    def shared_words(self, count: int) -> Any:
        """Return numbers (int32) that are 0, in memory of the host that kernels can write to.

        It is an array of NumPy; its address is the same for both.
        """

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return what runs at one go all that ``work`` starts; nothing runs meanwhile.

        ``work`` may allocate nothing and wait for nothing.
        """
