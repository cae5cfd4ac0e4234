"""Picking parts of tensors by indices, and putting them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.schema import call_op
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.arguments import as_int, as_list, as_only_int, known_ints, static_int
from headrace.ops.declare import Spec, op
from headrace.ops.joining import around
from headrace.ops.kinds import Anything, Index, Same, Whole
from headrace.shapes import UNKNOWN, Dim, Shape, normalize_axis

# A step with more outputs than this in one node is a mistake, or a trap in a document.
_MOST_PARTS = 65536


def _tensor(op_type: str, *args: Any, **kwargs: Any) -> Tensor:
    result = call_op(op_type, *args, **kwargs)
    assert isinstance(result, Tensor)
    return result


def _picked_early(params: Any, indices: Any, *, axis: int, batch_dims: int) -> Any:
    # NumPy would count negative ones from the end; in a step they are out of range.
    return None if batch_dims or np.any(indices < 0) else np.take(params, indices, axis)


@op("Gather", early=_picked_early, public="", node_name="GatherV2")
def _gather(params: Anything, indices: Index, axis: int = 0, batch_dims: int = 0) -> Spec:
    """Slices of ``params`` picked along an axis.

    Args:
        params: [...], any dtype.
        indices: [...], int32 or int64, within the axis; others raise when it runs.
        axis: The axis; negative from the end.
        batch_dims: How many leading axes ``params`` and ``indices`` share.

    Returns:
        The shape of ``params`` with that axis replaced by the shape of ``indices``, of which the
        shared axes do not count.
    """
    if batch_dims < 0:
        raise AttributeValueError(f"batch_dims must be >= 0, got {batch_dims}")
    if indices.shape.dims is not None and len(indices.shape.dims) < batch_dims:
        raise ShapeError(f"indices {indices.shape} has no {batch_dims} axes to share")
    if params.shape.dims is None:
        return TensorSpec(params.dtype)
    at = normalize_axis(axis, len(params.shape.dims))
    if at < batch_dims:
        raise ShapeError(f"axis {axis} must not lie among the {batch_dims} shared axes")
    if indices.shape.dims is None:
        return TensorSpec(params.dtype)
    shared = indices.shape[:batch_dims].merge_with(params.shape[:batch_dims])
    lead = shared.concatenate(params.shape[batch_dims:at])
    shape = lead.concatenate(indices.shape[batch_dims:]).concatenate(params.shape[at + 1 :])
    if not batch_dims and indices.value is not None:
        return _picked(params, indices, at, shape)
    return TensorSpec(params.dtype, shape)


def _picked(params: TensorSpec, indices: TensorSpec, axis: int, shape: Shape) -> TensorSpec:
    """Return the spec with what is known of the value of a few elements of a vector."""
    assert indices.value is not None
    size = params.shape[axis]
    if len(params.shape) != 1 or size is None or indices.value.size > 64:
        return TensorSpec(params.dtype, shape)
    if any(not 0 <= i < size for i in indices.value.ravel().tolist()):
        return TensorSpec(params.dtype, shape)
    if params.value is not None:
        value = np.asarray(params.value[indices.value], params.value.dtype)
        return TensorSpec(params.dtype, shape, value)
    if params.dims is None or params.dims.dims is None:
        return TensorSpec(params.dtype, shape)
    if indices.value.ndim == 1:
        return TensorSpec(params.dtype, shape, dims=Shape([params.dims[i] for i in indices.value]))
    one = params.dims[int(indices.value)] if not indices.value.ndim else None
    if one is None or one > params.dtype.max:
        return TensorSpec(params.dtype, shape)
    return TensorSpec(params.dtype, shape, np.array(one, params.dtype.numpy))


@dispatched()
def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int | None = 0,
) -> Tensor:
    """Pick slices of ``params`` along an axis.

    The gradient is row-sparse where ``axis`` is 0.

    Args:
        params: [...], any dtype; a variable's rows are picked without copying the whole.
        indices: [...], int32 or int64, each in [0, size of the axis).
        validate_indices: Ignored; indices are always checked.
        name: The name of the operation.
        axis: The axis, an integer or a scalar tensor; negative from the end. ``batch_dims`` if
            None.
        batch_dims: How many leading axes ``params`` and ``indices`` share; negative from the end
            of those of ``indices``; None for none, beside an ``axis``.

    Returns:
        The shape of ``params`` with that axis replaced by the shape of ``indices``, of which the
        shared axes do not count.

    Raises:
        ShapeError: if there is no such axis, or the shared axes are known to differ.
    """
    del validate_indices
    if batch_dims is None and axis is not None:
        batch_dims = 0
    shared = batch_dims = static_int(batch_dims, "batch_dims")
    if batch_dims < 0:
        indices = convert_to_tensor(indices)
        if indices.shape.rank is None:
            raise ShapeError("gather: a negative batch_dims needs indices of known rank")
        shared = batch_dims + indices.shape.rank
    at = shared if axis is None else as_int(axis, "axis")
    if not isinstance(at, Tensor):
        return _gather(params, indices, at, shared, name=name)
    if shared:
        raise ShapeError("gather: with batch_dims, axis must be known while the graph is built")
    with name_scope(name, "Gather"):
        source, rows = convert_to_tensor(params), convert_to_tensor(indices)
        block, before, after = around(source, at)
        picked = _gather(block, rows, 1)
        middle = _tensor("Shape", rows)
        whole = _tensor("Reshape", picked, _tensor("Concat", [before, middle, after], 0))
        if source.shape.rank is None or rows.shape.rank is None:
            return whole
        return _tensor(
            "EnsureShape", whole, Shape([None] * (source.shape.rank + rows.shape.rank - 1))
        )


@dispatched()
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Pick along the last axis of ``indices``, all axes before it being shared with ``params``.

    Args:
        params: [batch..., size, ...], any dtype.
        indices: [batch..., n], int32 or int64, each in [0, size).
        name: The name of the operation.

    Returns:
        [batch..., n, ...], the dtype of ``params``.

    Raises:
        ShapeError: if the rank of ``indices`` is not known, or shared axes are known to differ.
    """
    rows = convert_to_tensor(indices)
    if not rows.shape.rank:
        raise ShapeError(f"batch_gather: indices must have a known rank above 0, got {shown(rows)}")
    return gather(params, rows, name=name, axis=rows.shape.rank - 1, batch_dims=rows.shape.rank - 1)


