"""Gradients of array ops: reshaping, joining and splitting, gathering and padding."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from headrace.extend import GradientTable, IndexedSlices, Operation, Tensor
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import call_op
from headrace.ops.array import concat, reshape, shape, size, stack, transpose
from headrace.ops.constant import shape_of, zeros_like
from headrace.ops.reduce import reduce_prod, reduce_sum, unsorted_segment_sum
from headrace.shapes import normalize_axis
from headrace_autodiff.shaping import dims_of, join_dims, take, unbroadcast

RULES = GradientTable()

Grad = Tensor | IndexedSlices | None


@RULES.add("Identity")
def _identity(op: Operation, grad: Grad) -> tuple[Grad]:
    return (grad,)


@RULES.add("IdentityN")
def _identity_n(op: Operation, *grads: Grad) -> Sequence[Grad]:
    return grads


# -- the same elements in another arrangement


@RULES.add("Reshape")
def _reshape(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return reshape(grad, shape_of(op.inputs[0])), None


@RULES.add("ExpandDims")
@RULES.add("Squeeze")
def _same_elements(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (reshape(grad, shape_of(op.inputs[0])),)


@RULES.add("Transpose")
def _transpose(op: Operation, grad: Tensor) -> tuple[Tensor]:
    perm = op.attrs["perm"]
    if perm is None:
        return (transpose(grad),)
    order = [p % len(perm) for p in perm]
    return (transpose(grad, [order.index(i) for i in range(len(order))]),)


# -- joining and splitting


@RULES.add("Concat")
def _concat(op: Operation, grad: Tensor) -> Sequence[Tensor]:
    axis = op.attrs["axis"]
    ranks = [t.shape.rank for t in op.inputs if t.shape.rank is not None]
    if ranks:
        axis = normalize_axis(axis, ranks[0])
    sizes = [None if t.shape.rank is None else t.shape[axis] for t in op.inputs]
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


def _filled(op: Operation, grads: Sequence[Tensor | None]) -> list[Tensor]:
    pairs = zip(op.outputs, grads, strict=True)
    return [zeros_like(t) if grad is None else grad for t, grad in pairs]


# -- gathering, repeating, padding


@RULES.add("Gather")
def _gather(op: Operation, grad: Tensor) -> tuple[Tensor | IndexedSlices, None]:
    params, indices = op.inputs
    axis = op.attrs["axis"]
    if params.shape.rank is not None:
        axis = normalize_axis(axis, params.shape.rank)
    count = indices.shape.num_elements
    rows = [count] if count is not None else reshape(size(indices), [1])
    flat = indices if indices.shape.rank == 1 else reshape(indices, rows)
    if axis == 0:
        values = grad
        if indices.shape.rank != 1:
            values = reshape(grad, join_dims(rows, dims_of(params, 1, None)))
        return IndexedSlices(values, flat, convert_to_tensor(shape_of(params))), None
    # Bring the gathered axis to the front, add up there, and bring it back.
    before = _product(dims_of(params, 0, axis))
    after = _product(dims_of(params, axis + 1, None) if axis != -1 else [])
    blocks = transpose(reshape(grad, join_dims(before, rows, after)), [1, 0, 2])
    summed = unsorted_segment_sum(blocks, flat, shape(params)[axis])
    return reshape(transpose(summed, [1, 0, 2]), shape_of(params)), None


def _product(dims: Any) -> Any:
    """Return the product of dimensions as a list or vector of one."""
    return [prod(dims)] if isinstance(dims, list) else reduce_prod(dims, 0, keepdims=True)


@RULES.add("BroadcastTo")
def _broadcast_to(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return unbroadcast(grad, op.inputs[0], op.outputs[0].shape), None


@RULES.add("Tile")
def _tile(op: Operation, grad: Tensor) -> tuple[Tensor]:
    source = op.inputs[0]
    multiples = op.attrs["multiples"]
    if not multiples:
        return (grad,)
    known = source.shape.dims if source.shape.is_fully_defined else None
    dims: Any
    if known is not None:
        dims = [d for pair in zip(multiples, known, strict=True) for d in pair]
    else:
        dims = reshape(stack([convert_to_tensor(multiples), shape(source)], 1), [-1])
    return (reduce_sum(reshape(grad, dims), list(range(0, 2 * len(multiples), 2))),)


@RULES.add("Pad")
def _pad(op: Operation, grad: Tensor) -> tuple[Tensor]:
    # A scalar has no paddings; indexing it with nothing would not be an index.
    inner = [slice(b or None, -a if a else None) for b, a in op.attrs["paddings"]]
    return (grad[tuple(inner)] if inner else grad,)
