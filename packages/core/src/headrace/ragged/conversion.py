"""Ragged tensors of tensors and sparse tensors, and the other way around."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.ops.array import broadcast_to, expand_dims, reshape, shape
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import range as range_
from headrace.ops.constant import sequence_mask, zeros
from headrace.ops.conversion import cast
from headrace.ops.elementwise import equal, less, maximum, minimum
from headrace.ops.elementwise import select as where_v2
from headrace.ops.gather import boolean_mask, gather
from headrace.ops.joining import concat, stack
from headrace.ops.reduce import reduce_all, reduce_max, reduce_prod
from headrace.ragged.partitions import (
    after,
    as_splits_dtype,
    as_vector,
    ids_of,
    lengths_of,
    splits_of,
    within,
)
from headrace.ragged.tensor import RaggedTensor
from headrace.shapes import Dim, Shape


def to_tensor(rt: RaggedTensor, default_value: Any, name: str | None) -> Tensor:
    """Return a tensor of the rows, filled up at their ends; see ``RaggedTensor.to_tensor``."""
    with name_scope(name, "RaggedToTensor"):
        flat = rt.flat_values
        if default_value is None:
            filler = zeros([], flat.dtype)
        else:
            filler = convert_to_tensor(default_value, flat.dtype)
        dense: Tensor = flat
        for splits in reversed(rt.nested_row_splits):
            dense = _padded(dense, splits, filler)
        if flat.shape.rank is not None:
            dense.set_shape([None] * (rt.ragged_rank + 1) + list(flat.spec.shape[1:]))
        rows = Shape(rt.shape)
        if rows.rank:
            dense.set_shape([rows[0], *[None] * (rows.rank - 1)])
        return dense


def _padded(values: Tensor, splits: Tensor, filler: Tensor) -> Tensor:
    """Return [rows, longest, ...] of values [values, ...]."""
    lengths = lengths_of(splits)
    ends = splits.spec.value
    if ends is None:
        longest: Any = reduce_max(concat([lengths, convert_to_tensor([0], lengths.dtype)], 0))
    else:
        longest = int(np.diff(ends).max(initial=0))
    columns = expand_dims(range_(longest, dtype=splits.dtype), 0)
    there = less(columns, expand_dims(lengths, 1))
    inner = shape(values)[1:]
    row = expand_dims(broadcast_to(filler, inner), 0)
    last = cast(shape(values, out_type=splits.dtype)[0], splits.dtype)
    # What is not there comes from behind the values, where the filler stands.
    places = where_v2(there, expand_dims(splits[:-1], 1) + columns, last)
    return gather(concat([values, row], 0), places)


def from_tensor(
    tensor: Any,
    lengths: Any,
    padding: Any,
    ragged_rank: int,
    name: str | None,
    row_splits_dtype: Any,
) -> RaggedTensor:
    """Return a ragged tensor of a tensor; see ``RaggedTensor.from_tensor``."""
    if lengths is not None and padding is not None:
        raise AttributeValueError("from_tensor: give lengths or padding, not both")
    if ragged_rank <= 0:
        raise AttributeValueError(
            f"from_tensor: ragged_rank must be an integer >= 1, got {shown(ragged_rank)}"
        )
    dtype = as_splits_dtype(row_splits_dtype)
    with name_scope(name, "RaggedFromTensor"):
        x = convert_to_tensor(tensor)
        rank = x.shape.rank
        if rank is not None and rank <= ragged_rank:
            raise ShapeError(
                f"from_tensor: ragged_rank {told(ragged_rank)} needs a tensor of rank "
                f"{ragged_rank + 1} at least; got shape {x.spec.shape}"
            )
        nested = lengths if isinstance(lengths, list | tuple) and _is_nested(lengths) else None
        if nested is not None:
            if len(nested) != ragged_rank and ragged_rank != 1:
                raise AttributeValueError(
                    f"from_tensor: {len(nested)} vectors of lengths for ragged_rank "
                    f"{told(ragged_rank)}"
                )
            return _by_nested_lengths(x, [as_vector(each, "lengths") for each in nested])
        known_rows = _first(x)
        if ragged_rank > 1:
            return _deep(x, lengths, padding, ragged_rank, dtype)
        sizes = shape(x, out_type=dtype)
        if lengths is None and padding is None:
            flat = _merged(x, 1)
            splits = range_(sizes[0] + 1, dtype=dtype) * sizes[1]
            if known_rows is not None:
                splits.set_shape([known_rows + 1])
            return RaggedTensor(flat, splits)
        if padding is not None:
            counts = _lengths_without(x, padding, dtype)
        else:
            given = cast(as_vector(lengths, "lengths"), dtype)
            check = assert_equal(
                shape(given, out_type=dtype)[0],
                sizes[0],
                message="lengths must have one number for each row",
            )
            counts = after([check], maximum(minimum(given, sizes[1]), 0))
        there = sequence_mask(counts, sizes[1])
        there.set_shape([None, None])
        kept = boolean_mask(x, there)
        splits = splits_of(counts)
        if known_rows is not None:
            splits.set_shape([known_rows + 1])
        return RaggedTensor(kept, splits)


def _first(x: Tensor) -> Dim:
    """Return the size of the first axis where it is known."""
    return None if x.shape.rank is None else x.spec.shape[0]


def _is_nested(lengths: Any) -> bool:
    return any(isinstance(each, list | tuple) or getattr(each, "shape", ()) for each in lengths)


def _merged(x: Tensor, axis: int) -> Tensor:
    """Return a tensor with the axes up to ``axis`` made one."""
    static = x.spec.shape
    if x.shape.rank is not None and static[: axis + 1].is_fully_defined():
        total = math.prod(static[: axis + 1].known)
        inner = static[axis + 1 :]
        # Not -1, of which a reshape of no elements would make 0.
        sizes: Any = inner.known if inner.is_fully_defined() else shape(x)[axis + 1 :]
        flat = reshape(
            x, concat([[total], sizes], 0) if isinstance(sizes, Tensor) else [total, *sizes]
        )
        flat.set_shape([total, *inner])
        return flat
    sizes = shape(x)
    flat = reshape(x, concat([reduce_prod(sizes[: axis + 1], keepdims=True), sizes[axis + 1 :]], 0))
    if x.shape.rank is not None:
        flat.set_shape([None, *static[axis + 1 :]])
    return flat


def _by_nested_lengths(x: Tensor, nested: list[Tensor]) -> RaggedTensor:
    """Return the rows of the lengths of each axis, the outermost first."""
    outer, *inner = nested
    made = from_tensor(x, outer, None, 1, None, outer.dtype)
    if not inner:
        return made
    return RaggedTensor(_by_nested_lengths(made.values, inner), made.row_splits)


def _deep(x: Tensor, lengths: Any, padding: Any, ragged_rank: int, dtype: Any) -> RaggedTensor:
    """Return a ragged tensor of several axes, of which the inner one is cut."""
    sizes = shape(x, out_type=dtype)
    made: Any = _merged(x, ragged_rank - 1)
    if lengths is not None:
        counts = reshape(cast(convert_to_tensor(lengths), dtype), [-1])
        made = from_tensor(made, counts, None, 1, None, dtype)
    else:
        made = from_tensor(made, None, padding, 1, None, dtype)
    for axis in reversed(range(1, ragged_rank)):
        rows = sizes[0]
        for before in range(1, axis):
            rows = rows * sizes[before]
        made = RaggedTensor(made, range_(rows + 1, dtype=dtype) * sizes[axis])
    known_rows = _first(x)
    if known_rows is not None:
        made.row_splits.set_shape([known_rows + 1])
    assert isinstance(made, RaggedTensor)
    return made


def _lengths_without(x: Tensor, padding: Any, dtype: Any) -> Tensor:
    """Return the length of each row up to its last element that is no padding."""
    filler = convert_to_tensor(padding, x.dtype)
    if not filler.spec.shape.is_compatible_with(x.spec.shape[2:]):
        raise ShapeError(
            f"from_tensor: padding must have the shape of one element, {x.spec.shape[2:]}; got "
            f"{filler.spec.shape}"
        )
    same = equal(x, filler)
    inner = list(range(2, same.shape.rank or 2))
    padded = reduce_all(same, axis=inner) if inner else same
    columns = range_(shape(padded, out_type=dtype)[1], dtype=dtype) + 1
    kept = where_v2(padded, convert_to_tensor(0, dtype), expand_dims(columns, 0))
    none = zeros(concat([shape(padded)[:1], [1]], 0), dtype)
    return reduce_max(concat([kept, none], 1), axis=1)


def from_sparse(st_input: Any, name: str | None, row_splits_dtype: Any) -> RaggedTensor:
    """Return a ragged tensor of a sparse matrix; see ``RaggedTensor.from_sparse``."""
    dtype = as_splits_dtype(row_splits_dtype)
    if hasattr(st_input, "dense_shape") and not isinstance(st_input, SparseTensor):
        st_input = SparseTensor.from_value(st_input)
    if not isinstance(st_input, SparseTensor):
        raise DTypeError(f"from_sparse: expected a SparseTensor, got {shown(st_input)}")
    if st_input.shape.rank != 2:
        raise ShapeError(
            f"from_sparse: expected a sparse tensor of rank 2, got shape {st_input.shape}"
        )
    with name_scope(name, "RaggedFromSparse"):
        ids = cast(st_input.indices[:, 0], dtype)
        columns = cast(st_input.indices[:, 1], dtype)
        rows = cast(st_input.dense_shape[0], dtype)
        made = RaggedTensor.from_value_rowids(st_input.values, ids, rows, validate=False)
        message = "from_sparse: the elements of a row must start at its left and have no gaps"
        expected = within(made.row_splits, ids)
        checked = after([assert_equal(columns, expected, message=message)], made.values)
        return RaggedTensor(checked, made.row_splits, ids)


def to_sparse(rt: RaggedTensor, name: str | None) -> SparseTensor:
    """Return a sparse tensor of the same elements; see ``RaggedTensor.to_sparse``."""
    with name_scope(name, "RaggedToSparse"):
        wide = rt.with_row_splits_dtype(dtypes.int64)
        columns: list[Tensor] = []
        for splits in wide.nested_row_splits:
            ids = ids_of(splits)
            columns = [gather(column, ids) for column in columns] if columns else [ids]
            columns.append(within(splits, ids))
        flat = wide.flat_values
        rank = flat.shape.rank
        if rank is None:
            raise ShapeError("to_sparse: the rank of the flat values must be known")
        values = flat
        if rank > 1:
            sizes = shape(flat, out_type=dtypes.int64)
            places = range_(_count(sizes, rank), dtype=dtypes.int64)
            inner: list[Tensor] = []
            for axis in reversed(range(1, rank)):
                inner.insert(0, places % sizes[axis])
                places = places // sizes[axis]
            columns = [*[gather(column, places) for column in columns], *inner]
            values = reshape(flat, [-1])
        return SparseTensor(stack(columns, 1), values, wide.bounding_shape())


def _count(sizes: Tensor, rank: int) -> Tensor:
    total = sizes[0]
    for axis in range(1, rank):
        total = total * sizes[axis]
    return total


OPERATORS["ragged_from_tensor"] = from_tensor
OPERATORS["ragged_from_sparse"] = from_sparse
OPERATORS["ragged_to_tensor"] = to_tensor
OPERATORS["ragged_to_sparse"] = to_sparse
