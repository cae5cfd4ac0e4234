"""Joining sparse tensors, and taking parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.graph.tensor import Tensor
from headrace.ops.array import reshape
from headrace.ops.array import shape as shape_op
from headrace.ops.constant import fill
from headrace.ops.conversion import cast
from headrace.ops.elementwise import minimum
from headrace.ops.gather import gather
from headrace.ops.joining import concat
from headrace.ops.sparse import sparse_concat_indices, sparse_slice_indices
from headrace.ops.sparse_tensor import (
    as_sparse,
    integer_tensor,
    known_number,
    pick,
    sparse_reorder,
    sparse_tensor_to_dense,
    static_rank,
)
from headrace.ops.unique import setdiff1d
from headrace.shapes import normalize_axis

# Each part is some operations of the graph.
_MOST_PARTS = 1 << 12


def sparse_concat(
    axis: Any,
    sp_inputs: Any,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Join sparse tensors along an axis.

    Args:
        axis: The axis; negative from the end.
        sp_inputs: Sparse tensors of one dtype.
        name: The name of the operations.
        expand_nonconcat_dim: The old name of ``expand_nonconcat_dims``.
        concat_dim: The old name of ``axis``.
        expand_nonconcat_dims: Whether other dimensions may differ; the largest counts.

    Returns:
        The sparse tensor, its elements in row-major order.

    Raises:
        ShapeError: if the shapes differ in another axis.
    """
    if concat_dim is not None:
        if axis is not None:
            raise AttributeValueError("sparse_concat takes axis or concat_dim, not both")
        axis = concat_dim
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    at = known_number(axis, "axis")
    if not isinstance(sp_inputs, list | tuple):
        raise DTypeError(f"sp_inputs must be a list of SparseTensors, got {shown(sp_inputs)}")
    parts = [as_sparse(part, "sp_inputs") for part in sp_inputs]
    if not parts:
        raise AttributeValueError("sp_inputs needs one sparse tensor at least")
    if len(parts) == 1:
        return parts[0]
    with name_scope(name, "SparseConcat"):
        indices, whole, order = sparse_concat_indices(
            [p.indices for p in parts], [p.dense_shape for p in parts], at, bool(expand)
        )
        values = pick(concat([p.values for p in parts], 0), order)
        return SparseTensor(indices, values, whole)


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Cut a block out of a sparse tensor.

    Args:
        sp_input: A sparse tensor.
        start: [rank], where the block begins.
        size: [rank], its size; it is cut where the whole ends.
        name: The name of the operations.
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseSlice"):
        indices, chosen, whole = sparse_slice_indices(
            sparse.indices, sparse.dense_shape, integer_tensor(start), integer_tensor(size)
        )
        return SparseTensor(indices, pick(sparse.values, chosen), whole)


