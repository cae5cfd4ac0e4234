"""Joining and splitting tensors, and repeating them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ShapeError, shown, told
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.schema import call_op
from headrace.graph.scopes import name_scope, pass_over
from headrace.graph.spec import MAX_RANK, TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int, as_ints, as_list, as_only_int, static_int
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Numeric, Same
from headrace.ops.report import holding
from headrace.shapes import UNKNOWN, Dim, Shape, normalize_axis

# A step with more outputs than this in one node is a mistake, or a trap in a document.
_MOST_PARTS = 65536
# Larger values are not kept in specs: they are data, not shapes.
_SMALL = 4096


@op("Concat", total=True, early=lambda *parts, axis: np.concatenate(parts, axis), public="")
def _concat(values: Sequence[Same], axis: int) -> Spec:
    """Tensors joined along an axis that they have.

    Args:
        values: Tensors of one dtype whose shapes agree but for ``axis``.
        axis: The axis; negative from the end.

    Returns:
        The common shape, its sizes along ``axis`` added.
    """
    for value in values:
        if value.rank == 0:
            raise ShapeError("scalars have no axis to join along; use stack")
    ranked = [v.shape for v in values if v.shape.dims is not None]
    if not ranked:
        return TensorSpec(values[0].dtype)
    dims: list[Dim] = list(ranked[0])
    at = normalize_axis(axis, len(dims))
    total: Dim = 0 if len(ranked) == len(values) else None
    for part in ranked:
        if len(part) != len(dims):
            raise ShapeError(f"values have ranks {len(dims)} and {len(part)}; expected one rank")
        for i, (mine, theirs) in enumerate(zip(dims, part, strict=True)):
            if i == at:
                continue
            if mine is not None and theirs is not None and mine != theirs:
                raise ShapeError(
                    f"shapes {ranked[0]} and {part} differ in axis {i}, not only {at}; "
                    "expected the same sizes but along the axis that is joined"
                )
            dims[i] = theirs if mine is None else mine
        size_here = part[at]
        total = None if total is None or size_here is None else total + size_here
    dims[at] = total
    merged: Shape | None = None
    # No tensor has more axes; without the limit, joining a vector with itself again and again
    # would double what is known of it each time.
    if len(dims) == 1 and values[0].dtype.is_integer and (total is None or total <= MAX_RANK):
        merged = Shape(())
        for part in map(as_shape, values):
            merged = merged.concatenate(part)
    return TensorSpec(values[0].dtype, Shape(dims), dims=merged)


@dispatched()
def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Join tensors along an axis that they have.

    Args:
        values: A list of tensors of one dtype whose shapes agree but for ``axis``. One tensor
            alone is returned as it is.
        axis: The axis, an integer or a scalar tensor; negative from the end.
        name: The name of the operation.

    Returns:
        The common shape, its sizes along ``axis`` added.

    Raises:
        ShapeError: if the shapes are known to differ elsewhere, or the tensors are scalars.
    """
    if isinstance(axis, list | tuple):
        raise ShapeError(
            f"concat: axis must be one integer, got {shown(axis)}; the tensors come first: "
            "hr.concat(values, axis)"
        )
    at = as_int(axis, "axis")
    parts = list(values) if isinstance(values, list | tuple) else [values]
    if len(parts) == 1:
        return _tensor("Identity", parts[0], name=name)
    if not isinstance(at, Tensor):
        return _concat(parts, at, name=name)
    with name_scope(name, "concat"):
        tensors = [convert_to_tensor(part) for part in parts]
        # All parts have one rank, whichever of them tells; their gradients have it, too.
        known = _one_rank([t.spec.shape for t in tensors])
        blocks = [around(_ranked_as(t, known) if t.shape.rank is None else t, at) for t in tensors]
        joined = _concat([block for block, _, _ in blocks], 1)
        _, before, after = blocks[0]
        alike = all(t.spec.shape == known for t in tensors)
        if not (alike and known.is_fully_defined()):
            # Blocks fit each other by the products of sizes alone.
            sizes = [_concat([first, rest], 0) for _, first, rest in blocks]
            fits = _tensor("ReduceAll", _tensor("Equal", _stack(sizes), sizes[0]))
            told_shapes = [_tensor("Shape", t) for t in tensors]
            message = "concat: values differ in other axes than the one that is joined; shapes are"
            joined = holding(joined, fits, [message, *told_shapes])
        size = _tensor("ExpandDims", _tensor("Shape", joined)[1], 0)
        whole = _tensor("Reshape", joined, _concat([before, size, after], 0))
        return _ranked_as(whole, known)


