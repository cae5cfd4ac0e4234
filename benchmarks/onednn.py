"""Bare convolutions and products of oneDNN through its C interface: the machine's own speed.

This is a yardstick and shares no code with Headrace: each primitive takes the memory layout that
it likes best, so nothing is spent on changes of layout.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.peers import ONEDNN_LIBRARY, library_path

Array = npt.NDArray[np.float32]
_Pointer = ctypes.c_void_p
_Extents = ctypes.c_int64 * 12

# Constants of dnnl_types.h.
_CPU, _IN_ORDER, _FLOAT32, _ANY_LAYOUT = 1, 1, 3, 1
_FORWARD_TRAINING, _CONVOLUTION_DIRECT = 64, 1
_SOURCE, _TARGET, _WEIGHTS = 1, 17, 33
_SOURCE_GRADIENT, _TARGET_GRADIENT, _WEIGHTS_GRADIENT = 129, 145, 161
# Which argument of a primitive a query for its memory layout asks for.
_LAYOUT_OF = {
    _SOURCE: 129,
    _SOURCE_GRADIENT: 130,
    _WEIGHTS: 131,
    _WEIGHTS_GRADIENT: 132,
    _TARGET: 133,
    _TARGET_GRADIENT: 134,
}


class _Argument(ctypes.Structure):
    _fields_ = (("which", ctypes.c_int), ("memory", _Pointer))


@dataclass(frozen=True)
class Shape:
    """A convolution's sizes; all is square."""

    batch: int
    channels: int
    extent: int
    filters: int
    kernel: int
    stride: int
    padding: int

    @property
    def output_extent(self) -> int:
        """Height and width of the result."""
        return (self.extent + 2 * self.padding - self.kernel) // self.stride + 1


class Library:
    """oneDNN with an engine and a stream on the CPU."""

    def __init__(self) -> None:
        """Load the library."""
        self._library = ctypes.CDLL(str(library_path(ONEDNN_LIBRARY)))
        self._library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        self._library.dnnl_primitive_desc_query_md.restype = _Pointer
        self._engine, self._stream = _Pointer(), _Pointer()
        self._check("dnnl_engine_create", ctypes.byref(self._engine), _CPU, ctypes.c_size_t(0))
        self._check("dnnl_stream_create", ctypes.byref(self._stream), self._engine, _IN_ORDER)
        # Memory objects refer to these.
        self._buffers: list[Array] = []

    def convolution(self, shape: Shape, *, to_source: bool) -> list[Callable[[], None]]:
        """Make a convolution's forward pass and gradients.

        Args:
            shape: its sizes.
            to_source: whether to make the gradient with respect to the images, too.

        Returns:
            One callable per pass.
        """
        source = self._layout(shape.batch, shape.channels, shape.extent, shape.extent)
        weights = self._layout(shape.filters, shape.channels, shape.kernel, shape.kernel)
        extent = shape.output_extent
        target = self._layout(shape.batch, shape.filters, extent, extent)
        padding = _extents(shape.padding, shape.padding)
        window = (_extents(shape.stride, shape.stride), _extents(0, 0), padding, padding)
        kind = _CONVOLUTION_DIRECT
        name = "dnnl_convolution_{}_primitive_desc_create"
        forward = self._described(
            name.format("forward"),
            *(_FORWARD_TRAINING, kind, source, weights, None, target, *window),
        )
        to_weights = self._described(
            name.format("backward_weights"),
            *(kind, source, weights, None, target, *window, forward),
        )
        passes = [
            self._primitive(forward, _SOURCE, _WEIGHTS, _TARGET),
            self._primitive(to_weights, _SOURCE, _TARGET_GRADIENT, _WEIGHTS_GRADIENT),
        ]
        if to_source:
            backward = self._described(
                name.format("backward_data"),
                *(kind, source, weights, target, *window, forward),
            )
            passes.append(self._primitive(backward, _TARGET_GRADIENT, _WEIGHTS, _SOURCE_GRADIENT))
        return passes

    def product(self, rows: int, inner: int, columns: int) -> Callable[[], None]:
        """Make the product of a matrix [rows, inner] and one [inner, columns]."""
        layouts = [
            self._rows(rows, inner),
            self._rows(inner, columns),
            self._rows(rows, columns),
        ]
        described = self._described(
            "dnnl_matmul_primitive_desc_create", layouts[0], layouts[1], None, layouts[2]
        )
        return self._primitive(described, _SOURCE, _WEIGHTS, _TARGET)

    def _primitive(self, described: _Pointer, *which: int) -> Callable[[], None]:
        """Make a primitive and memory for its arguments."""
        primitive = _Pointer()
        self._check("dnnl_primitive_create", ctypes.byref(primitive), described)
        memories = [_Argument(one, self._memory(described, one)) for one in which]
        arguments = (_Argument * len(memories))(*memories)

        def run() -> None:
            count = len(arguments)
            self._check("dnnl_primitive_execute", primitive, self._stream, count, arguments)
            self._check("dnnl_stream_wait", self._stream)

        return run

    def _memory(self, described: _Pointer, which: int) -> _Pointer:
        """Make memory of the layout that a primitive wants for an argument."""
        query = self._library.dnnl_primitive_desc_query_md
        layout = _Pointer(query(described, _LAYOUT_OF[which], 0))
        size = self._library.dnnl_memory_desc_get_size(layout)
        # Numbers like those of a network: zeros might be quicker than they should be.
        buffer = np.random.default_rng(0).random(size // 4, np.float32) * np.float32(0.01)
        self._buffers.append(buffer)
        memory = _Pointer()
        data = buffer.ctypes.data_as(_Pointer)
        self._check("dnnl_memory_create", ctypes.byref(memory), layout, self._engine, data)
        return memory

    def _described(self, function: str, *arguments: object) -> _Pointer:
        """Describe a primitive."""
        described = _Pointer()
        self._check(function, ctypes.byref(described), self._engine, *arguments, None)
        return described

    def _layout(self, *extents: int) -> _Pointer:
        """Describe a tensor whose layout the primitive may choose."""
        layout = _Pointer()
        create = "dnnl_memory_desc_create_with_tag"
        shape = (len(extents), _extents(*extents), _FLOAT32, _ANY_LAYOUT)
        self._check(create, ctypes.byref(layout), *shape)
        return layout

    def _rows(self, rows: int, columns: int) -> _Pointer:
        """Describe a matrix that lies row by row, as an activation does."""
        layout = _Pointer()
        create = "dnnl_memory_desc_create_with_strides"
        shape = (2, _extents(rows, columns), _FLOAT32, _extents(columns, 1))
        self._check(create, ctypes.byref(layout), *shape)
        return layout

    def _check(self, function: str, *arguments: object) -> None:
        """Call a function of the library.

        Raises:
            RuntimeError: if it returns an error.
        """
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} of oneDNN failed with status {status}")


def _extents(*values: int) -> ctypes.Array[ctypes.c_int64]:
    """Return sizes as the library takes them."""
    return _Extents(*values)
