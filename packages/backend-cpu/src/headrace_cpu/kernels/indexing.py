"""Kernels for Python's indexing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext, NodeView
from headrace.extend.ops import ELEMENT, ELLIPSIS, SLICE, decode
from headrace.extend.state import VariableCell
from headrace_cpu.kernels.numeric import Array, check_shape, dimensions, integers

KERNELS = KernelTable()
STATE_KERNELS = KernelTable()
PREPARED_KERNELS = KernelTable()


def _index(
    shape: Sequence[int],
    begin: Array,
    end: Array,
    strides: Array,
    entries: str,
    open_begin: str,
    open_end: str,
) -> tuple[Any, ...]:
    """Return the Python index for an array of a shape, which has the elements that it names."""
    steps = integers(strides)
    if {begin.size, end.size, len(steps)} != {len(entries)}:
        raise ValueError(f"begin, end and strides must have {len(entries)} elements")
    if not len(open_begin) == len(open_end) == len(entries):
        raise ValueError(f"open_begin and open_end must have {len(entries)} characters")
    if any(step == 0 for step, entry in zip(steps, entries, strict=True) if entry == SLICE):
        raise ValueError("the step of a slice must not be 0")
    index = decode(integers(begin), integers(end), steps, entries, open_begin, open_end)
    taken = sum(entry in (SLICE, ELEMENT) for entry in entries)
    if taken > len(shape):
        raise IndexError(f"{taken} indices for an array of shape {list(shape)}")
    axis = 0
    for entry, part, step in zip(entries, index, steps, strict=True):
        if entry == ELLIPSIS:
            axis += len(shape) - taken
            continue
        if entry == ELEMENT:
            if step <= 0:
                raise ValueError("the step of an entry that names one element must be 1")
            if not -shape[axis] <= part < shape[axis]:
                raise IndexError(f"index {part} is out of range for axis {axis} of {list(shape)}")
        axis += entry in (SLICE, ELEMENT)
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
    return x[_index(x.shape, begin, end, strides, entries, open_begin, open_end)]


@PREPARED_KERNELS.specialized("StridedSlice")
def strided_slice_of_known_shape(node: NodeView) -> Callable[..., Array] | None:
    """Index an array by what is found out once: most slices have constant ends."""
    x, begin, end, strides = (given.spec for given in node.op.inputs)
    # The plain executor is what others are compared with.
    if not node.options.compiled or not x.shape.is_fully_defined():
        return None
    if begin.value is None or end.value is None or strides.value is None:
        return None
    try:
        index = _index(x.shape.known, begin.value, end.value, strides.value, **node.op.attrs)
    except (ValueError, IndexError):
        # The plain kernel says so when it runs.
        return None

    def part(x: Array, begin: Array, end: Array, strides: Array) -> Array:
        return x[index]

    return part


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
    part = grad[_index(grad.shape, begin, end, strides, entries, open_begin, open_end)]
    check_shape(dy, part.shape, "dy")
    part[...] = dy
    return grad


@STATE_KERNELS.stateful("StridedSliceAssign")
def strided_slice_assign(
    ctx: KernelContext,
    cell: VariableCell,
    begin: Array,
    end: Array,
    strides: Array,
    value: Array,
    *,
    entries: str,
    open_begin: str,
    open_end: str,
) -> Array:
    """Replace a part of a variable's value."""

    def change(old: Array) -> Array:
        index = _index(old.shape, begin, end, strides, entries, open_begin, open_end)
        new = old.copy()
        part = new[index]
        check_shape(value, part.shape, "value")
        part[...] = value
        if isinstance(new, np.ndarray):
            new.flags.writeable = False
        return new

    return cell.update(change)


@KERNELS.plain("Slice")
def block(xp: Any, x: Array, begin: Array, size: Array) -> Array:
    """Return a block."""
    starts, lengths = integers(begin), integers(size)
    if not len(starts) == len(lengths) == x.ndim:
        raise ValueError(
            f"begin and size need {x.ndim} entries for shape {list(x.shape)}, got {list(starts)} "
            f"and {list(lengths)}"
        )
    parts = []
    for axis, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        stop = x.shape[axis] if length == -1 else start + length
        if start < 0 or length < -1 or not start <= stop <= x.shape[axis]:
            raise ValueError(
                f"{length} elements from {start} on do not lie within axis {axis} of shape "
                f"{list(x.shape)}"
            )
        parts.append(slice(start, stop))
    return x[(*parts, ...)]