def _one_rank(shapes: Sequence[Shape]) -> Shape:
    """Return the first shape whose rank is known, an unknown one where there is none."""
    ranked = [shape for shape in shapes if shape.rank is not None]
    for shape in ranked:
        if shape.rank != ranked[0].rank:
            raise ShapeError(
                f"concat: values have ranks {ranked[0].rank} and {shape.rank}; expected one rank"
            )
    return ranked[0] if ranked else UNKNOWN


def around(x: Tensor, axis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``x`` as [before, size, after] an axis that a step decides, and both parts' shapes."""
    shape = _tensor("Shape", x)
    at = axis if axis.dtype.name == "int32" else _tensor("Cast", axis, "int32")
    axes = _tensor("Rank", x)
    at = _tensor("Select", _tensor("Less", at, 0), at + axes, at)
    # One before the first axis is behind the last one, and not counted from the end once more.
    at = _tensor("Select", _tensor("Less", at, 0), axes, at)
    before, after = shape[:at], shape[at + 1 :]
    rows = _tensor("ReduceProd", before, axis=0, keepdims=True)
    # Of the axis itself, so that one out of range is refused.
    length = _tensor("ExpandDims", shape[at], 0)
    rest = _tensor("ReduceProd", after, axis=0, keepdims=True)
    return _tensor("Reshape", x, _concat([rows, length, rest], 0)), before, after


def _ranked_as(x: Tensor, like: Shape) -> Tensor:
    if like.rank is None:
        return x
    return _tensor("EnsureShape", x, Shape([None] * like.rank))


def _tensor(op_type: str, *args: Any, **kwargs: Any) -> Tensor:
    result = call_op(op_type, *args, **kwargs)
    assert isinstance(result, Tensor)
    return result


@op("Stack", total=True, early=lambda *parts, axis: np.stack(parts, axis), public="")
def _stack(values: Sequence[Same], axis: int = 0) -> Spec:
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
    known = len(constants) == len(values) and sum(c.size for c in constants) <= _SMALL
    value = np.stack(constants, at) if known else None
    return TensorSpec(values[0].dtype, Shape(dims), value, denoted)


@dispatched()
def stack(values: Any, axis: int | None = 0, name: str | None = "stack") -> Tensor:
    """Join tensors of one shape along a new axis.

    Args:
        values: A list of tensors of one dtype and shape. Of a tensor, its slices along axis 0.
        axis: Where the new axis stands in the result; negative from the end, the first if None.
        name: The name of the operation.

    Returns:
        The common shape with the number of tensors inserted.

    Raises:
        ShapeError: if the shapes are known to differ.
    """
    at = 0 if axis is None else static_int(axis, "axis")
    # Of an array all rows are one array already, and it may have none.
    whole = as_tensor(values) is not None or (isinstance(values, np.ndarray) and values.ndim)
    if at == 0 and (whole or (isinstance(values, list) and not values)):
        return convert_to_tensor(values, preferred_dtype=None if whole else "float32")
    return _stack(as_list(values, "values"), at, name=name)


def parallel_stack(values: Any, name: str | None = "parallel_stack") -> Tensor:
    """Stack tensors along a new first axis.

    Args:
        values: Tensors of one dtype and one fully known shape.
        name: The name of the operation.

    Returns:
        [number of tensors, ...].
    """
    return stack(values, 0, name=name)


@op("Unstack", total=True, public="")
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
    if not dims and value.value is not None:
        dtype = value.value.dtype
        return [TensorSpec(value.dtype, Shape(()), np.array(v, dtype)) for v in value.value]
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
    axis = static_int(axis, "axis")
    count = None if num is None else static_int(num, "num")
    if count is None and tensor.spec.shape.dims is not None:
        count = tensor.spec.shape[normalize_axis(axis, len(tensor.spec.shape))]
    if count is None:
        raise ShapeError(
            f"unstack: the size of axis {told(axis)} of {shown(tensor)} is unknown; pass num="
        )
    return _unstack(tensor, count, axis, name=name)


@op("Split", total=True, public="")
def _split(value: Anything, sizes: Sequence[int], axis: int = 0) -> list[Spec]:
    """Consecutive parts of a tensor along an axis.

    Args:
        value: [...], any dtype.
        sizes: The size of each part.
        axis: The axis; negative from the end.

    Returns:
        One tensor per size.
    """
    if any(s < 0 for s in sizes):
        raise AttributeValueError(f"sizes must be >= 0, got {list(sizes)}")
    if value.shape.dims is None:
        return [TensorSpec(value.dtype)] * len(sizes)
    at = normalize_axis(axis, len(value.shape.dims))
    whole = value.shape.dims[at]
    if whole is not None and sum(sizes) != whole:
        raise ShapeError(f"sizes {list(sizes)} add up to {sum(sizes)}, axis {axis} has {whole}")
    dims = list(value.shape.dims)
    return [TensorSpec(value.dtype, Shape([*dims[:at], s, *dims[at + 1 :]])) for s in sizes]


@op("SplitBy", total=True, host_inputs=["sizes"], public="")
def _split_by(value: Anything, sizes: Index, num: int, axis: int = 0) -> list[Spec]:
    """Consecutive parts of a tensor along an axis, of sizes that the step decides.

    Args:
        value: [...], any dtype.
        sizes: [num], the size of each part, of which one may be -1: what is left.
        num: The number of parts.
        axis: The axis; negative from the end.

    Returns:
        ``num`` tensors.
    """
    if not 0 <= num <= _MOST_PARTS:
        raise AttributeValueError(f"num must be between 0 and {_MOST_PARTS}, got {num}")
    if not sizes.shape.is_compatible_with([num]):
        raise ShapeError(f"sizes must be a vector of {num} elements, got {sizes}")
    if value.shape.dims is None:
        return [TensorSpec(value.dtype)] * num
    at = normalize_axis(axis, len(value.shape.dims))
    parts: Any = as_shape(sizes).dims
    parts = (None,) * num if parts is None else parts
    whole = value.shape.dims[at]
    if sizes.value is not None:
        given = [int(s) for s in sizes.value]
        known = sum(s for s in given if s != -1)
        rest = None if whole is None else whole - known
        wrong = rest is not None and (rest < 0 or (-1 not in given and rest != 0))
        if given.count(-1) > 1 or any(s < -1 for s in given) or wrong:
            raise ShapeError(f"sizes {given} do not divide axis {axis}, which has {whole}")
        parts = [rest if s == -1 else s for s in given]
    dims = list(value.shape.dims)
    return [TensorSpec(value.dtype, Shape([*dims[:at], s, *dims[at + 1 :]])) for s in parts]


def split(
    value: Any,
    num_or_size_splits: Any,
    axis: Any = 0,
    num: int | None = None,
    name: str | None = "split",
) -> list[Tensor]:
    """Split a tensor into consecutive parts along an axis.

    Args:
        value: [...], any dtype.
        num_or_size_splits: The number of equal parts, or their sizes, a list or an integer
            tensor, of which one may be -1: what is left.
        axis: The axis, an integer or a tensor of one; negative from the end.
        num: The number of parts, where the shape of a tensor of sizes does not tell.
        name: The name of the operation.

    Raises:
        ShapeError: if the axis is known not to divide so, or the number of parts is not known.
    """
    tensor = convert_to_tensor(value)
    num = None if num is None else static_int(num, "num")
    sizes = as_tensor(num_or_size_splits)
    if sizes is not None and sizes.shape.rank == 0:
        raise ShapeError("split: a number of parts must be a number, not a tensor")
    given = as_ints(num_or_size_splits, "num_or_size_splits")
    # By sizes a tensor of one element is as good as a scalar, by their number it is not.
    lenient = as_tensor(axis) is not None and not isinstance(given, int)
    at = as_only_int(axis, "axis") if lenient else as_int(axis, "axis")
    if sizes is None:
        pass_over("Const")
    if isinstance(at, Tensor):
        return _split_around(tensor, given, at, num, name)
    whole = None
    if tensor.spec.shape.dims is not None:
        whole = tensor.spec.shape[normalize_axis(at, len(tensor.spec.shape))]
    if isinstance(given, int):
        return _split_evenly(tensor, given, at, whole, name)
    if isinstance(given, Tensor):
        return _split_by(tensor, given, _count_of(given, num), at, name=name)
    if not all(isinstance(s, int) for s in given):
        raise ShapeError(f"split: sizes must be a list of integers, got {given}")
    if num is not None and num != len(given):
        raise ShapeError(f"split: {len(given)} sizes for num={told(num)} parts")
    if -1 in given:
        if whole is None:
            return _split_by(tensor, given, len(given), at, name=name)
        rest = whole - sum(s for s in given if s != -1)
        if given.count(-1) > 1 or rest < 0:
            raise ShapeError(
                f"split: sizes {given} do not divide axis {told(axis)} of {shown(tensor)}"
            )
        given = [rest if s == -1 else s for s in given]
    return _split(tensor, given, at, name=name)


def _split_evenly(
    tensor: Tensor, count: int, axis: int, whole: Dim, name: str | None
) -> list[Tensor]:
    if count < 1 or count > _MOST_PARTS or (whole is not None and whole % count):
        raise ShapeError(
            f"split: axis {axis} of {shown(tensor)} does not divide into {shown(count)} parts "
            "of one size; pass a list of sizes for others"
        )
    if whole is not None:
        return _split(tensor, [whole // count] * count, axis, name=name)
    # Of sizes rounded down; what is left over then does not add up, and is refused.
    size = _tensor("FloorDiv", _tensor("Shape", tensor)[axis], count)
    return _split_by(tensor, _tensor("Fill", [count], size), count, axis, name=name)


def _count_of(sizes: Tensor, num: int | None) -> int:
    count = sizes.spec.shape[0] if num is None and sizes.shape.rank == 1 else num
    if count is None:
        raise ShapeError(f"split: the number of parts is not known from {shown(sizes)}; pass num=")
    return int(count)


def _split_around(
    tensor: Tensor, given: Any, axis: Tensor, num: int | None, name: str | None
) -> list[Tensor]:
    with name_scope(name, "split"):
        at = axis if axis.shape.rank == 0 else _tensor("Reshape", axis, [])
        block, before, after = around(tensor, at)
        parts = split(block, given, 1, num)
        whole = []
        for part in parts:
            size = _tensor("ExpandDims", _tensor("Shape", part)[1], 0)
            again = _tensor("Reshape", part, _concat([before, size, after], 0))
            whole.append(_ranked_as(again, tensor.spec.shape))
        return whole


@op("Tile", total=True, repeats=True, early=np.tile, host_inputs=["multiples"], public="")
def _tile(input: Anything, multiples: Index) -> Spec:
    """The tensor repeated along its axes.

    Args:
        input: [...], any dtype.
        multiples: [rank], how often along each axis.

    Returns:
        Each size times its multiple, the dtype of ``input``.
    """
    if multiples.rank not in (None, 1):
        raise ShapeError(f"multiples must be a vector, got {multiples}")
    if multiples.value is not None and (multiples.value < 0).any():
        raise AttributeValueError(f"multiples must be >= 0, got {multiples.value.tolist()}")
    times = as_shape(multiples)
    if input.shape.dims is None or times.dims is None:
        known = input.rank if times.dims is None else times.rank
        return TensorSpec(input.dtype, UNKNOWN if known is None else Shape([None] * known))
    if len(times) != len(input.shape.dims):
        raise ShapeError(
            f"{len(times)} multiples for a tensor of shape {input.shape}, expected one for each "
            "axis"
        )
    dims = [_product(d, m) for d, m in zip(input.shape.dims, times.dims, strict=True)]
    return TensorSpec(input.dtype, Shape(dims))


def _product(left: Dim, right: Dim) -> Dim:
    if 0 in (left, right):
        return 0
    return None if left is None or right is None else left * right


@dispatched()
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """The tensor repeated along its axes.

    Args:
        input: [...], any dtype.
        multiples: [rank], how often along each axis, a list or an integer tensor.
        name: The name of the operation.

    Returns:
        Each size times its multiple, the dtype of ``input``.

    Raises:
        ShapeError: if there is not one multiple for each axis.
        AttributeValueError: if one is known to be negative.
    """
    return _tile(input, as_ints(multiples, "multiples"), name=name)


@op("TileGrad", host_inputs=["multiples", "shape"], public="")
def tile_grad(dy: Numeric, multiples: Index, shape: Index) -> Spec:
    """The sum of the copies that ``tile`` made.

    Args:
        dy: [...], the shape of the tiled tensor.
        multiples: [rank], as for ``tile``.
        shape: [rank], the shape of what was tiled.

    Returns:
        ``shape``, the dtype of ``dy``.
    """
    return TensorSpec(dy.dtype, as_shape(shape))
