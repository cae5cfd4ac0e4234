"""Undoing broadcasts and reductions, with static shapes where they tell enough."""

from __future__ import annotations

from typing import Any

from headrace import (
    Shape,
    Tensor,
    broadcast_to,
    concat,
    ensure_shape,
    expand_dims,
    reduce_sum,
    reshape,
    shape,
)
from headrace.extend.gradients import shape_of, sum_to_shape
from headrace.extend.ops import reduced_axes


def unbroadcast(grad: Tensor, like: Tensor, *others: Shape, keep: int = 0) -> Tensor:
    """Sum ``grad`` over the axes along which ``like`` was broadcast.

    Args:
        grad: [...], a gradient of the broadcast shape.
        like: The operand to whose shape the gradient is summed.
        others: The static shapes that ``like`` was broadcast against.
        keep: How many trailing axes were not broadcast.

    Returns:
        A tensor of the shape of ``like``.
    """
    found = _broadcast_axes(like.spec.shape, others, keep)
    if found is None:
        return sum_to_shape(grad, shape_of(like))
    stretched, added = found
    if stretched:
        grad = reduce_sum(grad, stretched, keepdims=True)
    if added:
        grad = reduce_sum(grad, added)
    return grad


def _broadcast_axes(
    like: Shape, others: tuple[Shape, ...], keep: int
) -> tuple[list[int], list[int]] | None:
    """Return which axes of the result were of size 1 and which were not there; None if unknown."""
    if like.dims is None or any(o.dims is None for o in others):
        return None
    if None not in like.dims and all(o.dims == like.dims for o in others):
        return [], []
    rank = max(len(s) for s in (like, *others))
    added = rank - len(like)
    stretched = []
    for axis in range(added, rank - keep):
        mine = like[axis - added]
        theirs = [o[axis - (rank - len(o))] for o in others if axis >= rank - len(o)]
        if all(dim == 1 for dim in theirs) or (mine is not None and mine != 1):
            continue
        if mine is None:
            return None
        stretched.append(axis)
    return stretched, list(range(added))


def with_reduced_axes(tensor: Tensor, op: Any) -> Tensor:
    """Return ``tensor`` with the axes that a reduction folded, so that it broadcasts to its input.

    Args:
        tensor: [...], of the shape of the output of ``op``.
        op: A reduction with the attributes ``axis`` and ``keepdims``.
    """
    source = op.inputs[0]
    axis = op.attrs["axis"]
    if op.attrs["keepdims"] or op.outputs[0].shape.rank == 0:
        # Nothing is missing, or a scalar, which broadcasts to any shape.
        return tensor
    if source.shape.rank is None:
        kept = reduce_sum(source, axis, keepdims=True)
        return reshape(tensor, shape(kept))
    for at in sorted(reduced_axes(axis, source.shape.rank)):
        tensor = expand_dims(tensor, at)
    return tensor


def spread(grad: Tensor, op: Any) -> Tensor:
    """Repeat the gradient of a reduction's result along the axes that the reduction folded."""
    return broadcast_to(with_reduced_axes(grad, op), shape_of(op.inputs[0]))


def take(x: Tensor, axis: int, begin: Any, end: Any) -> Tensor:
    """Return ``x[begin:end]`` along an axis, which may be counted from the end."""
    if axis >= 0:
        return x[(slice(None),) * axis + (slice(begin, end),)]
    return x[(Ellipsis, slice(begin, end), *((slice(None),) * (-axis - 1)))]


def dims_of(x: Tensor, begin: int | None, end: int | None) -> Any:
    """Return a part of the shape of ``x``: a list where it is static, a vector otherwise."""
    part = x.spec.shape[begin:end]
    return list(part.known) if part.is_fully_defined() else shape(x)[begin:end]


def join_dims(*parts: Any) -> Any:
    """Return the parts of a shape, lists and vectors, joined: a list if all are."""
    if all(isinstance(p, list) for p in parts):
        return [d for p in parts for d in p]
    # An empty list would not say that it holds integers.
    return concat([p for p in parts if isinstance(p, Tensor) or p], 0)


def shaped_as(grad: Tensor, like: Tensor) -> Tensor:
    """Return a gradient with what is known of the shape of the tensor that it belongs to."""
    known = grad.spec.shape.merge_with(like.spec.shape)
    if known == grad.spec.shape:
        return grad
    if known.is_fully_defined():
        return reshape(grad, list(known.known))
    return ensure_shape(grad, known)
