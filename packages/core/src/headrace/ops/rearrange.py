"""The elements of a tensor in another order: reversed, rolled, moved between axes, repeated."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_ints, one_of, static_int
from headrace.ops.array import (
    broadcast_to,
    concat,
    expand_dims,
    rank,
    reshape,
    stack,
    tile,
)
from headrace.ops.array import shape as shape_of
from headrace.ops.blocks import sizes_of
from headrace.ops.constant import sequence_mask
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import minimum
from headrace.ops.gather import gather, where_indices
from headrace.ops.identity import ensure_shape
from headrace.ops.kinds import Anything, Index, Whole
from headrace.ops.reduce import reduce_prod
from headrace.shapes import Shape, normalize_axis

# Longer lists of rows are made in the step.
_MOST_ROWS = 65536


def _reversed_early(tensor: Any, axis: Any) -> Any:
    return np.flip(tensor, tuple(axis.tolist()))


@op(
    "Reverse",
    total=True,
    early=_reversed_early,
    host_inputs=["axis"],
    public="",
    node_name="ReverseV2",
)
def _reverse(tensor: Anything, axis: Index) -> Spec:
    """The tensor with the order of its elements reversed along axes.

    Args:
        tensor: [...], any dtype.
        axis: [n], the axes, each once; negative from the end.

    Returns:
        The shape and dtype of ``tensor``.
    """
    if axis.rank not in (None, 1):
        raise ShapeError(f"axis must be a vector of axes, got {axis}")
    if axis.value is not None and tensor.shape.dims is not None:
        axes = [normalize_axis(int(a), len(tensor.shape.dims)) for a in axis.value]
        if len(set(axes)) < len(axes):
            raise ShapeError(f"axis {axis.value.tolist()} names an axis twice")
    return TensorSpec(tensor.dtype, tensor.shape)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """The tensor with the order of its elements reversed along axes.

    Args:
        tensor: [...], any dtype.
        axis: [n], the axes, each once, a list or an integer tensor; negative from the end.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``tensor``.

    Raises:
        ShapeError: if an axis is known to be out of range or named twice.
    """
    return _reverse(tensor, as_ints(axis, "axis"), name=name)


@op("ReverseSequence", public="")
def _reverse_sequence(
    input: Anything, seq_lengths: Whole, seq_axis: int, batch_axis: int = 0
) -> Spec:
    """The tensor with the first elements of each sequence reversed.

    Args:
        input: [...], any dtype, of two axes at least.
        seq_lengths: [batch], how many elements of each sequence are reversed; more than there are
            raise when it runs.
        seq_axis: The axis along which sequences run.
        batch_axis: The axis of the sequences.

    Returns:
        The shape and dtype of ``input``.
    """
    if seq_lengths.rank not in (None, 1):
        raise ShapeError(f"seq_lengths must be a vector, got {seq_lengths}")
    if input.shape.dims is None:
        return TensorSpec(input.dtype)
    rank = len(input.shape.dims)
    seq = normalize_axis(seq_axis, rank, "seq_axis")
    batch = normalize_axis(batch_axis, rank, "batch_axis")
    if seq == batch:
        raise ShapeError(f"seq_axis and batch_axis must differ, both are {seq}")
    if not seq_lengths.shape.is_compatible_with([input.shape.dims[batch]]):
        raise ShapeError(
            f"seq_lengths must have {input.shape.dims[batch]} elements, got {seq_lengths.shape}"
        )
    dims = list(input.shape.dims)
    if dims[batch] is None and seq_lengths.rank == 1:
        dims[batch] = seq_lengths.shape[0]
    return TensorSpec(input.dtype, Shape(dims))


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverse the first elements of each sequence.

    Args:
        input: [...], any dtype, of two axes at least.
        seq_lengths: [batch], int32 or int64, how many elements of each sequence are reversed.
        seq_axis: The axis along which sequences run.
        batch_axis: The axis of the sequences; 0 if None.
        name: The name of the operation.
        seq_dim: An older name of ``seq_axis``.
        batch_dim: An older name of ``batch_axis``.

    Returns:
        The shape and dtype of ``input``.

    Raises:
        ShapeError: if an axis is out of range, or there is not one length for each sequence.
    """
    seq = one_of(seq_axis=seq_axis, seq_dim=seq_dim)
    batch = 0
    if batch_axis is not None or batch_dim is not None:
        batch = one_of(batch_axis=batch_axis, batch_dim=batch_dim)
    return _reverse_sequence(input, seq_lengths, seq, batch, name=name)


