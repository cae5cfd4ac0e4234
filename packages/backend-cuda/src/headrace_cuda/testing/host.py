"""A pretended GPU whose memory is the host's."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.extend.kernels import HostArray
from headrace_cuda.convolution.library import ConvolutionLibrary
from headrace_cuda.matmul.library import MatmulLibrary
from headrace_cuda.program.platform import ALIGNMENT, CudaSource, Function
from headrace_cuda.testing.libraries import NumpyConvolutions, NumpyMatmuls


class HostMemory:
    """A platform on memory of the host; what is started has run when the call returns.

    Args:
        matmuls: What multiplies matrices, NumPy if None.
        convolutions: What convolves, NumPy if None.
        load: Compiles kernels; without it there may be none.

    Attributes:
        processors: As many as a small GPU has.
        matmuls: What multiplies matrices.
        convolutions: What convolves.
    """

    processors = 4

    def __init__(
        self,
        matmuls: MatmulLibrary | None = None,
        convolutions: ConvolutionLibrary | None = None,
        load: Callable[[Sequence[CudaSource]], Mapping[str, Function]] | None = None,
    ) -> None:
        self.matmuls: MatmulLibrary = NumpyMatmuls() if matmuls is None else matmuls
        self.convolutions: ConvolutionLibrary | None = convolutions or NumpyConvolutions()
        self._load = load

    def load(self, sources: Sequence[CudaSource]) -> Mapping[str, Function]:
        """Return kernels by name."""
        if not sources:
            return {}
        assert self._load is not None, "nothing compiles kernels here"
        return self._load(sources)

    def allocate(self, size: int) -> Any:
        """Return memory: [size], uint8, aligned as that of a GPU."""
        block = np.empty(size + ALIGNMENT, np.uint8)
        start = -block.ctypes.data % ALIGNMENT
        return block[start : start + size]

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array that is not initialised."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return self.allocate(size).view(dtype).reshape(shape)

    def upload(self, array: HostArray) -> Any:
        """Return a copy."""
        made = self.empty(array.shape, array.dtype)
        made[...] = array
        return made

    def download(self, array: Any) -> HostArray:
        """Return a copy."""
        return np.array(array)

    def address(self, array: Any) -> int:
        """Return the address of an array's first element."""
        return int(array.ctypes.data)

    def view(self, place: int, shape: tuple[int, ...], dtype: Any, owner: Any) -> Any:
        """Return an array over memory; the caller keeps its owner."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return np.frombuffer(memoryview((ctypes.c_char * size).from_address(place)), dtype).reshape(
            shape
        )

    def capture(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return what runs it again."""
        return work
