"""Array ops: shapes, joining and splitting, gathering and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Numeric, Same
from headrace.shapes import UNKNOWN, Dim, Shape, broadcast, normalize_axis

_NO_DIMS = "it yields a shape"

# A step with more outputs than this in one node is a mistake, or a trap in a document.
_MOST_PARTS = 65536


@op("Identity", in_place=[(0, 0)])
def identity(input: Anything) -> Spec:
    """The tensor itself, as a node of its own.

    Args:
        input: [...], any dtype.

    Returns:
        [...], the dtype of ``input``.
    """
    return TensorSpec(input.dtype, input.shape, input.value, input.dims)


@op("IdentityN")
def identity_n(input: Sequence[Anything]) -> list[Spec]:
    """The tensors themselves, as outputs of one node.

    Args:
        input: Tensors of any dtypes.

    Returns:
        One tensor for each.
    """
    return [TensorSpec(i.dtype, i.shape, i.value, i.dims) for i in input]


@op("StopGradient", in_place=[(0, 0)], no_gradient="stopping the gradient is its purpose")
def stop_gradient(input: Anything) -> Spec:
    """The tensor itself, through which no gradient flows.

    Args:
        input: [...], any dtype.

    Returns:
        [...], the dtype of ``input``.
    """
    return TensorSpec(input.dtype, input.shape, input.value, input.dims)


@op("Shape", no_gradient=_NO_DIMS)
def shape(input: Anything, name: str | None = None, out_type: DType = dtypes.int32) -> Spec:
    """The shape of a tensor, as a vector.

    Args:
        input: [...], any dtype.
        name: The name of the operation.
        out_type: int32 or int64.

    Returns:
        [rank], ``out_type``.
    """
    value = None
    if input.shape.is_fully_defined:
        value = np.array(input.shape.known, out_type.numpy)
    return TensorSpec(out_type, Shape([input.rank]), value, input.shape)


@op("Size", no_gradient=_NO_DIMS)
def size(input: Anything, name: str | None = None, out_type: DType = dtypes.int32) -> Spec:
    """The number of elements of a tensor.

    Args:
        input: [...], any dtype.
        name: The name of the operation.
        out_type: int32 or int64.

    Returns:
        [], ``out_type``.
    """
    count = input.shape.num_elements
    value = None if count is None else np.array(count, out_type.numpy)
    return TensorSpec(out_type, Shape(()), value)


@op("Rank", no_gradient=_NO_DIMS)
def rank(input: Anything) -> Spec:
    """The number of dimensions of a tensor.

    Args:
        input: [...], any dtype.

    Returns:
        [], int32.
    """
    value = None if input.rank is None else np.array(input.rank, np.int32)
    return TensorSpec(dtypes.int32, Shape(()), value)


@op("Reshape", in_place=[(0, 0)])
def reshape(tensor: Anything, shape: Index) -> Spec:
    """The same elements in row-major order under another shape.

    Args:
        tensor: [...], any dtype.
        shape: [rank], of which one may be -1: whatever fits.

    Returns:
        ``shape``, the dtype of ``tensor``.
    """
    if shape.rank not in (None, 1):
        raise ShapeError(f"shape must be a vector of dimensions, got {shape}")
    target = as_shape(shape)
    if shape.value is not None:
        wanted = [int(d) for d in shape.value]
        if wanted.count(-1) > 1 or any(d < -1 for d in wanted):
            raise ShapeError(f"shape {wanted} may hold dimensions >= 0 and one -1")
        target = _fill_free(tensor.shape, wanted)
    return TensorSpec(tensor.dtype, target)


def _fill_free(source: Shape, wanted: list[int]) -> Shape:
    """Return ``wanted`` with its -1 replaced by what fits, as far as that is known."""
    count = source.num_elements
    fixed = int(np.prod([d for d in wanted if d != -1]))
    free = -1 in wanted
    if count is None:
        return Shape([None if d == -1 else d for d in wanted])
    fits = (fixed != 0 and count % fixed == 0) if free else count == fixed
    if not fits:
        raise ShapeError(f"{count} elements of shape {source} do not fit shape {wanted}")
    return Shape([count // fixed if d == -1 else d for d in wanted])


@op("Transpose")
def transpose(a: Anything, perm: Sequence[int] | None = None) -> Spec:
    """The tensor with its axes in another order.

    Args:
        a: [...], any dtype.
        perm: For each axis of the result the axis of ``a`` that it is; reversed order if None.

    Returns:
        The permuted shape, the dtype of ``a``.
    """
    if perm is None:
        dims = None if a.shape.dims is None else a.shape.dims[::-1]
        return TensorSpec(a.dtype, Shape(dims))
    order = [p + len(perm) if p < 0 else p for p in perm]
    if sorted(order) != list(range(len(perm))):
        raise ShapeError(f"perm {list(perm)} is no permutation of 0 to {len(perm) - 1}")
    if a.shape.dims is None:
        return TensorSpec(a.dtype, Shape([None] * len(perm)))
    if len(order) != len(a.shape.dims):
        raise ShapeError(f"perm {list(perm)} does not fit a tensor of rank {len(a.shape.dims)}")
    return TensorSpec(a.dtype, Shape([a.shape.dims[p] for p in order]))


@op("ExpandDims", in_place=[(0, 0)])
def expand_dims(input: Anything, axis: int) -> Spec:
    """The tensor with an axis of size 1 inserted.

    Args:
        input: [...], any dtype.
        axis: Where the new axis stands in the result; negative from the end.

    Returns:
        The shape with a 1 inserted, the dtype of ``input``.
    """
    if input.shape.dims is None:
        return TensorSpec(input.dtype)
    at = normalize_axis(axis, len(input.shape.dims) + 1)
    dims = list(input.shape.dims)
    dims.insert(at, 1)
    return TensorSpec(input.dtype, Shape(dims))


@op("Squeeze", in_place=[(0, 0)])
def squeeze(input: Anything, axis: int | Sequence[int] | None = None) -> Spec:
    """The tensor without axes of size 1.

    Args:
        input: [...], any dtype.
        axis: The axes to drop, which must have size 1; all of that size if None.

    Returns:
        The remaining axes, the dtype of ``input``.
    """
    dims = input.shape.dims
    if dims is None:
        return TensorSpec(input.dtype)
    if axis is None or axis == ():
        known = None not in dims
        return TensorSpec(input.dtype, Shape([d for d in dims if d != 1]) if known else UNKNOWN)
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = [normalize_axis(a, len(dims)) for a in given]
    for a in axes:
        if dims[a] not in (1, None):
            raise ShapeError(f"axis {a} of shape {input.shape} has size {dims[a]}, not 1")
    return TensorSpec(input.dtype, Shape([d for i, d in enumerate(dims) if i not in axes]))


@op("Concat")
def concat(values: Sequence[Same], axis: int) -> Spec:
    """Tensors joined along an axis that they have.

    Args:
        values: Tensors of one dtype whose shapes agree but for ``axis``.
        axis: The axis; negative from the end.

    Returns:
        The common shape, its sizes along ``axis`` added.
    """
    joined = values[0].shape
    for value in values:
        if value.rank == 0:
            raise ShapeError("scalars have no axis to join along; use stack")
    ranked = [v.shape for v in values if v.shape.dims is not None]
    if len(ranked) < len(values):
        return TensorSpec(values[0].dtype)
    at = normalize_axis(axis, len(joined))
    dims: list[Dim] = list(joined)
    total: Dim = 0
    for part in ranked:
        if len(part) != len(dims):
            raise ShapeError(f"values have ranks {len(dims)} and {len(part)}; expected one rank")
        for i, (mine, theirs) in enumerate(zip(dims, part, strict=True)):
            if i == at:
                continue
            if mine is not None and theirs is not None and mine != theirs:
                raise ShapeError(f"shapes {joined} and {part} differ in axis {i}, not only {at}")
            dims[i] = theirs if mine is None else mine
        size_here = part[at]
        total = None if total is None or size_here is None else total + size_here
    dims[at] = total
    known = [as_shape(v) for v in values] if len(dims) == 1 and values[0].dtype.is_integer else []
    merged: Shape | None = Shape(()) if known else None
    for part in known:
        merged = merged.concatenate(part) if merged is not None else None
    return TensorSpec(values[0].dtype, Shape(dims), dims=merged)


@op("Stack")
def stack(values: Sequence[Same], axis: int = 0) -> Spec:
    """Tensors of one shape joined along a new axis.

    Args:
        values: Tensors of one dtype and shape.
        axis: Where the new axis stands in the result; negative from the end.

    Returns:
        The common shape with the number of tensors inserted.
    """
    common = values[0].shape
    for value in values:
        common = common.merge_with(value.shape)
    if common.dims is None:
        return TensorSpec(values[0].dtype)
    at = normalize_axis(axis, len(common.dims) + 1)
    dims = list(common.dims)
    dims.insert(at, len(values))
    denoted = None
    if not common.dims and values[0].dtype.is_integer:
        sizes = [None if v.value is None else int(v.value) for v in values]
        denoted = Shape([None if s is None or s < 0 else s for s in sizes])
    constants = [v.value for v in values if v.value is not None]
    value = np.stack(constants, at) if len(constants) == len(values) else None
    return TensorSpec(values[0].dtype, Shape(dims), value, denoted)


@op("Unstack", public="")
def _unstack(value: Anything, num: int, axis: int = 0) -> list[Spec]:
    """The slices of a tensor along an axis.

    Args:
        value: [...], any dtype.
        num: The size of the axis.
        axis: The axis; negative from the end.

    Returns:
        ``num`` tensors without that axis.
    """
    if not 0 <= num <= _MOST_PARTS:
        raise AttributeValueError(f"num must be between 0 and {_MOST_PARTS}, got {num}")
    if value.shape.dims is None:
        return [TensorSpec(value.dtype)] * num
    at = normalize_axis(axis, len(value.shape.dims))
    if value.shape.dims[at] not in (None, num):
        raise ShapeError(f"axis {axis} of {value.shape} has size {value.shape.dims[at]}, not {num}")
    dims = [d for i, d in enumerate(value.shape.dims) if i != at]
    return [TensorSpec(value.dtype, Shape(dims))] * num


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str | None = "unstack"
) -> list[Tensor]:
    """Split a tensor into its slices along an axis.

    Args:
        value: [...], any dtype.
        num: The size of the axis; inferred where the shape tells.
        axis: The axis; negative from the end.
        name: The name of the operation.

    Raises:
        ShapeError: if ``num`` is neither given nor known.
    """
    tensor = convert_to_tensor(value)
    count = num
    if count is None and tensor.shape.dims is not None:
        count = tensor.shape[normalize_axis(axis, len(tensor.shape))]
    if count is None:
        raise ShapeError(f"unstack: the size of axis {axis} of {tensor!r} is unknown; pass num=")
    return _unstack(tensor, count, axis, name=name)


@op("Split", public="")
def _split(value: Anything, sizes: Sequence[int], axis: int = 0) -> list[Spec]:
    """Consecutive parts of a tensor along an axis.

    Args:
        value: [...], any dtype.
        sizes: The size of each part.
        axis: The axis; negative from the end.

    Returns:
        One tensor per size.
    """
    if value.shape.dims is None:
        return [TensorSpec(value.dtype)] * len(sizes)
    at = normalize_axis(axis, len(value.shape.dims))
    whole = value.shape.dims[at]
    if whole is not None and sum(sizes) != whole:
        raise ShapeError(f"sizes {list(sizes)} add up to {sum(sizes)}, axis {axis} has {whole}")
    dims = list(value.shape.dims)
    return [TensorSpec(value.dtype, Shape([*dims[:at], s, *dims[at + 1 :]])) for s in sizes]


def split(
    value: Any, num_or_size_splits: Any, axis: int = 0, name: str | None = "split"
) -> list[Tensor]:
    """Split a tensor into consecutive parts along an axis.

    Args:
        value: [...], any dtype.
        num_or_size_splits: The number of equal parts, or the list of their sizes, of which one
            may be -1.
        axis: The axis; negative from the end.
        name: The name of the operation.

    Raises:
        ShapeError: if the axis does not divide so, or its size is needed and unknown.
    """
    tensor = convert_to_tensor(value)
    whole = None
    if tensor.shape.dims is not None:
        whole = tensor.shape[normalize_axis(axis, len(tensor.shape))]
    if isinstance(num_or_size_splits, int):
        if whole is None or num_or_size_splits < 1 or whole % num_or_size_splits:
            raise ShapeError(
                f"split: axis {axis} of {tensor!r} does not divide into {num_or_size_splits} parts"
            )
        sizes = [whole // num_or_size_splits] * num_or_size_splits
    else:
        sizes = [int(s) for s in num_or_size_splits]
        if sizes.count(-1) == 1 and whole is not None:
            sizes[sizes.index(-1)] = whole - sum(s for s in sizes if s != -1)
    if any(s < 0 for s in sizes):
        raise ShapeError(f"split: sizes {sizes} of axis {axis} of {tensor!r} are not all known")
    return _split(tensor, sizes, axis, name=name)


@op("Gather", public="")
def _gather(params: Anything, indices: Index, axis: int = 0) -> Spec:
    """Slices of ``params`` picked along an axis.

    Args:
        params: [...], any dtype.
        indices: [...], int32 or int64, within the axis; others raise when it runs.
        axis: The axis; negative from the end.

    Returns:
        The shape of ``params`` with that axis replaced by the shape of ``indices``.
    """
    if params.shape.dims is None:
        return TensorSpec(params.dtype)
    at = normalize_axis(axis, len(params.shape.dims))
    shape = params.shape[:at].concatenate(indices.shape).concatenate(params.shape[at + 1 :])
    return TensorSpec(params.dtype, shape)


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: int = 0,
) -> Tensor:
    """Pick slices of ``params`` along an axis.

    The gradient is row-sparse where ``axis`` is 0.

    Args:
        params: [...], any dtype; a variable's rows are picked without copying the whole.
        indices: [...], int32 or int64, each in [0, size of the axis).
        validate_indices: Ignored; indices are always checked.
        name: The name of the operation.
        axis: The axis; negative from the end.

    Returns:
        The shape of ``params`` with that axis replaced by the shape of ``indices``.
    """
    del validate_indices
    return _gather(params, indices, axis, name=name)


@op("BroadcastTo")
def broadcast_to(input: Anything, shape: Index) -> Spec:
    """The tensor repeated along axes of size 1, and leading new ones, to reach a shape.

    Args:
        input: [...], any dtype.
        shape: [rank], a shape to which ``input`` broadcasts.

    Returns:
        ``shape``, the dtype of ``input``.
    """
    target = as_shape(shape)
    known = target.is_fully_defined and input.shape.is_fully_defined
    if known and broadcast(input.shape, target) != target:
        raise ShapeError(f"shape {input.shape} does not broadcast to {target}")
    return TensorSpec(input.dtype, target)


@op("Tile")
def tile(input: Anything, multiples: Sequence[int]) -> Spec:
    """The tensor repeated along its axes.

    Args:
        input: [...], any dtype.
        multiples: How often along each axis.

    Returns:
        Each size times its multiple, the dtype of ``input``.
    """
    if any(m < 0 for m in multiples):
        raise AttributeValueError(f"multiples must be >= 0, got {list(multiples)}")
    if input.shape.dims is None:
        return TensorSpec(input.dtype, Shape([None] * len(multiples)))
    if len(multiples) != len(input.shape.dims):
        raise ShapeError(f"{len(multiples)} multiples for a tensor of shape {input.shape}")
    pairs = zip(input.shape.dims, multiples, strict=True)
    return TensorSpec(input.dtype, Shape([None if d is None else d * m for d, m in pairs]))


@op("Pad")
def pad(
    tensor: Numeric,
    paddings: Sequence[Sequence[int]],
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: float = 0,
) -> Spec:
    """The tensor with a border.

    Args:
        tensor: [...], numeric.
        paddings: For each axis how many elements before and after.
        mode: "CONSTANT".
        name: The name of the operation.
        constant_values: What the border holds.

    Returns:
        Each size plus its paddings, the dtype of ``tensor``.
    """
    if mode.upper() != "CONSTANT":
        raise AttributeValueError(f"mode must be 'CONSTANT', got {mode!r}")
    if any(len(p) != 2 or min(p) < 0 for p in paddings):
        raise AttributeValueError(f"paddings must be pairs of integers >= 0, got {paddings}")
    if tensor.shape.dims is None:
        return TensorSpec(tensor.dtype, Shape([None] * len(paddings)))
    if len(paddings) != len(tensor.shape.dims):
        raise ShapeError(f"{len(paddings)} paddings for a tensor of shape {tensor.shape}")
    pairs = zip(tensor.shape.dims, paddings, strict=True)
    return TensorSpec(tensor.dtype, Shape([None if d is None else d + sum(p) for d, p in pairs]))