# -- by tuples of indices


def _depth(indices: Shape, rank: int | None, what: str) -> int | None:
    """Return how many indices make up one tuple."""
    if indices.dims is None:
        return None
    if not indices.dims:
        raise ShapeError("indices must have one axis at least: that of the tuples")
    depth = indices.dims[-1]
    if depth is not None and rank is not None and depth > rank:
        raise ShapeError(f"tuples of {depth} indices, {what} has {rank} axes only")
    return depth


def _slices_shape(shape: Shape, indices: Shape, what: str) -> Shape:
    """Return the shape of the slices that ``indices`` names in a tensor of a shape."""
    depth = _depth(indices, shape.rank, what)
    if depth is None or shape.dims is None:
        return UNKNOWN
    lead: Shape = indices[:-1]
    return lead.concatenate(shape[depth:])


@op("GatherNd", public="")
def _gather_nd(params: Anything, indices: Index) -> Spec:
    """Slices of ``params`` picked by tuples of indices of its leading axes.

    Args:
        params: [...], any dtype.
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``params``; others
            raise when it runs.

    Returns:
        [..., rest of ``params``], the dtype of ``params``.
    """
    return TensorSpec(params.dtype, _slices_shape(params.shape, indices.shape, "params"))


@dispatched()
def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: Any = 0) -> Tensor:
    """Pick slices of ``params`` by tuples of indices of its leading axes.

    Args:
        params: [...], any dtype.
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``params`` that
            are not shared.
        name: The name of the operation.
        batch_dims: How many leading axes ``params`` and ``indices`` share.

    Returns:
        The shape of ``indices`` without its last axis, and the axes of ``params`` after those that
        are shared or indexed; the dtype of ``params``.

    Raises:
        ShapeError: if the tuples are longer than there are axes, or shared axes differ.
    """
    if isinstance(batch_dims, Tensor | np.ndarray):
        batch_dims = as_only_int(batch_dims, "batch_dims")
    batch_dims = static_int(batch_dims, "batch_dims")
    if not batch_dims:
        return _gather_nd(params, indices, name=name)
    if batch_dims < 0:
        raise AttributeValueError(f"gather_nd: batch_dims must be >= 0, got {told(batch_dims)}")
    with name_scope(name, "GatherNd"):
        source, rows = convert_to_tensor(params), convert_to_tensor(indices)
        if rows.shape.rank is None:
            # All axes between the batches and the places are one.
            sizes = _tensor("Shape", rows)
            count = _tensor("ReduceProd", sizes[batch_dims:-1], axis=0, keepdims=True)
            joined = _tensor("Concat", [sizes[:batch_dims], count, sizes[-1:]], 0)
            flat = _ranked(_tensor("Reshape", rows, joined), batch_dims + 2)
            found = gather_nd(source, flat, batch_dims=batch_dims)
            rest = _tensor("Shape", found)[batch_dims + 1 :]
            return _tensor("Reshape", found, _tensor("Concat", [sizes[:-1], rest], 0))
        if rows.shape.rank <= batch_dims:
            raise ShapeError(
                f"gather_nd: indices must have more than {told(batch_dims)} axes, got {shown(rows)}"
            )
        source.spec.shape.with_rank_at_least(batch_dims)
        rows.spec.shape[:batch_dims].merge_with(source.spec.shape[:batch_dims])
        lead = _tensor("Shape", rows)[:-1]
        inner = rows.shape.rank - 1
        shape = _tensor("Shape", source)
        parts = []
        for axis in range(batch_dims):
            # Sizes of params: where they differ from those of indices, they do not broadcast.
            places = _tensor("Range", 0, shape[axis], 1)
            view = [-1 if i == axis else 1 for i in range(inner)]
            spread = _tensor("BroadcastTo", _tensor("Reshape", places, view), lead)
            parts.append(_tensor("ExpandDims", _tensor("Cast", spread, rows.dtype), -1))
        return _gather_nd(source, _tensor("Concat", [*parts, rows], -1))


