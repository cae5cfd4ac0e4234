"""Gradients of joining and splitting, and of repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import Operation, Tensor, concat, shape, stack, tile, zeros_like
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.ops import call_op, normalize_axis
from headrace.extend.primitives import tile_grad
from headrace_autodiff.shaping import shaped_as, take

RULES = GradientTable()


@RULES.add("Concat")
def _concat(op: Operation, grad: Tensor) -> Sequence[Tensor]:
    axis = op.attrs["axis"]
    ranks = [t.shape.rank for t in op.inputs if t.shape.rank is not None]
    if ranks:
        axis = normalize_axis(axis, ranks[0])
    sizes = [None if t.shape.rank is None else t.spec.shape[axis] for t in op.inputs]
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
