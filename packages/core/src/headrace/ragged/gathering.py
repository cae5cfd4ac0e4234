"""Choosing rows and elements of ragged tensors."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops import gather as dense
from headrace.ops.arguments import static_value
from headrace.ops.array import expand_dims, reshape, shape
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import zeros
from headrace.ops.conversion import cast
from headrace.ops.elementwise import greater_equal, less, logical_and
from headrace.ops.joining import concat
from headrace.ops.reduce import reduce_all
from headrace.ops.report import assert_true
from headrace.ops.segment import unsorted_segment_sum
from headrace.ragged.partitions import after, count_of, ids_of, lengths_of, spans, splits_of
from headrace.ragged.tensor import RaggedTensor, as_ragged


def gather_rows(params: RaggedTensor, indices: Tensor) -> RaggedTensor:
    """Return rows of a ragged tensor, one for each of a vector of indices."""
    wide = cast(indices, params.row_splits.dtype)
    starts = dense.gather(params.row_splits[:-1], wide)
    lengths = dense.gather(lengths_of(params.row_splits), wide)
    places, splits = spans(starts, lengths)
    splits.set_shape([None if wide.spec.shape[0] is None else wide.spec.shape[0] + 1])
    return RaggedTensor(_taken(params.values, places), splits)


def _taken(values: Any, places: Tensor) -> Any:
    if isinstance(values, RaggedTensor):
        return gather_rows(values, places)
    return dense.gather(values, places)


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int | None = 0,
) -> Any:
    """Return rows, one for each index; see ``hr.gather``. ``axis`` must be that of the batch.

    Raises:
        AttributeValueError: if ``axis`` is another.
    """
    del validate_indices
    batch = batch_dims or 0
    if axis not in (None, 0, batch) or batch < 0:
        raise AttributeValueError(
            f"gather: a ragged tensor is gathered along axis {max(batch, 0)} of batch_dims={batch} "
            f"only, got axis {shown(axis)}"
        )
    with name_scope(name, "RaggedGather"):
        values, places = as_ragged(params), as_ragged(indices, preferred_dtype=dtypes.int64)
        if not places.dtype.is_integer:
            raise DTypeError(f"gather: indices must be integers, got {places.dtype}")
        return _gather(values, places) if batch == 0 else _by_batch(values, places, batch)


def _gather(params: Any, indices: Any) -> Any:
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_gather(params, indices.values))
    if not isinstance(params, RaggedTensor):
        return dense.gather(params, indices)
    rank = indices.shape.rank
    if rank is None:
        raise ShapeError("gather: the rank of indices of a ragged tensor must be known")
    if rank == 0:
        return row(params, indices)
    if rank > 1:
        nested = RaggedTensor.from_tensor(
            indices, ragged_rank=rank - 1, row_splits_dtype=params.row_splits.dtype
        )
        return nested.with_flat_values(gather_rows(params, nested.flat_values))
    return gather_rows(params, indices)


def row(params: RaggedTensor, index: Any) -> Any:
    """Return one row."""
    splits = params.row_splits
    known, where = splits.spec.value, static_value(convert_to_tensor(index))
    if known is not None and where is not None and 0 <= int(where) < len(known) - 1:
        return params.values[int(known[int(where)]) : int(known[int(where) + 1])]
    at = cast(convert_to_tensor(index), splits.dtype)
    start, limit = dense.gather(splits[:-1], at), dense.gather(splits[1:], at)
    return params.values[start:limit]


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """Return elements of each row, one for each index of that row; see ``hr.batch_gather``."""
    with name_scope(name, "RaggedBatchGather"):
        values, places = as_ragged(params), as_ragged(indices, preferred_dtype=dtypes.int64)
        rank = places.shape.rank
        if rank is None:
            raise ShapeError("batch_gather: the rank of indices must be known")
        if rank == 0:
            raise ShapeError("batch_gather: indices must have an axis at least, got a scalar")
        return _gather(values, places) if rank == 1 else _by_batch(values, places, rank - 1)


def _by_batch(params: Any, indices: Any, batch: int) -> Any:
    if not isinstance(params, RaggedTensor):
        params = RaggedTensor.from_tensor(params)
    uniform = None if isinstance(indices, RaggedTensor) else indices
    if uniform is not None:
        indices = RaggedTensor.from_tensor(indices)
    rows = assert_equal(
        cast(params.nrows(), dtypes.int64),
        cast(indices.nrows(), dtypes.int64),
        message="gather: params and indices must have the same number of rows",
    )
    if batch > 1:
        same = assert_equal(
            cast(params.row_splits, dtypes.int64),
            cast(indices.row_splits, dtypes.int64),
            message="gather: params and indices must have the same rows before the batch ends",
        )
        splits = after([rows, same], indices.row_splits)
        return RaggedTensor(_by_batch(params.values, indices.values, batch - 1), splits)
    if isinstance(indices.values, RaggedTensor):
        flat = indices.values.flat_values
        ids = indices.value_rowids()
        for splits in indices.values.nested_row_splits:
            ids = dense.gather(ids, ids_of(splits))
    else:
        flat = indices.values
        ids = indices.value_rowids()
    wide = cast(flat, params.row_splits.dtype)
    ids = cast(after([rows], ids), wide.dtype)
    lengths = dense.gather(lengths_of(params.row_splits), ids)
    starts = dense.gather(params.row_splits[:-1], ids)
    for _ in range((wide.shape.rank or 1) - 1):
        lengths, starts = expand_dims(lengths, -1), expand_dims(starts, -1)
    inside = logical_and(greater_equal(wide, 0), less(wide, lengths))
    check = assert_true(reduce_all(inside), ["gather: an index is not in its row:", wide])
    found = _gather(params.values, after([check], wide + starts))
    if uniform is not None and isinstance(found, Tensor):
        inner = shape(found)[wide.shape.rank or 1 :]
        made = reshape(found, concat([shape(uniform), inner], 0))
        made.set_shape([*uniform.spec.shape, *found.spec.shape[wide.shape.rank or 1 :]])
        return made
    return indices.with_flat_values(found)


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Any:
    """Return elements or rows by their coordinates; see ``hr.gather_nd``.

    Raises:
        AttributeValueError: if ``batch_dims`` is not 0.
        ShapeError: if the last axis of ``indices`` is ragged, or its size unknown.
    """
    if batch_dims != 0:
        raise AttributeValueError(
            f"gather_nd: a ragged tensor has no batch_dims here, got {shown(batch_dims)}; give "
            "whole coordinates"
        )
    with name_scope(name, "RaggedGatherNd"):
        values, places = as_ragged(params), as_ragged(indices, preferred_dtype=dtypes.int64)
        if isinstance(places, RaggedTensor):
            if places.flat_values.shape.rank == 1:
                raise ShapeError("gather_nd: the last axis of indices must not be ragged")
            return places.with_flat_values(gather_nd(values, places.flat_values))
        rank = places.shape.rank
        size = None if rank in (None, 0) else places.spec.shape[-1]
        if size is None or rank is None:
            raise ShapeError(
                f"gather_nd: the size of the last axis of indices must be known, got shape "
                f"{places.spec.shape}"
            )
        if not isinstance(values, RaggedTensor):
            return dense.gather_nd(values, places)
        if rank == 1 and size == 0:
            return values
        if rank == 1:
            found = gather_nd(values, expand_dims(places, 0))
            return row(found, 0) if isinstance(found, RaggedTensor) else found[0]
        if rank > 2:
            nested = RaggedTensor.from_tensor(places, ragged_rank=rank - 2)
            made = gather_nd(values, nested.flat_values)
            if isinstance(made, RaggedTensor):
                return nested.with_flat_values(made)
            sizes = concat([shape(places)[:-1], shape(made)[1:]], 0)
            return reshape(made, sizes)
        return _coordinates(values, places, size) if size else _copies(values, places)


def _copies(params: RaggedTensor, places: Tensor) -> RaggedTensor:
    """Return all of a ragged tensor for each row of coordinates that name no axis."""
    dtype = params.row_splits.dtype
    ends = concat([convert_to_tensor([0], dtype), expand_dims(params.nrows(), 0)], 0)
    copies = zeros(shape(places)[:1], dtype)
    copies.set_shape(places.spec.shape[:1])
    return gather_rows(RaggedTensor(params, ends), copies)


def _coordinates(params: RaggedTensor, places: Tensor, size: int) -> Any:
    level: Any = params
    columns = cast(places, params.row_splits.dtype)
    at = columns[:, 0]
    for axis in range(1, size):
        if not isinstance(level, RaggedTensor):
            rest = concat([expand_dims(at, 1), columns[:, axis:]], 1)
            return dense.gather_nd(level, rest)
        starts = dense.gather(level.row_splits[:-1], at)
        lengths = dense.gather(lengths_of(level.row_splits), at)
        column = columns[:, axis]
        inside = logical_and(greater_equal(column, 0), less(column, lengths))
        check = assert_true(reduce_all(inside), ["gather_nd: an index is not in its row:", column])
        at = starts + after([check], column)
        level = level.values
    return gather_rows(level, at) if isinstance(level, RaggedTensor) else dense.gather(level, at)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """Return the elements or rows where a mask holds, in rows as before.

    Args:
        data: [...], a tensor or a ragged tensor.
        mask: bool, of the shape of the first axes of ``data``.
        name: The name of the scope.

    Returns:
        A ragged tensor, the last axis of the mask being ragged; a tensor where the mask has one
        axis and ``data`` is a tensor.

    Raises:
        DTypeError: if the mask is not bool.
        ShapeError: if the mask is a scalar, or of unknown rank.
    """
    with name_scope(name, "RaggedMask"):
        values, chosen = as_ragged(data), as_ragged(mask)
        if not chosen.dtype.is_bool:
            raise DTypeError(f"boolean_mask: mask must be bool, got {chosen.dtype}")
        if not chosen.shape.rank:
            raise ShapeError(
                f"boolean_mask: the mask must have a known rank, at least 1; got {shown(chosen)}"
            )
        return _masked(values, chosen)


def _masked(data: Any, mask: Any) -> Any:
    rank = mask.shape.rank
    if rank == 1 and not isinstance(mask, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            return dense.boolean_mask(data, mask)
        check = assert_equal(
            data.nrows(),
            count_of(mask, data.row_splits.dtype),
            message="boolean_mask: the mask must have one element for each row",
        )
        where = dense.where_indices(after([check], mask))[:, 0]
        return gather_rows(data, where)
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data, row_splits_dtype=_splits_dtype(mask))
    if not isinstance(mask, RaggedTensor):
        mask = RaggedTensor.from_tensor(mask, row_splits_dtype=data.row_splits.dtype)
    check = assert_equal(
        cast(data.row_splits, dtypes.int64),
        cast(mask.row_splits, dtypes.int64),
        message="boolean_mask: data and mask must have rows of the same lengths",
    )
    splits = after([check], data.row_splits)
    if isinstance(mask.values, RaggedTensor) or (mask.values.shape.rank or 1) > 1:
        return RaggedTensor(_masked(data.values, mask.values), splits)
    ids = ids_of(splits)
    kept = cast(mask.values, splits.dtype)
    lengths = unsorted_segment_sum(kept, ids, count_of(splits, splits.dtype) - 1)
    found = splits_of(lengths)
    found.set_shape(data.row_splits.spec.shape)
    return RaggedTensor(_masked(data.values, mask.values), found)


def _splits_dtype(value: Any) -> Any:
    return value.row_splits.dtype if isinstance(value, RaggedTensor) else dtypes.int64
