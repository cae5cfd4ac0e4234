"""Looking up rows for the ids of a sparse matrix, combined for each of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.ops.array import broadcast_to, concat, expand_dims, reshape, shape
from headrace.ops.constant import zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import div_no_nan, greater, greater_equal, select
from headrace.ops.embedding import embedding_lookup
from headrace.ops.gather import gather
from headrace.ops.reduce import reduce_prod
from headrace.ops.segment import (
    segment_sum,
    sparse_segment_mean,
    sparse_segment_sqrt_n,
    sparse_segment_sum,
)
from headrace.ops.sparse_tensor import sparse_fill_empty_rows, sparse_reshape, sparse_retain
from headrace.ops.transcendental import sqrt
from headrace.ops.unique import unique

_UNWEIGHTED: dict[str, Any] = {
    "sum": sparse_segment_sum,
    "mean": sparse_segment_mean,
    "sqrtn": sparse_segment_sqrt_n,
}


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """Look up rows of a table for the ids in each row of a sparse matrix, and combine them.

    Args:
        params: [rows, ...], floating, a variable or tensor, or a list of the shards of a table.
        sp_ids: A ``SparseTensor`` [n, most ids], int32 or int64, in row-major order.
        sp_weights: A ``SparseTensor`` with a weight for each id; None for weights of 1.
        partition_strategy: How shards divide the table: "mod" or "div".
        name: The name of the operations.
        combiner: "sum" for the weighted sum; "mean", the default, for that over the sum of
            weights; "sqrtn" for that over the root of the sum of squared weights.
        max_norm: Scale rows down to this length where they are longer, before they are combined.

    Returns:
        [n, ...], the dtype of ``params``; zeros for rows without ids, and none for such rows at
        the end.

    Raises:
        AttributeValueError: if ``combiner`` or the strategy is unknown.
        DTypeError: if ids or weights are not sparse.
        ShapeError: if there is not one weight per id.
    """
    chosen = "mean" if combiner is None else combiner
    if chosen not in _UNWEIGHTED:
        raise AttributeValueError(
            f"combiner must be 'mean', 'sqrtn' or 'sum', got {shown(combiner)}"
        )
    ids = _sparse(sp_ids, "sp_ids")
    weights = None if sp_weights is None else _sparse(sp_weights, "sp_weights")
    if weights is not None and not ids.values.shape.is_compatible_with(weights.values.shape):
        raise ShapeError(
            f"sp_weights must have one weight per id, got {weights.values.spec.shape} for "
            f"{ids.values.spec.shape}"
        )
    with name_scope(name, "embedding_lookup_sparse"):
        rows = ids.indices[:, 0]
        # Each row is looked up once, however often its id is there.
        distinct = unique(ids.values)
        found = embedding_lookup(params, distinct.y, partition_strategy, max_norm=max_norm)
        if weights is None:
            result: Tensor = _UNWEIGHTED[chosen](found, distinct.idx, rows)
            return result
        return _weighted(gather(found, distinct.idx), weights.values, rows, chosen)


def _weighted(found: Tensor, weights: Tensor, rows: Tensor, combiner: str) -> Tensor:
    """Return weighted sums by row, divided as the combiner says."""
    wide = dtypes.float32 if found.dtype.itemsize == 2 else found.dtype
    each = cast(weights, wide)
    if found.shape.rank is not None:
        factor = reshape(each, [-1] + [1] * (found.shape.rank - 1))
    else:
        ones = zeros_like(shape(found)[1:]) + 1
        factor = reshape(each, concat([np.array([-1], np.int32), ones], 0))
    total = segment_sum(cast(found, wide) * factor, rows)
    if combiner == "mean":
        total = div_no_nan(total, segment_sum(factor, rows))
    elif combiner == "sqrtn":
        total = div_no_nan(total, sqrt(segment_sum(factor * factor, rows)))
    result: Tensor = cast(total, found.dtype)
    return result


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """Look up and combine rows as ``embedding_lookup_sparse``, whatever the ids are.

    Ids below 0 are left out, and, unless rows are summed, those whose weights are not above 0.

    Args:
        embedding_weights: [rows, width], floating, a variable or tensor, or a list of the shards
            of a table.
        sparse_ids: A ``SparseTensor`` [..., most ids], int32 or int64, in row-major order.
        sparse_weights: A ``SparseTensor`` with a weight for each id; None for weights of 1.
        combiner: "mean", "sqrtn" or "sum".
        default_id: The id that stands for those of a row without any; None for zeros.
        name: The name of the operations.
        partition_strategy: How shards divide the table: "mod" or "div".
        max_norm: Scale rows down to this length where they are longer, before they are combined.

    Returns:
        [..., width], the dtype of ``embedding_weights``.

    Raises:
        AttributeValueError: if there is no table, or ``combiner`` or the strategy is unknown.
        DTypeError: if ids or weights are not sparse.
    """
    with name_scope(name, "embedding_lookup"):
        ids = _sparse(sparse_ids, "sparse_ids")
        outer = cast(ids.dense_shape, dtypes.int32)[:-1]
        rank = ids.dense_shape.spec.shape[0] if ids.dense_shape.shape.rank is not None else None
        matrix = concat(
            [reduce_prod(ids.dense_shape[:-1], 0, keepdims=True), ids.dense_shape[-1:]], 0
        )
        ids = sparse_reshape(ids, matrix)
        weights = None
        if sparse_weights is not None:
            given = _sparse(sparse_weights, "sparse_weights")
            weights = SparseTensor(ids.indices, given.values, ids.dense_shape)
        ids, weights = _retained(ids, weights, greater_equal(ids.values, 0))
        if combiner != "sum" and weights is not None:
            ids, weights = _retained(ids, weights, greater(weights.values, 0))
        ids, empty = sparse_fill_empty_rows(ids, cast(default_id or 0, ids.dtype))
        if weights is not None:
            weights, _ = sparse_fill_empty_rows(weights, cast(1, weights.dtype))
        found = embedding_lookup_sparse(
            embedding_weights, ids, weights, partition_strategy, None, combiner, max_norm
        )
        if default_id is None:
            mask = broadcast_to(expand_dims(empty, 1), shape(found))
            found = select(mask, zeros_like(found), found)
        known = ids.shape.plain if rank == 2 else None
        if known is not None and known.is_fully_defined() and found.shape.is_fully_defined():
            return found
        return reshape(found, concat([outer, shape(found)[1:]], 0))


def _retained(
    ids: SparseTensor, weights: SparseTensor | None, kept: Tensor
) -> tuple[SparseTensor, SparseTensor | None]:
    return sparse_retain(ids, kept), None if weights is None else sparse_retain(weights, kept)


def _sparse(value: Any, label: str) -> SparseTensor:
    if not isinstance(value, SparseTensor) and not hasattr(value, "dense_shape"):
        raise DTypeError(f"{label} must be a SparseTensor, got {shown(value)}")
    return SparseTensor.from_value(value)
