"""Libraries of matrices and convolutions that compute with NumPy, on addresses of the host."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace_cuda.convolution.library import ConvolutionPlaces, ConvolutionShape, Direction
from headrace_cuda.matmul.library import MatmulPlaces, MatmulShape

# What plans ask for, so that programs have to give it; it is overwritten.
SCRATCH = 512


def at(address: int, shape: Sequence[int], dtype: str) -> Any:
    """Return an array over memory of the host."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)), dtype).reshape(
        shape
    )


def _spoil(address: int) -> None:
    ctypes.memset(address, 0xA5, SCRATCH)


class NumpyMatmuls:
    """Multiplies with NumPy.

    Args:
        takes: Whether there is a plan for a product; for all if None.

    Attributes:
        shapes: The products for which plans were made.
    """

    def __init__(self, takes: Callable[[MatmulShape], bool] | None = None) -> None:
        self._takes = takes
        self.shapes: list[MatmulShape] = []

    def plan(self, shape: MatmulShape) -> NumpyMatmul | None:
        """Prepare a product."""
        if self._takes is not None and not self._takes(shape):
            return None
        self.shapes.append(shape)
        return NumpyMatmul(shape)


class NumpyMatmul:
    """A product by NumPy.

    Attributes:
        scratch: Bytes of scratch memory.
        name: What computes it.
    """

    name = "NumPy"
    scratch = SCRATCH

    def __init__(self, shape: MatmulShape) -> None:
        self._shape = shape

    @np.errstate(all="ignore")
    def start(self, places: MatmulPlaces, scratch: int) -> None:
        """Compute it."""
        shape, dtype = self._shape, self._shape.dtype
        _spoil(scratch)
        out = at(places.out, (shape.batch, shape.rows, shape.columns), dtype)
        added = at(places.addend, out.shape, dtype).copy() if shape.addend else None
        for i in range(shape.batch):
            left = self._operand(places.left, i * shape.left_step, shape.rows, shape.depth, 0)
            right = self._operand(places.right, i * shape.right_step, shape.depth, shape.columns, 1)
            # Sums of 16 bits are those of 32, as on a GPU.
            wide = np.result_type(dtype, np.float32)
            total = np.matmul(left.astype(wide), right.astype(wide))
            if added is not None:
                total = total + added[i]
            if shape.bias:
                total = total + at(places.bias, (shape.columns,), dtype)
            out[i] = np.maximum(total, 0) if shape.relu else total

    def _operand(self, address: int, skipped: int, rows: int, columns: int, side: int) -> Any:
        shape = self._shape
        start = address + skipped * np.dtype(shape.dtype).itemsize
        if (shape.transpose_left, shape.transpose_right)[side]:
            return at(start, (columns, rows), shape.dtype).T
        return at(start, (rows, columns), shape.dtype)


class NumpyConvolutions:
    """Convolves with NumPy.

    Args:
        takes: Whether there is a plan for a convolution; for all if None.

    Attributes:
        shapes: The convolutions for which plans were made.
    """

    def __init__(self, takes: Callable[[ConvolutionShape], bool] | None = None) -> None:
        self._takes = takes
        self.shapes: list[ConvolutionShape] = []

    def plan(self, shape: ConvolutionShape) -> NumpyConvolution | None:
        """Prepare a convolution."""
        if self._takes is not None and not self._takes(shape):
            return None
        self.shapes.append(shape)
        return NumpyConvolution(shape)


class NumpyConvolution:
    """A convolution by NumPy, one element of the window after the other.

    Attributes:
        scratch: Bytes of scratch memory.
        name: What computes it.
    """

    name = "NumPy"
    scratch = SCRATCH

    def __init__(self, shape: ConvolutionShape) -> None:
        self._shape = shape

    @np.errstate(all="ignore")
    def start(self, places: ConvolutionPlaces, scratch: int) -> None:
        """Compute it."""
        shape = self._shape
        _spoil(scratch)
        groups, each = shape.groups, shape.channels // shape.groups
        images = at(places.activations, (shape.images, *shape.image, groups, each), "float32")
        filters = at(
            places.filter, (groups, shape.filters // groups, *shape.window, each), "float32"
        )
        out = at(places.out, (shape.images, *shape.out, groups, shape.filters // groups), "float32")
        total: Any
        if shape.direction is Direction.FORWARD:
            total = np.zeros(out.shape, np.float32)
            for y, x, inside, padded in self._taps(images):
                total += np.einsum("nhwgc,gfc->nhwgf", padded[inside], filters[:, :, y, x])
            if shape.bias:
                total += at(places.bias, (shape.filters,), "float32").reshape(groups, -1)
            out[...] = np.maximum(total, 0) if shape.relu else total
        elif shape.direction is Direction.TO_FILTER:
            for y, x, inside, padded in self._taps(images):
                filters[:, :, y, x] = np.einsum("nhwgc,nhwgf->gfc", padded[inside], out)
        else:
            total = np.zeros_like(self._padded(images))
            for y, x, inside, _ in self._taps(images):
                total[inside] += np.einsum("nhwgf,gfc->nhwgc", out, filters[:, :, y, x])
            top, left = shape.before
            images[...] = total[:, top : top + shape.image[0], left : left + shape.image[1]]

    def _padded(self, images: Any) -> Any:
        pairs = zip(self._shape.before, self._shape.after, strict=True)
        return np.pad(images, ((0, 0), *pairs, (0, 0), (0, 0)))

    def _taps(self, images: Any) -> Iterator[tuple[int, int, Any, Any]]:
        """Yield each place of the window with where it lies in padded images, and these."""
        shape, padded = self._shape, self._padded(images)
        for place in itertools.product(*map(range, shape.window)):
            parts = []
            for i, number in enumerate(place):
                first = number * shape.dilations[i]
                parts.append(
                    slice(
                        first, first + (shape.out[i] - 1) * shape.strides[i] + 1, shape.strides[i]
                    )
                )
            yield (*place, (slice(None), *parts), padded)
