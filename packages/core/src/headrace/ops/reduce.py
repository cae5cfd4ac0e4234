"""Reductions: ops that fold one or more axes of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType
from headrace.errors import DTypeError, ShapeError, shown
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.scopes import name_scope, pass_over
from headrace.graph.spec import MAX_RANK, TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.aliases import flag, renamed
from headrace.ops.arguments import as_ints
from headrace.ops.array import concat, gather, rank, reshape, shape, transpose
from headrace.ops.conversion import bitcast, integers_of
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Bool, Index, Numeric, Real
from headrace.shapes import Shape, normalize_axis

Axis = int | Sequence[int] | None


def reduced_axes(axis: Axis, rank: int) -> tuple[int, ...]:
    """Return the axes that a reduction folds, counted from the front.

    Raises:
        ShapeError: if one is out of range or named twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else tuple(items(axis, "axis"))
    axes = tuple(normalize_axis(a, rank) for a in given)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {list(given)} names an axis twice")
    return axes


def check_possible(axis: Axis) -> None:
    """Refuse axes that no tensor has, where the rank is not known.

    Raises:
        ShapeError: if there is one.
    """
    for at in () if axis is None else (axis,) if isinstance(axis, int) else axis:
        if not -MAX_RANK <= at < MAX_RANK:
            raise ShapeError(f"axis {at} is out of range: a tensor has {MAX_RANK} axes at most")


def reduced_shape(shape: Shape, axis: Axis, keepdims: bool) -> Shape:
    """Return the shape that is left when the axes ``axis`` are folded."""
    if shape.dims is None:
        check_possible(axis)
        return Shape([]) if axis is None and not keepdims else Shape(None)
    axes = reduced_axes(axis, len(shape.dims))
    if keepdims:
        return Shape([1 if i in axes else d for i, d in enumerate(shape.dims)])
    return Shape([d for i, d in enumerate(shape.dims) if i not in axes])


def _reduced(x: TensorSpec, axis: Axis, keepdims: bool) -> TensorSpec:
    return TensorSpec(x.dtype, reduced_shape(x.shape, axis, keepdims))


def _in_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction that does not widen small integers, as NumPy's does."""
    return lambda x, *, axis, keepdims: function(x, axis, dtype=x.dtype, keepdims=keepdims)


