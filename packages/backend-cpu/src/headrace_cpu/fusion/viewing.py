"""Operations as nodes: views, copies of parts, and updates of variables."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from headrace import Operation
from headrace_cpu.fusion.build import Builder, Unfit, shape_of_value
from headrace_cpu.fusion.nodes import (
    Dim,
    Operand,
    Value,
    View,
    Write,
    code_of,
    contiguous,
    element_code,
    shape_of,
)
from headrace_cpu.fusion.parts import BORDER_RULES, PART_RULES


def _alias(b: Builder, op: Operation) -> None:
    b.values[op.outputs[0]] = b.value(op.inputs[0])


def _reshape(b: Builder, op: Operation) -> None:
    b.values[op.outputs[0]] = b.reshape(b.value(op.inputs[0]), shape_of(op.outputs[0]))


def _broadcast(b: Builder, op: Operation) -> None:
    b.values[op.outputs[0]] = b.broadcast(b.value(op.inputs[0]), shape_of(op.outputs[0]))


def _fill(b: Builder, op: Operation) -> None:
    b.values[op.outputs[0]] = b.broadcast(b.value(op.inputs[1]), shape_of(op.outputs[0]))


def _transpose(b: Builder, op: Operation) -> None:
    value = b.value(op.inputs[0])
    rank = len(shape_of_value(value))
    order = op.attrs["perm"]
    order = tuple(reversed(range(rank))) if order is None else tuple(p % rank for p in order)
    b.values[op.outputs[0]] = b.permute(value, order)


def _split(b: Builder, op: Operation) -> None:
    value = b.value(op.inputs[0])
    axis = op.attrs["axis"] % len(shape_of(op.inputs[0]))
    start = 0
    for tensor, size in zip(op.outputs, op.attrs["sizes"], strict=True):
        b.values[tensor] = b.part(value, axis, range(start, start + size))
        start += size


def _concat(b: Builder, op: Operation) -> None:
    result = op.outputs[0]
    shape = shape_of(result)
    strides = contiguous(shape)
    axis = op.attrs["axis"] % len(shape)
    if code_of(result.dtype) is None:
        raise Unfit("joins what is not computed with")
    start, parts = 0, []
    for tensor in op.inputs:
        size = shape_of(tensor)[axis]
        if size:
            operand = b.operand(tensor)
            b.domain.note(operand.axes)
            parts.append(Write(operand, result, strides, start * strides[axis]))
        start += size
    b.parts[result] = parts


def _one_hot(b: Builder, op: Operation) -> None:
    indices = b.operand(op.inputs[0])
    on, off = b.value(op.inputs[1]), b.value(op.inputs[2])
    shape = shape_of(op.outputs[0])
    axis = op.attrs["axis"] % len(shape)
    axes = (*indices.axes[:axis], None, *indices.axes[axis:])
    depth = shape[axis]
    code = indices.node.code
    if code not in ("i32", "i64", "u8"):
        raise Unfit("indices of another dtype")
    if depth == 1:
        place: Operand = b.const(0, code)
    else:
        place = b.position(Dim(depth), code, len(shape) - 1 - axis)
    hit = b.map("equal", Operand(indices.node, axes), place, code="b8")
    b.values[op.outputs[0]] = b.map("where", hit, on, off)


def _update(b: Builder, op: Operation) -> None:
    handle, value = op.inputs
    content = handle.spec.content
    shape = shape_of(value)
    if content is None or content.shape.dims != shape:
        raise Unfit("a variable of another shape")
    if handle in b.updates or element_code(handle) in (None, "b8", "u8"):
        raise Unfit("updates a variable twice, or one of another dtype")
    operand: Value = b.value(value)
    if op.type != "AssignVariable":
        before = View(handle, shape, contiguous(shape))
        name = "add" if op.type == "AssignAddVariable" else "subtract"
        operand = b.map(name, before, operand)
    new = b.load(operand)
    b.domain.note(new.axes)
    b.updates[handle] = Write(new, handle, contiguous(shape), update=True)
    b.values[op.outputs[0]] = new


def _read(b: Builder, op: Operation) -> None:
    """Read a variable that the group updates: its buffer holds the old value until then."""
    shape = shape_of(op.outputs[0])
    b.values[op.outputs[0]] = View(op.inputs[0], shape, contiguous(shape))


READ_RULES: dict[str, Callable[[Builder, Operation], None]] = {"ReadVariable": _read}
VIEW_RULES: dict[str, Callable[[Builder, Operation], None]] = {
    "Identity": _alias,
    "StopGradient": _alias,
    "EnsureShape": _alias,
    "Reshape": _reshape,
    "ExpandDims": _reshape,
    "Squeeze": _reshape,
    "BroadcastTo": _broadcast,
    "Transpose": _transpose,
    "Split": _split,
    **PART_RULES,
}
COPY_RULES: dict[str, Callable[[Builder, Operation], None]] = {
    "Fill": _fill,
    "Concat": _concat,
    "OneHot": _one_hot,
    **BORDER_RULES,
}
UPDATE_RULES: dict[str, Callable[[Builder, Operation], None]] = dict.fromkeys(
    ("AssignVariable", "AssignAddVariable", "AssignSubVariable"), _update
)


def elements(op: Operation) -> int:
    """Return how many elements an operation's first output has."""
    return prod(shape_of(op.outputs[0])) if op.outputs else 0