def _ranked(x: Tensor, rank: int) -> Tensor:
    """Return a tensor that only a step knows to have a rank."""
    return _tensor("EnsureShape", x, Shape([None] * rank))


def _check_updates(shape: Shape, indices: Shape, updates: Shape, what: str) -> None:
    expected = _slices_shape(shape, indices, what)
    if not expected.is_compatible_with(updates):
        raise ShapeError(
            f"updates must have shape {expected} (indices {indices}, {what} {shape}), got {updates}"
        )
    if shape.num_elements() == 0 and (updates.num_elements() or 0) > 0:
        raise ShapeError(f"updates {updates} do not lie within the empty {what} {shape}")


@op("ScatterNd", accumulates=True, host_inputs=["shape"], public="")
def _scatter_nd(indices: Index, updates: Same, shape: Index) -> Spec:
    """Zeros with slices added at tuples of indices; slices for one place add up.

    Args:
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``shape``; others
            raise when it runs.
        updates: [..., rest of ``shape``], any dtype. Of bools, any one makes true; strings for one
            place are joined.
        shape: [rank], the shape of the result.

    Returns:
        ``shape``, the dtype of ``updates``.
    """
    if updates.dtype.is_quantized:
        raise DTypeError(f"levels of ranges do not add up, got {updates.dtype}")
    if shape.value is not None and (shape.value < 0).any():
        raise ShapeError(f"dimensions must be >= 0, got {shape.value.tolist()}")
    target = as_shape(shape)
    _check_updates(target, indices.shape, updates.shape, "shape")
    return TensorSpec(updates.dtype, target)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Add slices to zeros at tuples of indices; slices for one place add up.

    Args:
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``shape``.
        updates: [..., rest of ``shape``], any dtype. Of bools, any one makes true; strings for one
            place are joined.
        shape: [rank], the shape of the result, a list or an integer tensor.
        name: The name of the operation.

    Returns:
        ``shape``, the dtype of ``updates``.

    Raises:
        ShapeError: if the shapes are known not to fit each other.
    """
    target = list(shape.known) if isinstance(shape, Shape | TensorShape) else known_ints(shape)
    return _scatter_nd(indices, updates, target, name=name)


@op("TensorScatter", accumulates=True, public="")
def _tensor_scatter(tensor: Same, indices: Index, updates: Same, mode: str) -> Spec:
    """A tensor with slices replaced, added or subtracted at tuples of indices.

    Args:
        tensor: [...], any dtype.
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``tensor``; others
            raise when it runs.
        updates: [..., rest of ``tensor``], of the dtype of ``tensor``.
        mode: "update", "add" or "sub". Of updates of one place the last wins, and others add up.

    Returns:
        The shape and dtype of ``tensor``.
    """
    if mode not in ("update", "add", "sub"):
        raise AttributeValueError(f"mode must be 'update', 'add' or 'sub', got {shown(mode)}")
    if mode != "update" and not tensor.dtype.is_numeric:
        raise DTypeError(f"tensor must be numeric, got {tensor.dtype}")
    _check_updates(tensor.shape, indices.shape, updates.shape, "tensor")
    return TensorSpec(tensor.dtype, tensor.shape)


def tensor_scatter_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """Replace slices of a tensor at tuples of indices; of those for one place the last wins.

    Args:
        tensor: [...], any dtype.
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``tensor``.
        updates: [..., rest of ``tensor``], of the dtype of ``tensor``.
        name: The name of the operation.

    Returns:
        A new tensor of the shape and dtype of ``tensor``.

    Raises:
        ShapeError: if the shapes are known not to fit each other.
    """
    return _tensor_scatter(tensor, indices, updates, "update", name=name)


def tensor_scatter_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Add slices to a tensor at tuples of indices; slices for one place add up.

    Args:
        tensor: [...], numeric.
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``tensor``.
        updates: [..., rest of ``tensor``], of the dtype of ``tensor``.
        name: The name of the operation.

    Returns:
        A new tensor of the shape and dtype of ``tensor``.

    Raises:
        ShapeError: if the shapes are known not to fit each other.
    """
    return _tensor_scatter(tensor, indices, updates, "add", name=name)


