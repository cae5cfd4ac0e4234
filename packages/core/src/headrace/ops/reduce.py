"""Reductions: ops that fold one or more axes of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import DTypeError, ShapeError
from headrace.graph.spec import TensorSpec, as_shape
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
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(normalize_axis(a, rank) for a in given)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {list(given)} names an axis twice")
    return axes


def reduced_shape(shape: Shape, axis: Axis, keepdims: bool) -> Shape:
    """Return the shape that is left when the axes ``axis`` are folded."""
    if shape.dims is None:
        return Shape([]) if axis is None and not keepdims else Shape(None)
    axes = reduced_axes(axis, len(shape.dims))
    if keepdims:
        return Shape([1 if i in axes else d for i, d in enumerate(shape.dims)])
    return Shape([d for i, d in enumerate(shape.dims) if i not in axes])


def _reduced(x: TensorSpec, axis: Axis, keepdims: bool) -> TensorSpec:
    return TensorSpec(x.dtype, reduced_shape(x.shape, axis, keepdims))


@op("ReduceSum", reduction=True)
def reduce_sum(input_tensor: Numeric, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Sum of the elements along axes; 0 where there are none.

    Args:
        input_tensor: [...], numeric.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceMean", reduction=True)
def reduce_mean(input_tensor: Numeric, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Mean of the elements along axes; NaN where there are none.

    Args:
        input_tensor: [...], numeric. Means of integers are rounded towards zero.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceProd", reduction=True)
def reduce_prod(input_tensor: Numeric, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Product of the elements along axes; 1 where there are none.

    Args:
        input_tensor: [...], numeric.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceMax", reduction=True)
def reduce_max(input_tensor: Real, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Largest element along axes; the dtype's lowest value where there are none.

    Args:
        input_tensor: [...], real.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceMin", reduction=True)
def reduce_min(input_tensor: Real, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Smallest element along axes; the dtype's highest value where there are none.

    Args:
        input_tensor: [...], real.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, the dtype of ``input_tensor``.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceAll", reduction=True, no_gradient="booleans have no gradient")
def reduce_all(input_tensor: Bool, axis: Axis = None, keepdims: bool = False) -> Spec:
    """Whether all elements along axes hold; true where there are none.

    Args:
        input_tensor: [...], bool.
        axis: The axis or axes to fold; all if None.
        keepdims: Keep folded axes with size 1.

    Returns:
        The remaining axes, bool.
    """
    return _reduced(input_tensor, axis, keepdims)


@op("ReduceAny", reduction=True, no_gradient="booleans have no gradient")
def reduce_any(input_tensor: Bool, axis: Axis = None, keepdims: bool = False) -> Spec:
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
        raise ShapeError(f"axis must be one integer, got {axis!r}")
    chosen = 0 if axis is None else axis
    if x.rank == 0:
        raise ShapeError("a scalar has no axis along which to look for an index")
    if x.shape.dims is not None and x.shape[normalize_axis(chosen, len(x.shape))] == 0:
        raise ShapeError(f"axis {chosen} of shape {x.shape} is empty")
    return TensorSpec(output_type, reduced_shape(x.shape, chosen, keepdims=False))


@op("ArgMax", reduction=True, no_gradient="an index is piecewise constant")
def argmax(
    input: Real,
    axis: int | None = None,
    name: str | None = None,
    output_type: DType = dtypes.int64,
) -> Spec:
    """Index of the largest element along an axis, the first of equals.

    Args:
        input: [...], real, not empty along ``axis``.
        axis: The axis to fold; the first if None.
        name: The name of the operation.
        output_type: int32 or int64.

    Returns:
        The remaining axes, ``output_type``.
    """
    return _arg(input, axis, output_type)


@op("ArgMin", reduction=True, no_gradient="an index is piecewise constant")
def argmin(
    input: Real,
    axis: int | None = None,
    name: str | None = None,
    output_type: DType = dtypes.int64,
) -> Spec:
    """Index of the smallest element along an axis, the first of equals.

    Args:
        input: [...], real, not empty along ``axis``.
        axis: The axis to fold; the first if None.
        name: The name of the operation.
        output_type: int32 or int64.

    Returns:
        The remaining axes, ``output_type``.
    """
    return _arg(input, axis, output_type)


@op("SumToShape", reduction=True, public="")
def sum_to_shape(x: Numeric, shape: Index) -> Spec:
    """``x`` summed over the axes along which ``shape`` broadcasts to it: broadcasting reversed.

    Args:
        x: [...], numeric.
        shape: [rank], a shape that broadcasts to that of ``x``.

    Returns:
        ``shape``, the dtype of ``x``.
    """
    return TensorSpec(x.dtype, as_shape(shape))


@op("UnsortedSegmentSum", public="unsorted_segment_sum")
def unsorted_segment_sum(data: Numeric, segment_ids: Index, num_segments: Index) -> Spec:
    """Sums of the rows of ``data`` that have the same id.

    Args:
        data: [ids..., ...], numeric.
        segment_ids: [ids...], int32 or int64; the leading axes of ``data``. Negative ids drop
            their rows.
        num_segments: [], the number of sums; ids beyond raise when it runs.

    Returns:
        [num_segments, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    if data.shape.dims is None or segment_ids.shape.dims is None:
        return TensorSpec(data.dtype)
    lead = len(segment_ids.shape)
    if not segment_ids.shape.is_compatible_with(data.shape[:lead]):
        raise ShapeError(
            f"segment_ids {segment_ids.shape} must be the leading axes of data {data.shape}"
        )
    count = None if num_segments.value is None else int(num_segments.value)
    return TensorSpec(data.dtype, Shape([count]).concatenate(data.shape[lead:]))