@op("Roll", host_inputs=["shift", "axis"], public="")
def _roll(input: Anything, shift: Index, axis: Index) -> Spec:
    """The tensor with its elements moved along axes, those that leave coming in at the other end.

    Args:
        input: [...], any dtype, of one axis at least.
        shift: [] or [n], by how many elements; negative towards the front.
        axis: [] or [n], along which axes; an axis that is named twice is rolled by the sum.

    Returns:
        The shape and dtype of ``input``.
    """
    for part, label in ((shift, "shift"), (axis, "axis")):
        if part.rank not in (None, 0, 1):
            raise ShapeError(f"{label} must be an integer or a vector, got {part}")
    if not shift.shape.is_compatible_with(axis.shape):
        raise ShapeError(f"shift {shift.shape} and axis {axis.shape} must have one shape")
    if input.rank == 0:
        raise ShapeError("a scalar cannot be rolled")
    if axis.value is not None and input.shape.dims is not None:
        for one in axis.value.ravel():
            normalize_axis(int(one), len(input.shape.dims))
    return TensorSpec(input.dtype, input.shape)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Move the elements of a tensor along axes, those that leave coming in at the other end.

    Args:
        input: [...], any dtype, of one axis at least.
        shift: [] or [n], by how many elements; negative towards the front.
        axis: [] or [n], along which axes; an axis that is named twice is rolled by the sum.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``input``.

    Raises:
        ShapeError: if ``shift`` and ``axis`` do not match, or an axis is known to be out of range.
    """
    return _roll(input, as_ints(shift, "shift"), as_ints(axis, "axis"), name=name)


@op("InvertPermutation", public="invert_permutation", no_gradient="it yields indices")
def invert_permutation(x: Whole) -> Spec:
    """The permutation that undoes another: ``y[x[i]] == i``.

    Args:
        x: [n], int32 or int64: each of 0 to n - 1 once.

    Returns:
        [n], the dtype of ``x``.
    """
    if x.rank not in (None, 1):
        raise ShapeError(f"x must be a vector, got {x}")
    if x.value is None:
        return TensorSpec(x.dtype, x.shape.merge_with([None]))
    order = [int(v) for v in x.value]
    if sorted(order) != list(range(len(order))):
        raise ShapeError(f"x {order[:32]} is no permutation of 0 to {len(order) - 1}")
    return TensorSpec(x.dtype, x.shape, np.argsort(x.value).astype(x.dtype.numpy))


# -- copies


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return the coordinates of all points of a grid, given those along each axis.

    Args:
        args: Vectors, one for each axis; scalars are vectors of one.
        kwargs: ``indexing``: "xy" (the default) for a first axis that runs along the second
            vector, as in images, "ij" to keep the order; ``name``.

    Returns:
        For each vector a tensor of the shape of the grid.

    Raises:
        AttributeValueError: if ``indexing`` is another, or there are other arguments.
    """
    indexing, name = kwargs.pop("indexing", "xy"), kwargs.pop("name", None)
    if kwargs or indexing not in ("xy", "ij"):
        text = f"indexing={indexing!r}" if not kwargs else ", ".join(kwargs)
        raise AttributeValueError(f"meshgrid takes indexing='xy' or 'ij', and name; got {text}")
    with name_scope(name, "meshgrid"):
        vectors = [reshape(convert_to_tensor(v), [-1]) for v in args]
        order = list(range(len(vectors)))
        if indexing == "xy" and len(vectors) > 1:
            order[0], order[1] = 1, 0
        whole = [sizes_of(vectors[i])[0] for i in order]
        views = [
            reshape(v, [-1 if order[i] == at else 1 for i in range(len(order))])
            if v.spec.shape.num_elements() != 0
            else reshape(v, [0 if order[i] == at else 1 for i in range(len(order))])
            for at, v in enumerate(vectors)
        ]
        return [broadcast_to(view, whole, name="mul") for view in views]


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Repeat each slice along an axis.

    Args:
        input: [...], any dtype.
        repeats: [] or [n], integers >= 0: how often, all slices alike or each.
        axis: The axis; the flattened tensor if None. It counts from the start where only a step
            knows the rank.
        name: The name of the operations.

    Returns:
        ``input`` with the axis as long as the repeats add up to; a scalar is a vector of one.

    Raises:
        ShapeError: if there is not one number of repeats for each slice, or the axis is out of
            range.
        AttributeValueError: if one is known to be negative.
    """
    with name_scope(name, "Repeat"):
        x = convert_to_tensor(input)
        if axis is None or x.shape.rank == 0:
            normalize_axis(0 if axis is None else static_int(axis, "axis"), 1)
            x, axis = reshape(x, [-1]), 0
        if x.shape.rank is None:
            return _repeat_of_unknown_rank(x, repeats, static_int(axis, "axis"))
        at = normalize_axis(static_int(axis, "axis"), x.shape.rank)
        dims = sizes_of(x)
        times = as_ints(repeats, "repeats")
        if isinstance(times, list) and len(times) == 1 and not isinstance(times[0], list):
            times = times[0]
        if isinstance(times, int):
            if times < 0:
                raise AttributeValueError(f"repeat: repeats must be >= 0, got {times}")
            copies = [1] * (x.shape.rank + 1)
            copies[at + 1] = times
            whole = [*dims[:at], dims[at] * times, *dims[at + 1 :]]
            return reshape(tile(expand_dims(x, at + 1), copies), whole)
        if isinstance(times, list) and any(isinstance(t, list) for t in times):
            raise ShapeError(f"repeat: repeats must be a number or a vector, got {times}")
        if isinstance(times, list) and min(times, default=0) < 0:
            raise AttributeValueError(f"repeat: repeats must be >= 0, got {times}")
        listed = isinstance(times, list) and x.spec.shape[at] in (len(times), None)
        if listed and sum(times) <= _MOST_ROWS:
            x = ensure_shape(x, [*x.spec.shape[:at], len(times), *x.spec.shape[at + 1 :]])
            rows = np.repeat(np.arange(len(times), dtype=np.int32), times)
            return gather(reshape(x, sizes_of(x)), rows, axis=at)
        counts = convert_to_tensor(times)
        if counts.shape.rank not in (None, 0, 1):
            raise ShapeError(
                f"repeat: repeats must be a number or a vector, got {counts.spec.shape}"
            )
        length = [dims[at]] if isinstance(dims[at], int) else expand_dims(dims[at], 0)
        counts = broadcast_to(counts, length)
        # Row i of the mask holds as often as slice i is repeated.
        picked = where_indices(sequence_mask(counts))[:, 0]
        # Through a reshape, so that the gradient is dense.
        return gather(reshape(x, dims), picked, axis=at)


def _repeat_of_unknown_rank(x: Tensor, repeats: Any, axis: int) -> Tensor:
    """Repeat the slices of a tensor of unknown rank, as those of one of three axes."""
    if axis < 0:
        raise ShapeError(f"repeat: axis {axis} counts from the end, which needs a known rank")
    dims = shape_of(x)
    # A scalar is a vector of one.
    dims = concat([[1], dims], 0)[minimum(rank(x), 1) :]
    outer, inner = dims[:axis], dims[axis + 1 :]
    three = reshape(x, stack([reduce_prod(outer), dims[axis], reduce_prod(inner)]))
    longer = repeat(three, repeats, 1)
    return reshape(longer, concat([outer, expand_dims(shape_of(longer)[1], 0), inner], 0))


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Return the coordinates of elements that are counted in row-major order.

    Args:
        indices: [] or [n], int32 or int64, each in [0, number of elements).
        dims: [rank], the shape of the tensor, of the dtype of ``indices``.
        name: The name of the operation.

    Returns:
        [rank] or [rank, n], the dtype of ``indices``.

    Raises:
        ShapeError: if ``indices`` or ``dims`` has too many axes.
    """
    return _unravel_index(indices, dims, name=name)


@op("UnravelIndex", host_inputs=["dims"], public="", no_gradient="it yields indices")
def _unravel_index(indices: Whole, dims: Whole) -> Spec:
    """The coordinates of elements that are counted in row-major order.

    Args:
        indices: [] or [n], each in [0, number of elements); others raise when it runs.
        dims: [rank], the shape of the tensor.

    Returns:
        [rank] or [rank, n], the dtype of ``indices``.
    """
    if dims.rank not in (None, 1):
        raise ShapeError(f"dims must be a vector, got {dims}")
    if indices.rank not in (None, 0, 1):
        raise ShapeError(f"indices must be a number or a vector, got {indices}")
    if dims.value is not None and (dims.value < 0).any():
        raise ShapeError(f"dimensions must be >= 0, got {dims.value.tolist()}")
    return TensorSpec(indices.dtype, Shape([as_shape(dims).rank]).concatenate(indices.shape))