def tensor_scatter_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Subtract slices from a tensor at tuples of indices; slices for one place add up.

    Args:
        tensor: [...], numeric.
        indices: [..., k], int32 or int64, each tuple within the first k axes of ``tensor``.
        updates: [..., rest of ``tensor``], of the dtype of ``tensor``.
        name: The name of the operation.

    Returns:
        A new tensor of the shape and dtype of ``tensor``.

    Raises:
        ShapeError: if the shapes are known not to fit each other.
    """
    return _tensor_scatter(tensor, indices, updates, "sub", name=name)


# -- by truth values


@op("Where", public="", no_gradient="indices are piecewise constant")
def where_indices(condition: Anything) -> Spec:
    """The indices of all elements that are true or not 0, in row-major order.

    Args:
        condition: [...], bool or numeric.

    Returns:
        [n, rank], int64.
    """
    if not (condition.dtype.is_bool or condition.dtype.is_numeric):
        raise DTypeError(f"condition must be bool or numeric, got {condition.dtype}")
    count = None if condition.value is None else int(np.count_nonzero(condition.value))
    count = 0 if condition.shape.num_elements() == 0 else count
    return TensorSpec(dtypes.int64, Shape([count, condition.rank]))


def boolean_mask(
    tensor: Any, mask: Any, name: str | None = "boolean_mask", axis: Any = None
) -> Tensor:
    """Pick the elements or slices for which a mask holds.

    Args:
        tensor: [..., mask..., ...], any dtype.
        mask: [mask...], bool, or numeric for what is not 0, of known rank of one at least.
        name: The name of the operations.
        axis: The first axis that the mask covers; 0 if None.

    Returns:
        [..., n, ...]: the masked axes become one.

    Raises:
        ShapeError: if the shapes are known not to match, or the mask's rank is 0 or unknown.
        DTypeError: if the mask is of strings.
    """
    with name_scope(name, "boolean_mask", [tensor, mask]):
        source = convert_to_tensor(tensor)
        chosen = convert_to_tensor(mask)
        if not chosen.shape.rank:
            raise ShapeError(
                f"boolean_mask: mask must have a known rank above 0, got {shown(chosen)}"
            )
        at = 0 if axis is None else static_int(axis, "axis")
        if at < 0:
            if source.shape.rank is None:
                raise ShapeError("boolean_mask: a negative axis needs a tensor of known rank")
            at = normalize_axis(at, source.shape.rank)
        last = at + chosen.shape.rank
        source.spec.shape.with_rank_at_least(last)
        chosen.spec.shape.merge_with(source.spec.shape[at:last])
        whole = _tensor("Shape", source)
        count = _tensor("Size", chosen)
        # The sizes of the tensor itself: a mask of others picks beyond them, or is left over.
        middle = _tensor("ReduceProd", whole[at:last], axis=0, keepdims=True)
        folded = _tensor("Concat", [whole[:at], middle, whole[last:]], 0)
        flat = _tensor("Reshape", source, folded)
        alike = chosen.shape.is_fully_defined() and source.shape[at:last] == chosen.spec.shape
        length = [-1] if alike else _same_shape(whole[at:last], chosen, count)
        same = _tensor("Reshape", chosen, length)
        picked = _tensor("Reshape", where_indices(same), [-1])
        return _gather(flat, picked, at)


def _same_shape(wanted: Tensor, mask: Tensor, count: Tensor) -> Tensor:
    """Return the length of the flattened mask, or what it cannot be reshaped to if it differs."""
    fits = _tensor("ReduceAll", _tensor("Equal", wanted, _tensor("Shape", mask)))
    return _tensor("ExpandDims", _tensor("Select", fits, count, -2), 0)


# -- by the number of a part


@op("DynamicPartition", public="")
def _dynamic_partition(data: Anything, partitions: Whole, num_partitions: int) -> list[Spec]:
    """The slices of ``data`` sorted into parts by number.

    Args:
        data: [parts..., ...], any dtype.
        partitions: [parts...], int32, the leading axes of ``data``: for each slice the part that
            it belongs to; others than existing ones raise when it runs.
        num_partitions: The number of parts, one at least.

    Returns:
        For each part [n, ...], its slices in their order.
    """
    if not 1 <= num_partitions <= _MOST_PARTS:
        raise AttributeValueError(
            f"num_partitions must be between 1 and {_MOST_PARTS}, got {num_partitions}"
        )
    if partitions.shape.dims is None or data.shape.dims is None:
        return [TensorSpec(data.dtype)] * num_partitions
    lead = len(partitions.shape.dims)
    if lead > len(data.shape) or not partitions.shape.is_compatible_with(data.shape[:lead]):
        raise ShapeError(
            f"partitions {partitions.shape} must be the leading axes of data {data.shape}"
        )
    counts: Sequence[Dim] = [None] * num_partitions
    if partitions.value is not None:
        named = np.asarray(partitions.value).ravel()
        named = named[(named >= 0) & (named < num_partitions)]
        counts = [*np.bincount(named, minlength=num_partitions).tolist()]
    rest = data.shape[lead:]
    # Most parts are of one size: there may be thousands.
    specs = {n: TensorSpec(data.dtype, Shape([n]).concatenate(rest)) for n in set(counts)}
    return [specs[n] for n in counts]


@dispatched()
def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Sort the slices of a tensor into parts by number.

    Args:
        data: [parts..., ...], any dtype.
        partitions: [parts...], int32, the leading axes of ``data``: for each slice the number of
            its part, in [0, num_partitions).
        num_partitions: The number of parts, one at least.
        name: The name of the operation.

    Returns:
        For each part [n, ...], its slices in their order.

    Raises:
        ShapeError: if ``partitions`` is known not to fit ``data``.
    """
    return _dynamic_partition(data, partitions, num_partitions, name=name)


