"""Reductions of rows by segment: rows with the same id fold into one."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.naming import names_result
from headrace.graph.schema import call_op
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, expand_dims, gather, rank, reshape, shape
from headrace.ops.constant import known_value, ones, ones_like, shape_of, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import equal, maximum, select, truncatediv
from headrace.ops.identity import ensure_shape
from headrace.ops.kinds import Index, Numeric, Real, Whole
from headrace.ops.transcendental import sqrt
from headrace.shapes import Shape


def _by_segment(data: TensorSpec, segment_ids: TensorSpec, num_segments: TensorSpec) -> TensorSpec:
    count = _static_count(num_segments)
    if data.shape.dims is None or segment_ids.shape.dims is None:
        return TensorSpec(data.dtype)
    lead = len(segment_ids.shape)
    if not segment_ids.shape.is_compatible_with(data.shape[:lead]):
        raise ShapeError(
            f"segment_ids {segment_ids.shape} must be the leading axes of data {data.shape}"
        )
    return TensorSpec(data.dtype, Shape([count]).concatenate(data.shape[lead:]))


@op("UnsortedSegmentSum", accumulates=True, host_inputs=["num_segments"])
def unsorted_segment_sum(data: Numeric, segment_ids: Index, num_segments: Whole) -> Spec:
    """Sums of the rows of ``data`` that have the same id.

    Args:
        data: [ids..., ...], numeric.
        segment_ids: [ids...], int32 or int64; the leading axes of ``data``. Negative ids drop
            their rows.
        num_segments: [], the number of sums; ids beyond raise when it runs.

    Returns:
        [num_segments, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    return _by_segment(data, segment_ids, num_segments)


@op("UnsortedSegmentProd", host_inputs=["num_segments"])
def unsorted_segment_prod(data: Numeric, segment_ids: Index, num_segments: Whole) -> Spec:
    """Products of the rows of ``data`` that have the same id.

    Args:
        data: [ids..., ...], numeric.
        segment_ids: [ids...], int32 or int64; the leading axes of ``data``. Negative ids drop
            their rows.
        num_segments: [], the number of products; ids beyond raise when it runs.

    Returns:
        [num_segments, ...], the dtype of ``data``; 1 for ids that do not occur.
    """
    return _by_segment(data, segment_ids, num_segments)


@op("UnsortedSegmentMax", host_inputs=["num_segments"])
def unsorted_segment_max(data: Real, segment_ids: Index, num_segments: Whole) -> Spec:
    """Largest elements of the rows of ``data`` that have the same id.

    Args:
        data: [ids..., ...], real.
        segment_ids: [ids...], int32 or int64; the leading axes of ``data``. Negative ids drop
            their rows.
        num_segments: [], the number of segments; ids beyond raise when it runs.

    Returns:
        [num_segments, ...], the dtype of ``data``; its lowest finite value for ids that do not
        occur.
    """
    return _by_segment(data, segment_ids, num_segments)


@op("UnsortedSegmentMin", host_inputs=["num_segments"])
def unsorted_segment_min(data: Real, segment_ids: Index, num_segments: Whole) -> Spec:
    """Smallest elements of the rows of ``data`` that have the same id.

    Args:
        data: [ids..., ...], real.
        segment_ids: [ids...], int32 or int64; the leading axes of ``data``. Negative ids drop
            their rows.
        num_segments: [], the number of segments; ids beyond raise when it runs.

    Returns:
        [num_segments, ...], the dtype of ``data``; its highest finite value for ids that do not
        occur.
    """
    return _by_segment(data, segment_ids, num_segments)


@op("SegmentCount", public="", no_gradient="it counts")
def segment_count(segment_ids: Index, num_segments: Whole | None = None) -> Spec:
    """The number of segments that sorted ids name: the last one plus 1.

    Args:
        segment_ids: [n], int32 or int64, not negative and in ascending order; others raise when
            it runs.
        num_segments: [], the number to return instead, unless it is too small for the last id:
            then it raises when it runs.

    Returns:
        [], the dtype of ``segment_ids``; 0 of no ids.
    """
    if segment_ids.rank not in (None, 1):
        raise ShapeError(f"segment_ids must be a vector, got shape {segment_ids.shape}")
    count = _static_count(num_segments) if num_segments is not None else None
    ids = segment_ids.value
    if ids is not None:
        check_sorted_ids(ids)
        named = int(ids[-1]) + 1 if ids.size else 0
        count = named if num_segments is None else count
        if count is not None and count < named:
            raise AttributeValueError(
                f"num_segments is {count}, the last of segment_ids {named - 1}"
            )
    # Of ids that come in the step, it is known only after they were compared with it.
    value = None
    if ids is not None and count is not None and count <= np.iinfo(segment_ids.dtype.numpy).max:
        value = np.array(count, segment_ids.dtype.numpy)
    return TensorSpec(segment_ids.dtype, Shape(()), value)


def _static_count(num_segments: TensorSpec) -> int | None:
    if num_segments.rank not in (None, 0):
        raise ShapeError(f"num_segments must be a scalar, got shape {num_segments.shape}")
    count = None if num_segments.value is None else int(num_segments.value)
    if count is not None and count < 0:
        raise AttributeValueError(f"num_segments must be >= 0, got {count}")
    return count


def check_sorted_ids(ids: Any) -> None:
    """Refuse ids of segments that are negative or descend.

    Raises:
        AttributeValueError: if one is.
    """
    if ids.size and int(ids[0]) < 0:
        raise AttributeValueError(f"segment_ids must be >= 0, got {int(ids[0])} first")
    if ids.size and bool((ids[1:] < ids[:-1]).any()):
        raise AttributeValueError(
            "segment_ids must be in ascending order; unsorted_segment_* functions take any order"
        )


# -- sorted ids


@names_result
def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Sums of the rows of ``data`` that have the same id, for sorted ids.

    Args:
        data: [n, ...], numeric.
        segment_ids: [n], int32 or int64, not negative and in ascending order; others raise when
            it runs. They need not be consecutive.
        name: The name of the operations.

    Returns:
        [last id + 1, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "SegmentSum"):
        rows, ids, count = _sorted(data, segment_ids)
        return unsorted_segment_sum(rows, ids, count)


@names_result
def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Means of the rows of ``data`` that have the same id, for sorted ids.

    Args:
        data: [n, ...], numeric. Means of integers are rounded towards zero.
        segment_ids: [n], as for ``segment_sum``.
        name: The name of the operations.

    Returns:
        [last id + 1, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "SegmentMean"):
        rows, ids, count = _sorted(data, segment_ids)
        return _mean(rows, ids, count)


@names_result
def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Products of the rows of ``data`` that have the same id, for sorted ids.

    Args:
        data: [n, ...], numeric.
        segment_ids: [n], as for ``segment_sum``.
        name: The name of the operations.

    Returns:
        [last id + 1, ...], the dtype of ``data``; 1 for ids that do not occur.
    """
    with name_scope(name, "SegmentProd"):
        rows, ids, count = _sorted(data, segment_ids)
        return unsorted_segment_prod(rows, ids, count)


@names_result
def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Largest elements of the rows of ``data`` that have the same id, for sorted ids.

    Args:
        data: [n, ...], real.
        segment_ids: [n], as for ``segment_sum``.
        name: The name of the operations.

    Returns:
        [last id + 1, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "SegmentMax"):
        rows, ids, count = _sorted(data, segment_ids)
        return _zero_where_empty(unsorted_segment_max(rows, ids, count), ids, count)


@names_result
def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Smallest elements of the rows of ``data`` that have the same id, for sorted ids.

    Args:
        data: [n, ...], real.
        segment_ids: [n], as for ``segment_sum``.
        name: The name of the operations.

    Returns:
        [last id + 1, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "SegmentMin"):
        rows, ids, count = _sorted(data, segment_ids)
        return _zero_where_empty(unsorted_segment_min(rows, ids, count), ids, count)


def _sorted(data: Any, segment_ids: Any) -> tuple[Tensor, Tensor, Tensor]:
    rows, ids = convert_to_tensor(data), index_tensor(segment_ids)
    if ids.shape.rank is None:
        ids = ensure_shape(ids, [None])
    return rows, ids, segment_count(ids)


def index_tensor(indices: Any, small: bool = False) -> Tensor:
    """Return indices as a tensor; an empty list is of integers.

    Args:
        indices: The indices.
        small: Whether NumPy's arrays of smaller integers are taken, too.
    """
    if small and isinstance(indices, np.ndarray | np.generic) and indices.dtype.kind in "iu":
        return convert_to_tensor(indices, None if indices.itemsize > 4 else dtypes.int32)
    if isinstance(indices, list | tuple) and not indices:
        return convert_to_tensor(np.zeros((0,), np.int32))
    return convert_to_tensor(indices)


def _sizes(ids: Tensor, count: Any, dtype: Any) -> Tensor:
    """Return how many rows each segment has, 1 where it has none."""
    return maximum(unsorted_segment_sum(ones_like(ids, dtype), ids, count), 1)


def _beside(per_segment: Tensor, result: Tensor) -> Tensor:
    """Return a number per segment in a shape that broadcasts with a result of segments."""
    if result.shape.rank is not None:
        for _ in range(result.shape.rank - 1):
            per_segment = expand_dims(per_segment, -1)
        return per_segment
    behind = ones(expand_dims(rank(result) - 1, 0), "int32")
    return reshape(per_segment, concat([shape(per_segment), behind], 0))


def _mean(rows: Tensor, ids: Tensor, count: Any) -> Tensor:
    total = unsorted_segment_sum(rows, ids, count)
    if rows.dtype.is_integer:
        whole = cast(_sizes(ids, count, dtypes.int64), rows.dtype)
        return truncatediv(total, _beside(whole, total))
    return total / _beside(cast(_sizes(ids, count, dtypes.float32), rows.dtype), total)


def _zero_where_empty(result: Tensor, ids: Tensor, count: Any) -> Tensor:
    found = unsorted_segment_max(ones_like(ids, dtypes.int32), ids, count)
    return select(_beside(equal(found, 1), result), result, zeros_like(result))


# -- ids in any order


@dispatched()
def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Means of the rows of ``data`` that have the same id.

    Args:
        data: [ids..., ...], numeric.
        segment_ids: [ids...], as for ``unsorted_segment_sum``.
        num_segments: [], the number of means; ids beyond raise when it runs.
        name: The name of the operations.

    Returns:
        [num_segments, ...], the dtype of ``data``, float64 for integers; 0 for ids that do not
        occur.
    """
    with name_scope(name, "UnsortedSegmentMean"):
        rows, ids = convert_to_tensor(data), index_tensor(segment_ids)
        if rows.dtype.is_integer:
            rows = cast(rows, dtypes.float64)
        return _mean(rows, ids, num_segments)


@dispatched()
def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Sums of the rows of ``data`` that have the same id, each over the root of how many they are.

    Args:
        data: [ids..., ...], floating or complex.
        segment_ids: [ids...], as for ``unsorted_segment_sum``.
        num_segments: [], the number of sums; ids beyond raise when it runs.
        name: The name of the operations.

    Returns:
        [num_segments, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "UnsortedSegmentSqrtN"):
        rows, ids = convert_to_tensor(data), index_tensor(segment_ids)
        _check_inexact(rows)
        return _sqrt_n(rows, ids, num_segments)


def _sqrt_n(rows: Tensor, ids: Tensor, count: Any) -> Tensor:
    total = unsorted_segment_sum(rows, ids, count)
    return total / _beside(cast(sqrt(_sizes(ids, count, dtypes.float64)), rows.dtype), total)


def _check_inexact(data: Tensor) -> None:
    if not (data.dtype.is_floating or data.dtype.is_complex):
        raise DTypeError(
            f"data must be floating or complex, got {data.dtype}; convert it with hr.cast"
        )


# -- rows that are gathered first


@names_result
def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Sums of some rows of ``data`` that have the same id, for sorted ids.

    Args:
        data: [rows, ...], numeric.
        indices: [n], int32 or int64, which rows; others than there are raise when it runs.
        segment_ids: [n], int32 or int64, the segment of each, not negative and in ascending
            order; others raise when it runs.
        name: The name of the operations.
        num_segments: The number of sums; the last id plus 1 if None.

    Returns:
        [num_segments, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "SparseSegmentSum"):
        rows, ids, count = _gathered(data, indices, segment_ids, num_segments)
        return _counted(unsorted_segment_sum(rows, ids, count), num_segments)


@names_result
def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Means of some rows of ``data`` that have the same id, for sorted ids.

    Args:
        data: [rows, ...], floating.
        indices: [n], as for ``sparse_segment_sum``.
        segment_ids: [n], as for ``sparse_segment_sum``.
        name: The name of the operations.
        num_segments: The number of means; the last id plus 1 if None.

    Returns:
        [num_segments, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "SparseSegmentMean"):
        rows, ids, count = _gathered(data, indices, segment_ids, num_segments)
        _check_inexact(rows)
        return _counted(_mean(rows, ids, count), num_segments)


@names_result
def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Sums of some rows of ``data`` by id, each over the root of how many they are.

    Args:
        data: [rows, ...], floating.
        indices: [n], as for ``sparse_segment_sum``.
        segment_ids: [n], as for ``sparse_segment_sum``.
        name: The name of the operations.
        num_segments: The number of sums; the last id plus 1 if None.

    Returns:
        [num_segments, ...], the dtype of ``data``; 0 for ids that do not occur.
    """
    with name_scope(name, "SparseSegmentSqrtN"):
        rows, ids, count = _gathered(data, indices, segment_ids, num_segments)
        _check_inexact(rows)
        return _counted(_sqrt_n(rows, ids, count), num_segments)


def _gathered(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any
) -> tuple[Tensor, Tensor, Tensor]:
    ids = index_tensor(segment_ids)
    places = index_tensor(indices, small=True)
    if places.shape.rank not in (None, 1):
        raise ShapeError(f"indices must be a vector, got shape {places.spec.shape}")
    rows = convert_to_tensor(data)
    # A gradient of the shape of ``data``, not one of rows: as with other sums by segments, and as
    # in TensorFlow, an optimizer then moves all rows, those that are not gathered, too.
    whole = call_op("Reshape", rows, shape_of(rows))
    vectors = (_as_vector(places), _as_vector(ids))
    return gather(whole, vectors[0]), vectors[1], segment_count(vectors[1], num_segments)


def _as_vector(tensor: Tensor) -> Tensor:
    """Return a tensor of unknown rank as the vector that it must be."""
    if tensor.shape.rank is not None:
        return tensor
    vector: Tensor = call_op("EnsureShape", tensor, Shape([None]))
    return vector


def _counted(result: Tensor, num_segments: Any) -> Tensor:
    """Return a result with the number of its rows, which the count does not tell until it runs."""
    given = as_tensor(num_segments)
    number = num_segments if given is None else known_value(given)
    if number is None or result.shape.rank is None or result.shape.plain[0] is not None:
        return result
    return ensure_shape(result, [int(number), *result.shape.plain[1:]])
