"""Gradients of joining and splitting, and of repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import (
    IndexedSlices,
    Operation,
    Tensor,
    boolean_mask,
    cast,
    concat,
    convert_to_tensor,
    logical_and,
    shape,
    stack,
    tile,
    zeros_like,
)
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.ops import call_op, normalize_axis
from headrace.extend.primitives import tile_grad
from headrace_autodiff.shaping import shaped_as, take

RULES = GradientTable()


@RULES.add("Concat", rows=True)
def _concat(op: Operation, grad: Tensor | IndexedSlices) -> Sequence[Tensor | IndexedSlices]:
    axis = op.attrs["axis"]
    ranks = [t.shape.rank for t in op.inputs if t.shape.rank is not None]
    if ranks:
        axis = normalize_axis(axis, ranks[0])
    sizes = [None if t.shape.rank is None else t.spec.shape[axis] for t in op.inputs]
    if isinstance(grad, IndexedSlices):
        if axis == 0:
            return _parted(op, grad, sizes)
        if axis < 0:
            # Which axis that is shows when the step runs.
            return _cut(op, convert_to_tensor(grad), axis, sizes)
        parts = _cut(op, grad.values, axis, sizes)
        pairs = zip(parts, op.inputs, strict=True)
        return [IndexedSlices(part, grad.indices, shape_of(t)) for part, t in pairs]
    return _cut(op, grad, axis, sizes)


def _parted(op: Operation, grad: IndexedSlices, sizes: Sequence[int | None]) -> list[IndexedSlices]:
    """Return for each tensor that was joined along axis 0 the rows that are its own."""
    found = []
    begin: Any = 0
    for tensor, known in zip(op.inputs, sizes, strict=True):
        length = known if known is not None else cast(shape(tensor)[0], grad.indices.dtype)
        end = begin + length
        own = logical_and(grad.indices >= begin, grad.indices < end)
        values, indices = boolean_mask(grad.values, own), boolean_mask(grad.indices, own)
        found.append(IndexedSlices(values, indices - begin, shape_of(tensor)))
        begin = end
    return found


def _cut(op: Operation, grad: Tensor, axis: int, sizes: Sequence[int | None]) -> Sequence[Tensor]:
    """Cut a tensor, or the rows of one, as the tensors are long that were joined."""
    if all(s is not None for s in sizes):
        parts: list[Tensor] = call_op("Split", grad, sizes, axis)
        return parts
    grads = []
    begin: Any = 0
    for tensor, known in zip(op.inputs, sizes, strict=True):
        end = begin + (known if known is not None else shape(tensor)[axis])
        grads.append(take(grad, axis, begin, end))
        begin = end
    return grads


@RULES.add("Stack")
def _stack(op: Operation, grad: Tensor) -> Sequence[Tensor]:
    parts: list[Tensor] = call_op("Unstack", grad, len(op.inputs), op.attrs["axis"])
    return parts


@RULES.add("Unstack")
def _unstack(op: Operation, *grads: Tensor | None) -> tuple[Tensor]:
    return (stack(_filled(op, grads), op.attrs["axis"]),)


@RULES.add("Split")
def _split(op: Operation, *grads: Tensor | None) -> tuple[Tensor]:
    return (concat(_filled(op, grads), op.attrs["axis"]),)


@RULES.add("SplitBy")
def _split_by(op: Operation, *grads: Tensor | None) -> tuple[Tensor, None]:
    return shaped_as(concat(_filled(op, grads), op.attrs["axis"]), op.inputs[0]), None


def _filled(op: Operation, grads: Sequence[Tensor | None]) -> list[Tensor]:
    pairs = zip(op.outputs, grads, strict=True)
    return [zeros_like(t) if grad is None else grad for t, grad in pairs]


@RULES.add("Tile")
def _tile(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    source, multiples = op.inputs
    return tile_grad(grad, multiples, shape_of(source)), None


@RULES.add("TileGrad")
def _tile_grad(op: Operation, grad: Tensor) -> tuple[Tensor, None, None]:
    return tile(grad, op.inputs[1]), None, None
