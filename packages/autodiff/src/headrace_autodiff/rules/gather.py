"""Gradients of picking parts of tensors by indices, and of putting them back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from headrace import (
    IndexedSlices,
    Operation,
    Tensor,
    concat,
    convert_to_tensor,
    dynamic_partition,
    dynamic_stitch,
    equal,
    expand_dims,
    fill,
    gather,
    gather_nd,
    rank,
    reduce_prod,
    reshape,
    scatter_nd,
    shape,
    size,
    tensor_scatter_update,
    transpose,
    zeros_like,
)
from headrace import range as range_of
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.ops import call_op, normalize_axis
from headrace.extend.primitives import select
from headrace_autodiff.shaping import dims_of, join_dims, shaped_as

RULES = GradientTable()


@RULES.add("Gather")
def _gather(op: Operation, grad: Tensor) -> tuple[Tensor | IndexedSlices, None]:
    params, indices = op.inputs
    axis, shared = op.attrs["axis"], op.attrs["batch_dims"]
    if params.shape.rank is not None:
        axis = normalize_axis(axis, params.shape.rank)
    if shared:
        return _gather_shared(params, indices, grad, axis, shared), None
    count = indices.spec.shape.num_elements()
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
    summed = call_op("UnsortedSegmentSum", blocks, flat, shape(params)[axis])
    return reshape(transpose(summed, [1, 0, 2]), shape_of(params)), None


def _gather_shared(params: Tensor, indices: Tensor, grad: Tensor, axis: int, shared: int) -> Tensor:
    """Add up as if all elements of the shared axes stood one after the other."""
    lead, between = dims_of(params, 0, shared), dims_of(params, shared, axis)
    after = dims_of(params, axis + 1, None) if axis != -1 else []
    batches, rows, width = _product(lead), _product(between), _product(after)
    length = shape(params)[axis]
    picked = _product(dims_of(indices, shared, None))
    blocks = reshape(grad, join_dims(batches, rows, picked, width))
    blocks = reshape(
        transpose(blocks, [0, 2, 1, 3]), join_dims(_one(batches[0] * picked[0]), rows, width)
    )
    places = reshape(indices, join_dims(batches, picked))
    starts = expand_dims(range_of(batches[0]) * length, 1)
    flat = reshape(places + call_op("Cast", starts, places.dtype), _one(batches[0] * picked[0]))
    summed = call_op("UnsortedSegmentSum", blocks, flat, batches[0] * length)
    summed = transpose(reshape(summed, join_dims(batches, _one(length), rows, width)), [0, 2, 1, 3])
    return reshape(summed, shape_of(params))


def _one(size: Any) -> Any:
    """Return a size as a list or vector of one."""
    return [size] if isinstance(size, int) else reshape(size, [1])


def _product(dims: Any) -> Any:
    """Return the product of dimensions as a list or vector of one."""
    return [prod(dims)] if isinstance(dims, list) else reduce_prod(dims, 0, keepdims=True)


@RULES.add("GatherNd")
def _gather_nd(op: Operation, grad: Tensor) -> tuple[Tensor | IndexedSlices, None]:
    params, indices = op.inputs
    if indices.shape.rank == 2 and indices.spec.shape[-1] == 1:
        # Each index names a row: a gradient of rows, as that of gather.
        rows = reshape(indices, [-1])
        return IndexedSlices(grad, rows, convert_to_tensor(shape_of(params))), None
    return scatter_nd(indices, grad, shape_of(params)), None


@RULES.add("ScatterNd")
def _scatter_nd(op: Operation, grad: Tensor) -> tuple[None, Tensor, None]:
    return None, gather_nd(grad, op.inputs[0]), None


@RULES.add("TensorScatter")
def _tensor_scatter(op: Operation, grad: Tensor) -> tuple[Tensor, None, Tensor]:
    _, indices, updates = op.inputs
    picked = gather_nd(grad, indices)
    mode = op.attrs["mode"]
    if mode == "sub":
        return grad, None, -picked
    if mode == "add":
        return grad, None, picked
    kept = tensor_scatter_update(grad, indices, zeros_like(updates))
    # Of updates for one place, only the one that is there has a gradient.
    count = shape(indices)[:-1]
    numbers = reshape(range_of(reduce_prod(count)), count)
    depth = shape(indices)[-1]
    stamped = scatter_nd(indices, zeros_like(numbers), shape(grad)[:depth])
    stamped = tensor_scatter_update(stamped, indices, numbers)
    return kept, None, _where_rows(equal(gather_nd(stamped, indices), numbers), picked)


@RULES.add("DynamicPartition")
def _dynamic_partition(op: Operation, *grads: Tensor | None) -> tuple[Tensor, None]:
    data, partitions = op.inputs
    parts = op.attrs["num_partitions"]
    places = reshape(range_of(size(partitions)), shape_of(partitions))
    indices = dynamic_partition(places, partitions, parts)
    pairs = zip(op.outputs, grads, strict=True)
    whole = [zeros_like(t) if grad is None else grad for t, grad in pairs]
    return reshape(dynamic_stitch(indices, whole), shape_of(data)), None


@RULES.add("DynamicStitch")
def _dynamic_stitch(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    count = op.arity[0]
    places = op.inputs[:count]
    sizes = [size(at) for at in places]
    starts: list[Any] = [0]
    for length in sizes[:-1]:
        starts.append(starts[-1] + length)
    numbers = [
        reshape(range_of(length) + start, shape_of(at))
        for at, length, start in zip(places, sizes, starts, strict=True)
    ]
    # Of slices for one place, only the one that is there has a gradient.
    stamped = dynamic_stitch(places, numbers)
    grads = [
        _where_rows(equal(gather(stamped, at), mine), gather(grad, at))
        for at, mine in zip(places, numbers, strict=True)
    ]
    data = op.inputs[count:]
    return [None] * count + [shaped_as(g, t) for g, t in zip(grads, data, strict=True)]


def _where_rows(chosen: Tensor, rows: Tensor) -> Tensor:
    """Return the slices that were chosen, and zeros for the others."""
    if chosen.shape.rank is not None and rows.shape.rank is not None:
        for _ in range(rows.shape.rank - chosen.shape.rank):
            chosen = expand_dims(chosen, -1)
    else:
        behind = fill(expand_dims(rank(rows) - rank(chosen), 0), 1)
        chosen = reshape(chosen, concat([shape(chosen), behind], 0))
    return select(chosen, rows, zeros_like(rows))