@op("ReduceSum", total=True, reduction=True, early=_in_dtype(np.sum), public="", node_name="Sum")
def _sum(input_tensor: Numeric, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Sum of the elements along axes; 0 where there are none.

    Args:
        input_tensor: [...], numeric.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceMean", total=True, reduction=True, public="", node_name="Mean")
def _mean(input_tensor: Numeric, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Mean of the elements along axes; NaN where there are none.

    Args:
        input_tensor: [...], numeric. Means of integers are rounded towards zero.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceProd", total=True, reduction=True, early=_in_dtype(np.prod), public="", node_name="Prod")
def _prod(input_tensor: Numeric, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Product of the elements along axes; 1 where there are none.

    Args:
        input_tensor: [...], numeric.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceMax", total=True, reduction=True, early=np.max, public="", node_name="Max")
def _max(input_tensor: Real, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Largest element along axes; the dtype's lowest value where there are none.

    Args:
        input_tensor: [...], real.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceMin", total=True, reduction=True, early=np.min, public="", node_name="Min")
def _min(input_tensor: Real, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Smallest element along axes; the dtype's highest value where there are none.

    Args:
        input_tensor: [...], real.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op(
    "ReduceAll",
    total=True,
    reduction=True,
    public="",
    no_gradient="booleans have no gradient",
    node_name="All",
)
def _all(input_tensor: Bool, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Whether all elements along axes hold; true where there are none.

    Args:
        input_tensor: [...], bool.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, bool.
    """
    return _reduced(input_tensor, axis, keepdims)


@op(
    "ReduceAny",
    total=True,
    reduction=True,
    public="",
    no_gradient="booleans have no gradient",
    node_name="Any",
)
def _any(input_tensor: Bool, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Whether any element along axes holds; false where there are none.

    Args:
        input_tensor: [...], bool.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, bool.
    """
    return _reduced(input_tensor, axis, keepdims)


def _arg(x: TensorSpec, axis: int | None, output_type: DType) -> TensorSpec:
    if not output_type.is_integer:
        raise DTypeError(f"output_type must be an integer dtype, got {output_type}")
    if axis is not None and not isinstance(axis, int):
        raise ShapeError(f"axis must be one integer, got {shown(axis)}")
    chosen = 0 if axis is None else axis
    if x.rank == 0:
        raise ShapeError("a scalar has no axis along which to look for an index")
    if x.shape.dims is not None and x.shape[normalize_axis(chosen, len(x.shape))] == 0:
        raise ShapeError(f"axis {chosen} of shape {x.shape} is empty")
    return TensorSpec(output_type, reduced_shape(x.shape, chosen, keepdims=False))


@op("ArgMax", reduction=True, public="", no_gradient="an index is piecewise constant")
def argmax_along(input: Real, axis: int | None = None, output_type: DType = dtypes.int64) -> Spec:
    """Index of the largest element along an axis, the first of equals; NaN is passed over.

    Args:
        input: [...], real, not empty along ``axis``.
        axis: The axis to fold; the first if None.
        output_type: int32 or int64.

    Returns:
        The remaining axes, ``output_type``.
    """
    return _arg(input, axis, output_type)


@op("ArgMin", reduction=True, public="", no_gradient="an index is piecewise constant")
def argmin_along(input: Real, axis: int | None = None, output_type: DType = dtypes.int64) -> Spec:
    """Index of the smallest element along an axis, the first of equals; NaN is passed over.

    Args:
        input: [...], real, not empty along ``axis``.
        axis: The axis to fold; the first if None.
        output_type: int32 or int64.

    Returns:
        The remaining axes, ``output_type``.
    """
    return _arg(input, axis, output_type)


@op("SumToShape", total=True, host_inputs=["shape"], reduction=True, public="")
def sum_to_shape(x: Numeric, shape: Index) -> Spec:
    """``x`` summed over the axes along which ``shape`` broadcasts to it: broadcasting reversed.

    Args:
        x: [...], numeric.
        shape: [rank], a shape that broadcasts to that of ``x``.

    Returns:
        ``shape``, the dtype of ``x``.
    """
    return TensorSpec(x.dtype, as_shape(shape))


@op("ReductionOrder", host_inputs=["axes", "rank"], public="", no_gradient="it yields axes")
def _reduction_order(axes: Index, rank: Index) -> tuple[Spec, ...]:
    """The permutation that brings axes behind the others, for axes that only a step knows.

    Args:
        axes: [k], the axes, which may count from the end.
        rank: [], how many axes there are.

    Returns:
        The permutation [rank], its inverse [rank], and [rank], 0 for the axes and 1 for others,
        all int32.
    """
    if axes.rank not in (None, 1) or rank.rank not in (None, 0):
        raise ShapeError(f"axes must be a vector and rank a scalar, got {axes.shape}, {rank.shape}")
    count = None if rank.value is None else int(rank.value)
    if count is not None and not 0 <= count <= MAX_RANK:
        raise ShapeError(f"rank must be in [0, {MAX_RANK}], got {count}")
    return (TensorSpec(dtypes.int32, Shape([count])),) * 3


# -- functions


def _fold(primitive: Any, tensor: Any, axis: Any, keepdims: Any, name: str | None) -> Tensor:
    where = None if axis is None else _each_once(as_ints(axis, "axis"), tensor)
    if where is None:
        # TensorFlow has a constant of the axes, or computes them.
        known = isinstance(tensor, Tensor) and tensor.spec.shape.dims is not None
        pass_over(*(["Const"] if known else ["Rank", "range"]))
    keep = flag("keepdims", keepdims)
    if not isinstance(where, Tensor):
        folded: Tensor = primitive(tensor, where, keep, name=name)
        return folded
    with name_scope(name, primitive.schema.type):
        dtype = dtypes.bool_ if primitive in (_all, _any) and as_tensor(tensor) is None else None
        flat, dims, kept = folded_last(convert_to_tensor(tensor, dtype), where)
        result: Tensor = primitive(flat, -1)
        return result if not keep else reshape(result, dims * kept + (1 - kept))


def _extreme(primitive: Any, value: Any, axis: Any, keepdims: Any, name: str | None) -> Tensor:
    integers = integers_of(value)
    if integers is None:
        return _fold(primitive, value, axis, keepdims, name)
    # Levels of a range are in the order of their integers.
    found = _fold(primitive, integers, axis, keepdims, "levels")
    named = name or primitive.schema.type.removeprefix("Reduce")
    levels: Tensor = bitcast(found, convert_to_tensor(value).dtype, name=named)
    return levels


def _each_once(axes: Any, value: Any) -> Any:
    """Return known axes of a tensor without those that were named before."""
    if not isinstance(axes, list) or len(axes) < 2 or not all(isinstance(a, int) for a in axes):
        return axes
    tensor = as_tensor(value)
    count = np.ndim(value) if tensor is None else tensor.shape.rank
    named: dict[int, int] = {}
    for at in axes:
        inside = count is not None and -count <= at < count
        named.setdefault(at % count if inside and count else at, at)
    return list(named.values())


def folded_last(x: Tensor, axes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``x`` with axes that only a step knows folded into one, behind all others.

    Args:
        x: [...], any dtype.
        axes: int32 or int64, the axes.

    Returns:
        The transposed and reshaped tensor, the shape of ``x``, and for each axis of ``x`` 1 if it
        remains and 0 if it is one of ``axes``.
    """
    if axes.shape.rank != 1:
        axes = reshape(axes, [-1])
    order, _, kept = _reduction_order(axes, rank(x))
    count = axes.spec.shape.num_elements()
    # Several axes may be the same one.
    remaining: Any = _sum(kept, None, False)
    if count is not None and count < 2 and x.shape.rank is not None:
        remaining = max(x.shape.rank - count, 0)
    dims = gather(shape(x), order)
    length = _prod(dims[remaining:], 0, True)
    return reshape(transpose(x, order), concat([dims[:remaining], length], 0)), shape(x), kept


def axis_last(x: Tensor, axis: Any) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return ``x`` with one axis as the last, and a function that brings a tensor's back.

    Args:
        x: [...], any dtype, at least one dimension.
        axis: An integer, or a scalar tensor of int32 or int64.

    Raises:
        ShapeError: if there is no such axis.
    """
    if x.shape.rank == 0:
        raise ShapeError("a scalar has no axis")
    if axis == -1:
        return x, lambda tensor: tensor
    if isinstance(axis, int) and x.shape.rank is not None:
        order = list(range(x.shape.rank))
        at = normalize_axis(axis, x.shape.rank)
        order[at], order[-1] = order[-1], order[at]
        if at == order[at]:
            return x, lambda tensor: tensor
        return transpose(x, order), lambda tensor: transpose(tensor, order)
    axes = reshape(convert_to_tensor(axis), [1])
    by, back, _ = _reduction_order(axes, rank(x))
    return transpose(x, by), lambda tensor: transpose(tensor, back)


def axes_last(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Return ``x`` with some axes behind all others, in the order given.

    Raises:
        ShapeError: if one is out of range or named twice.
    """
    if x.shape.rank is None:
        return transpose(x, _reduction_order(list(axes), rank(x))[0])
    last = reduced_axes(axes, x.shape.rank)
    return transpose(x, [a for a in range(x.shape.rank) if a not in last] + list(last))


@dispatched()
def reduce_sum(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Sum of the elements along axes; 0 where there are none.

    Args:
        input_tensor: [...], numeric.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operation.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.

    Raises:
        ShapeError: if an axis is out of range.
    """
    where = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return _fold(_sum, input_tensor, where, keep, name)


@dispatched()
def reduce_mean(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Mean of the elements along axes; NaN where there are none.

    Args:
        input_tensor: [...], numeric. Means of integers are rounded towards zero.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operation.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.

    Raises:
        ShapeError: if an axis is out of range.
    """
    where = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return _fold(_mean, input_tensor, where, keep, name)


@dispatched()
def reduce_prod(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Product of the elements along axes; 1 where there are none.

    Args:
        input_tensor: [...], numeric.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operation.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.

    Raises:
        ShapeError: if an axis is out of range.
    """
    where = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return _fold(_prod, input_tensor, where, keep, name)


@dispatched()
def reduce_max(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Largest element along axes; the dtype's lowest value where there are none.

    Args:
        input_tensor: [...], real or quantized.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operation.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.

    Raises:
        ShapeError: if an axis is out of range.
    """
    where = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return _extreme(_max, input_tensor, where, keep, name)


@dispatched()
def reduce_min(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Smallest element along axes; the dtype's highest value where there are none.

    Args:
        input_tensor: [...], real or quantized.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operation.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.

    Raises:
        ShapeError: if an axis is out of range.
    """
    where = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return _extreme(_min, input_tensor, where, keep, name)


@dispatched()
def reduce_all(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether all elements along axes hold; true where there are none.

    Args:
        input_tensor: [...], bool.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operation.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, bool.

    Raises:
        ShapeError: if an axis is out of range.
    """
    where = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return _fold(_all, input_tensor, where, keep, name)


@dispatched()
def reduce_any(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether any element along axes holds; false where there are none.

    Args:
        input_tensor: [...], bool.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operation.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, bool.

    Raises:
        ShapeError: if an axis is out of range.
    """
    where = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return _fold(_any, input_tensor, where, keep, name)