@op("DynamicStitch", public="")
def _dynamic_stitch(indices: Sequence[Index], data: Sequence[Same]) -> Spec:
    """Slices put together in the order of their indices.

    Args:
        indices: Of each tensor of ``data`` where its slices go; negative ones raise when it runs.
        data: [indices..., ...], tensors of one dtype with slices of one shape.

    Returns:
        [largest index + 1, ...]; of slices for one place the last wins, and a place without one
        has zeros (false, empty strings).
    """
    if len(indices) != len(data):
        raise AttributeValueError(f"{len(indices)} indices for {len(data)} tensors of data")
    rest = UNKNOWN
    for at, part in zip(indices, data, strict=True):
        if at.shape.dims is None or part.shape.dims is None:
            continue
        lead = len(at.shape.dims)
        if lead > len(part.shape) or not at.shape.is_compatible_with(part.shape[:lead]):
            raise ShapeError(f"indices {at.shape} must be the leading axes of data {part.shape}")
        rest = rest.merge_with(part.shape[lead:])
    values = [at.value for at in indices if at.value is not None]
    count = None
    if len(values) == len(indices):
        count = max((int(v.max()) for v in values if v.size), default=-1) + 1
        if any(v.size and v.min() < 0 for v in values):
            raise ShapeError("indices must be >= 0")
    return TensorSpec(data[0].dtype, Shape([count]).concatenate(rest))


def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Put slices together in the order of their indices.

    Args:
        indices: A list of int32 tensors: of each tensor of ``data`` where its slices go.
        data: A list of tensors [indices..., ...] of one dtype, with slices of one shape.
        name: The name of the operation.

    Returns:
        [largest index + 1, ...]; of slices for one place the last wins, and a place without one
        has zeros (false, empty strings).

    Raises:
        ShapeError: if the shapes are known not to fit.
    """
    return _dynamic_stitch(as_list(indices, "indices"), as_list(data, "data"), name=name)


def parallel_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """As ``dynamic_stitch``, for indices of which no two are equal.

    Args:
        indices: A list of int32 tensors: of each tensor of ``data`` where its slices go.
        data: A list of tensors [indices..., ...] of one dtype, with slices of one shape.
        name: The name of the operation.

    Returns:
        [largest index + 1, ...], the dtype of ``data``.
    """
    return _dynamic_stitch(as_list(indices, "indices"), as_list(data, "data"), name=name)
