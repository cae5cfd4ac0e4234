"""Operations as nodes: parts of tensors as views, and tensors around parts.

A slice is its source's memory with other strides, so no kernel copies it. A border is stored box by
box, and the tensor inside of it between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace.extend.ops import decode
from headrace_cpu.fusion.build import Builder, Unfit, shape_of_value
from headrace_cpu.fusion.nodes import (
    Node,
    Operand,
    Value,
    View,
    Write,
    code_of,
    contiguous,
    shape_of,
)


def _known(*tensors: Tensor) -> list[Any]:
    """Return the values of constants.

    Raises:
        Unfit: if one is no constant.
    """
    values = [tensor.spec.value for tensor in tensors]
    if any(value is None for value in values):
        raise Unfit("a part that is not known before the step")
    return values


def _strided_slice(b: Builder, op: Operation) -> None:
    index = decode(*_known(*op.inputs[1:]), **op.attrs)
    b.values[op.outputs[0]] = _taken(b, b.value(op.inputs[0]), index)


def _slice(b: Builder, op: Operation) -> None:
    begin, _ = _known(*op.inputs[1:])
    sizes = shape_of(op.outputs[0])
    index = [slice(int(a), int(a) + n) for a, n in zip(begin, sizes, strict=True)]
    b.values[op.outputs[0]] = _taken(b, b.value(op.inputs[0]), index)


def _reverse(b: Builder, op: Operation) -> None:
    (axes,) = _known(op.inputs[1])
    value = b.value(op.inputs[0])
    rank = len(shape_of_value(value))
    turned = {int(axis) % rank for axis in axes}
    index = [slice(None, None, -1 if axis in turned else 1) for axis in range(rank)]
    b.values[op.outputs[0]] = _taken(b, value, index)


def _taken(b: Builder, value: Value, index: Sequence[Any]) -> Value:
    """Return what a Python index takes of a value."""
    entries = _whole_index(index, len(shape_of_value(value)))
    axis = 0
    # From each axis of the value to those of the result: a part, none, or one more.
    shown: list[int | None] = []
    for entry in entries:
        if entry is None:
            shown.append(None)
            continue
        size = shape_of_value(value)[axis]
        if isinstance(entry, int):
            value = _along(b, value, axis, slice(entry % size, entry % size + 1))
        else:
            value = _along(b, value, axis, entry)
            shown.append(axis)
        axis += 1
    if isinstance(value, View):
        shape = tuple(1 if a is None else value.shape[a] for a in shown)
        strides = tuple(0 if a is None else value.strides[a] for a in shown)
        return View(value.tensor, shape, strides, value.offset)
    return Operand(value.node, tuple(None if a is None else value.axes[a] for a in shown))


def _whole_index(index: Sequence[Any], rank: int) -> list[Any]:
    """Return an index that names every axis."""
    taken = sum(entry is not None and entry is not Ellipsis for entry in index)
    rest = [slice(None)] * (rank - taken)
    if Ellipsis not in index:
        return [*index, *rest]
    place = list(index).index(Ellipsis)
    return [*index[:place], *rest, *index[place + 1 :]]


def _along(b: Builder, value: Value, axis: int, part: slice) -> Value:
    size = shape_of_value(value)[axis]
    places = range(*part.indices(size))
    return value if places == range(size) else b.part(value, axis, places)


def _pad(b: Builder, op: Operation) -> None:
    (paddings,) = _known(op.inputs[1])
    filler = op.inputs[2] if len(op.inputs) > 2 else None
    starts = [int(before) for before, _ in paddings]
    _surround(b, op, b.value(op.inputs[0]), starts, filler)


def _slice_gradient(b: Builder, op: Operation) -> None:
    """Zeros around what a slice of neighbors took."""
    _, *bounds = _known(*op.inputs[:-1])
    shape = shape_of(op.outputs[0])
    entries = [e for e in _whole_index(decode(*bounds, **op.attrs), len(shape)) if e is not None]
    starts, sizes = [], []
    for entry, size in zip(entries, shape, strict=True):
        first = entry % size if isinstance(entry, int) else 0
        part = slice(first, first + 1) if isinstance(entry, int) else entry
        places = range(*part.indices(size))
        if places.step != 1 and len(places) > 1:
            raise Unfit("parts that do not touch")
        starts.append(places[0])
        sizes.append(len(places))
    _surround(b, op, b.reshape(b.value(op.inputs[-1]), sizes), starts, None)


def _surround(
    b: Builder, op: Operation, inner: Value, starts: Sequence[int], filler: Tensor | None
) -> None:
    """Store a value within a result, and one number around it."""
    result = op.outputs[0]
    shape, code = shape_of(result), code_of(result.dtype)
    if code is None:
        raise Unfit("joins what is not computed with")
    strides, sizes = contiguous(shape), shape_of_value(inner)
    zero = Operand(Node("const", code, (), value=np.zeros((), result.dtype.numpy)[()]), ())
    border = zero if filler is None else b.value(filler)

    def write(value: Value, corner: Sequence[int]) -> Write:
        operand = b.load(value)
        b.domain.note(operand.axes)
        offset = sum(c * s for c, s in zip(corner, strides, strict=True))
        return Write(operand, result, strides, offset)

    parts = [write(inner, starts)]
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        for first, count in ((0, start), (start + size, shape[axis] - start - size)):
            if count:
                box = (*sizes[:axis], count, *shape[axis + 1 :])
                corner = (*starts[:axis], first, *(0,) * (len(shape) - axis - 1))
                parts.append(write(b.broadcast(border, box), corner))
    b.parts[result] = parts


PART_RULES: dict[str, Callable[[Builder, Operation], None]] = {
    "Reverse": _reverse,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
}
BORDER_RULES: dict[str, Callable[[Builder, Operation], None]] = {
    "Pad": _pad,
    "StridedSliceGrad": _slice_gradient,
}
