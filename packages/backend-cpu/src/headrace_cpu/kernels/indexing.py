"""Kernels for Python's indexing."""

from __future__ import annotations

from typing import Any

from headrace.extend import KernelTable
from headrace.ops.indexing import ELLIPSIS, decode
from headrace_cpu.kernels.numeric import Array, check_shape, dimensions, integers

KERNELS = KernelTable()


def _index(
    begin: Array, end: Array, strides: Array, entries: str, open_begin: str, open_end: str
) -> tuple[Any, ...]:
    steps = integers(strides)
    if 0 in steps:
        raise ValueError("the step of a slice must not be 0")
    index = decode(integers(begin), integers(end), steps, entries, open_begin, open_end)
    # With an ellipsis the result is an array even where every axis is indexed.
    return index if ELLIPSIS in entries else (*index, Ellipsis)


@KERNELS.plain("StridedSlice")
def strided_slice(
    xp: Any,
    x: Array,
    begin: Array,
    end: Array,
    strides: Array,
    *,
    entries: str,
    open_begin: str,
    open_end: str,
) -> Array:
    """Index an array."""
    return x[_index(begin, end, strides, entries, open_begin, open_end)]


@KERNELS.plain("StridedSliceGrad")
def strided_slice_grad(
    xp: Any,
    shape: Array,
    begin: Array,
    end: Array,
    strides: Array,
    dy: Array,
    *,
    entries: str,
    open_begin: str,
    open_end: str,
) -> Array:
    """Write ``dy`` into zeros, where the slice read."""
    grad = xp.zeros(dimensions(shape), dy.dtype)
    part = grad[_index(begin, end, strides, entries, open_begin, open_end)]
    check_shape(dy, part.shape, "dy")
    part[...] = dy
    return grad