def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """Split a sparse tensor along an axis; the first parts are larger by one where it must be.

    Args:
        keyword_required: Not to be given: the other arguments are passed by name.
        sp_input: A sparse tensor.
        num_split: The number of parts.
        axis: The axis; negative from the end.
        name: The name of the operations.
        split_dim: The old name of ``axis``.
    """
    if keyword_required is not None:
        raise AttributeValueError("sparse_split takes its arguments by name")
    if sp_input is None or num_split is None:
        raise AttributeValueError("sparse_split needs sp_input, num_split and axis")
    if (axis is None) == (split_dim is None):
        raise AttributeValueError("sparse_split takes one of axis and split_dim")
    sparse = as_sparse(sp_input)
    at = known_number(axis if axis is not None else split_dim, "axis")
    parts = known_number(num_split, "num_split")
    rank = static_rank(sparse)
    if rank is None:
        raise ShapeError("sparse_split needs a sparse tensor of a known number of dimensions")
    at = normalize_axis(at, rank)
    known = sparse.shape.plain.dims
    whole = None if known is None else known[at]
    if parts < 1 or (whole is not None and parts > whole):
        raise ShapeError(f"num_split must be from 1 to the size of axis {at}, got {parts}")
    if parts > _MOST_PARTS:
        raise ShapeError(f"num_split must be at most {_MOST_PARTS}, got {parts}")
    with name_scope(name, "SparseSplit"):
        split = convert_to_tensor(np.eye(rank, dtype=np.int64)[at])
        length = sparse.dense_shape[at] if whole is None else convert_to_tensor(np.int64(whole))
        found = []
        for i in range(parts):
            # Part i begins after i parts, of which the first `length % parts` have one more.
            begin = i * (length // parts) + minimum(i, length % parts)
            end = (i + 1) * (length // parts) + minimum(i + 1, length % parts)
            size = sparse.dense_shape * (1 - split) + split * (end - begin)
            found.append(sparse_slice(sparse, split * begin, size))
        return found


def sparse_merge(
    sp_ids: Any,
    sp_values: Any,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """Make a sparse tensor whose last index is an id, of ids and values at the same indices.

    Args:
        sp_ids: A sparse tensor of ids, int32 or int64; or a list of such, for as many axes.
        sp_values: A sparse tensor of the values.
        vocab_size: [], the number of ids; or a list of these.
        name: The name of the operations.
        already_sorted: Whether the ids ascend in each row, so that the result needs no sorting.

    Raises:
        DTypeError: if only one of ids and sizes is a list.
    """
    # The value of a sparse tensor is a tuple, too.
    several = isinstance(sp_ids, list | tuple) and not isinstance(sp_ids, SparseTensorValue)
    if several and isinstance(vocab_size, np.ndarray) and vocab_size.ndim:
        vocab_size = vocab_size.tolist()
    if several != isinstance(vocab_size, list | tuple):
        raise DTypeError("sparse_merge takes lists for sp_ids and vocab_size, or no lists")
    ids = [as_sparse(i, "sp_ids") for i in (sp_ids if several else [sp_ids])]
    sizes = items(vocab_size, "vocab_size") if several else [vocab_size]
    if len(ids) != len(sizes):
        raise AttributeValueError(f"{len(ids)} sp_ids, but {len(sizes)} sizes")
    values = as_sparse(sp_values, "sp_values")
    with name_scope(name, "SparseMerge"):
        columns = [reshape(cast(i.values, dtypes.int64), [-1, 1]) for i in ids]
        indices = concat([ids[0].indices[:, :-1], *columns], 1)
        last = [_size_of(size) for size in sizes]
        whole = concat([ids[0].dense_shape[:-1], *last], 0)
        merged = SparseTensor(indices, values.values, whole)
        return merged if already_sorted else sparse_reorder(merged)


def _size_of(size: Any) -> Tensor:
    """Return a size as a vector of one, whose value is known where the size is."""
    if isinstance(size, int):
        return convert_to_tensor([size], dtypes.int64)
    return reshape(cast(size, dtypes.int64), [1])


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """Leave some rows out of ``IndexedSlices``.

    Args:
        a: The rows.
        mask_indices: [n], the indices of the rows to leave out.
        name: The name of the operations.
    """
    with name_scope(name, "sparse_mask"):
        indices, chosen = setdiff1d(a.indices, mask_indices)
        return IndexedSlices(gather(a.values, chosen), indices, a.dense_shape)


def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Make a dense tensor that says which ids are there.

    Args:
        sp_input: A sparse tensor of ids, int32 or int64, whose last axis does not matter.
        vocab_size: [], the number of ids.
        name: The name of the operations.

    Returns:
        The shape of ``sp_input`` with the last axis of size ``vocab_size``, bool.
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseToIndicator"):
        there = SparseTensor(
            sparse.indices, fill(shape_op(sparse.values), True), sparse.dense_shape
        )
        merged = sparse_merge(sparse, there, vocab_size)
        return sparse_tensor_to_dense(merged, default_value=False, validate_indices=False)
