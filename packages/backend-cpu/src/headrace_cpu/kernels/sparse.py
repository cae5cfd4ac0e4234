"""Kernels on the indices of sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.gather import last_of_each
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    axis_index,
    check_indices,
    check_rank,
    check_shape,
    extents,
    narrowed,
    widened,
)

KERNELS = KernelTable()

_MOST = np.iinfo(np.int64).max
# What a few elements may grow to when made dense: a wrong shape must not take all memory.
_MOST_DENSE = 1 << 30
_MOST_STRETCH = 1 << 12


def _places(indices: Array, dense_shape: Array) -> tuple[Array, tuple[int, ...]]:
    """Return indices as int64, and the shape as numbers of the host."""
    check_rank(indices, 2, "indices")
    dims = extents(dense_shape)
    if indices.shape[1] != len(dims):
        raise ValueError(
            f"indices of shape {list(indices.shape)} have {indices.shape[1]} columns, the dense "
            f"shape {list(dims)} has {len(dims)} dimensions"
        )
    return indices.astype(np.int64), dims


def _check_within(places: Array, dims: tuple[int, ...]) -> None:
    for axis, size in enumerate(dims):
        check_indices(places[:, axis], size, f"axis {axis} of a sparse tensor of {list(dims)}")


def _check_dense(size: int, count: int, dims: Sequence[int]) -> None:
    """Refuse to make so many elements of ``count``."""
    if size > _MOST_DENSE and size > _MOST_STRETCH * count:
        raise ValueError(f"a tensor of shape {list(dims)} is too large for {count} elements")


def _flat(xp: Any, places: Array, dims: tuple[int, ...]) -> Array:
    """Return the row-major number of each place, which must lie within the dimensions."""
    flat = xp.zeros((places.shape[0],), np.int64)
    for axis, size in enumerate(dims):
        flat = flat * size + places[:, axis]
    return flat


def _order(xp: Any, places: Array) -> Array:
    """Return the order that sorts the rows of ``places``, keeping that of equal ones."""
    order = xp.arange(places.shape[0], dtype=np.int64)
    for axis in reversed(range(places.shape[1])):
        order = order[places[order, axis].argsort(kind="stable")]
    return order


def _changes(xp: Any, places: Array) -> Array:
    """Return which of sorted rows differ from the row before."""
    first = xp.ones((min(1, places.shape[0]),), bool)
    return xp.concatenate((first, (places[1:] != places[:-1]).any(axis=1)))


@KERNELS.plain("SparseOrder")
def sparse_order(xp: Any, indices: Array, dense_shape: Array) -> Array:
    """Return the order that sorts the indices."""
    places, _ = _places(indices, dense_shape)
    return _order(xp, places)


@KERNELS.plain("SparseGroup")
def sparse_group(
    xp: Any, indices: Array, dense_shape: Array, *, axes: Any, keepdims: bool
) -> tuple[Array, Array, Array]:
    """Group by the indices along the other axes."""
    places, dims = _places(indices, dense_shape)
    rank = len(dims)
    chosen = set(range(rank)) if axes is None else {axis_index(a, rank) for a in axes}
    kept = [axis for axis in range(rank) if axis not in chosen]
    found, group = _groups(xp, places[:, kept])
    if keepdims:
        whole = xp.zeros((found.shape[0], rank), np.int64)
        whole[:, kept] = found
        found = whole
    left = [1 if i in chosen else d for i, d in enumerate(dims) if keepdims or i not in chosen]
    return found, group, xp.asarray(left, np.int64)


def _groups(xp: Any, keys: Array) -> tuple[Array, Array]:
    """Return the different rows of a matrix, sorted, and which of them each row is."""
    order = _order(xp, keys)
    ordered = keys[order]
    starts = _changes(xp, ordered)
    group = xp.empty((keys.shape[0],), np.int64)
    group[order] = xp.cumsum(starts.astype(np.int64)) - 1
    return ordered[starts], group


@KERNELS.plain("SparseUnion")
def sparse_union(
    xp: Any, a_indices: Array, a_shape: Array, b_indices: Array, b_shape: Array
) -> tuple[Array, Array]:
    """Group all places by themselves."""
    first, dims = _places(a_indices, a_shape)
    second, other = _places(b_indices, b_shape)
    if dims != other:
        raise ValueError(f"the sparse tensors have shapes {list(dims)} and {list(other)}")
    return _groups(xp, xp.concatenate((first, second)))


@KERNELS.plain("SparseReshape")
def sparse_reshape(
    xp: Any, indices: Array, dense_shape: Array, new_shape: Array
) -> tuple[Array, Array]:
    """Number the elements, and find the indices of these numbers in the new shape."""
    places, dims = _places(indices, dense_shape)
    check_rank(new_shape, 1, "shape")
    size = math.prod(dims)
    wanted = [int(d) for d in new_shape.tolist()]
    if min(wanted, default=0) < -1 or wanted.count(-1) > 1:
        raise ValueError(f"shape must have dimensions >= 0, but for one -1, got {wanted}")
    if -1 in wanted:
        rest = math.prod(d for d in wanted if d != -1)
        if not rest:
            raise ValueError(f"{wanted} leaves any size for the -1, as another one is 0")
        wanted[wanted.index(-1)] = size // rest
    if math.prod(wanted) != size:
        raise ValueError(f"cannot reshape {list(dims)} of {size} elements to {wanted}")
    if size > _MOST:
        raise ValueError(f"a sparse tensor of shape {list(dims)} has too many elements to number")
    _check_within(places, dims)
    flat = _flat(xp, places, dims)
    columns = []
    for dim in reversed(wanted):
        # Where there is no room there are no elements.
        columns.append(flat % max(dim, 1))
        flat = flat // max(dim, 1)
    shape = (places.shape[0], 0)
    moved = xp.stack(columns[::-1], axis=1) if columns else xp.zeros(shape, np.int64)
    return moved, xp.asarray(wanted, np.int64)


@KERNELS.plain("SparseConcat")
def sparse_concat(
    xp: Any,
    indices: list[Array],
    dense_shapes: list[Array],
    *,
    axis: int,
    expand_nonconcat_dims: bool,
) -> tuple[Array, Array, Array]:
    """Move the indices by the sizes before them, and sort."""
    parts = [_places(i, d) for i, d in zip(indices, dense_shapes, strict=True)]
    ranks = {len(dims) for _, dims in parts}
    if len(ranks) > 1:
        raise ValueError(f"sparse tensors of {sorted(ranks)} dimensions cannot be joined")
    at = axis_index(axis, ranks.pop())
    shapes = [dims for _, dims in parts]
    joined = [max(column) for column in zip(*shapes, strict=True)]
    joined[at] = sum(dims[at] for dims in shapes)
    if joined[at] > _MOST:
        raise ValueError(f"the joined axis would have {joined[at]} elements, which are too many")
    if not expand_nonconcat_dims:
        for dims in shapes:
            if any(d != j for i, (d, j) in enumerate(zip(dims, joined, strict=True)) if i != at):
                listed = ", ".join(str(list(s)) for s in shapes)
                raise ValueError(
                    f"shapes {listed} differ in other axes than {at}; pass "
                    "expand_nonconcat_dims=True to take the largest"
                )
    moved = []
    before = 0
    for places, dims in parts:
        offset = np.zeros((len(dims),), np.int64)
        offset[at] = before
        moved.append(places + xp.asarray(offset))
        before += dims[at]
    whole = xp.concatenate(moved)
    order = _order(xp, whole)
    return whole[order], xp.asarray(joined, np.int64), order


@KERNELS.plain("SparseSlice")
def sparse_slice(
    xp: Any, indices: Array, dense_shape: Array, start: Array, size: Array
) -> tuple[Array, Array, Array]:
    """Pick what lies in the block."""
    places, dims = _places(indices, dense_shape)
    begin, length = extents(start), extents(size)
    if len(begin) != len(dims) or len(length) != len(dims):
        raise ValueError(
            f"start and size must have {len(dims)} entries, got {len(begin)} and {len(length)}"
        )
    rows = zip(dims, begin, length, strict=True)
    shape = [max(0, min(n, d - b)) for d, b, n in rows]
    inside = xp.ones((places.shape[0],), bool)
    for axis, (low, extent) in enumerate(zip(begin, shape, strict=True)):
        column = places[:, axis]
        inside = inside & (column >= low) & (column - low < extent)
    chosen = xp.flatnonzero(inside).astype(np.int64)
    moved = places[chosen] - xp.asarray(begin, np.int64)
    return moved, chosen, xp.asarray(shape, np.int64)


@KERNELS.plain("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    xp: Any, indices: Array, dense_shape: Array
) -> tuple[Array, Array, Array, Array]:
    """Add an element to each empty row."""
    places, dims = _places(indices, dense_shape)
    if not dims:
        raise ValueError("a sparse tensor without dimensions has no rows to fill")
    _check_dense(dims[0], places.shape[0], dims)
    rows = places[:, 0]
    check_indices(rows, dims[0], f"the rows of a sparse tensor of {list(dims)}")
    empty = xp.ones((dims[0],), bool)
    empty[rows] = False
    new_rows = xp.flatnonzero(empty)
    count = places.shape[0]
    new = xp.zeros((new_rows.size, len(dims)), np.int64)
    new[:, 0] = new_rows
    whole = xp.concatenate((places, new))
    order = whole[:, 0].argsort(kind="stable").astype(np.int64)
    went = xp.empty((whole.shape[0],), np.int64)
    went[order] = xp.arange(whole.shape[0], dtype=np.int64)
    return whole[order], xp.minimum(order, count), empty, went[:count]


@KERNELS.plain("SparseToDense")
def sparse_to_dense(
    xp: Any,
    sparse_indices: Array,
    output_shape: Array,
    sparse_values: Array,
    default_value: Array,
    *,
    validate_indices: bool,
) -> Array:
    """Write the elements into a tensor of the default value."""
    if sparse_indices.ndim > 2:
        raise ValueError(
            f"sparse_indices have 2 dimensions at most, got shape {list(sparse_indices.shape)}"
        )
    check_rank(default_value, 0, "default_value")
    columns = sparse_indices.shape[1] if sparse_indices.ndim == 2 else 1
    count = sparse_indices.shape[0] if sparse_indices.ndim else 1
    places, dims = _places(sparse_indices.reshape((count, columns)), output_shape)
    if sparse_values.ndim:
        check_shape(sparse_values, (count,), "sparse_values")
    _check_within(places, dims)
    if validate_indices:
        _check_ascending(xp, places)
    size = math.prod(dims)
    _check_dense(size, count, dims)
    dense = xp.full((size,), default_value[()], sparse_values.dtype)
    flat = _flat(xp, places, dims)
    # Of equal places the last one counts.
    chosen = last_of_each(xp, flat, size)
    if chosen is None:
        dense[flat] = sparse_values
    else:
        dense[flat[chosen]] = sparse_values[chosen] if sparse_values.ndim else sparse_values
    return dense.reshape(dims)


def _check_ascending(xp: Any, places: Array) -> None:
    """Refuse rows that are not in strictly ascending order."""
    if places.shape[0] < 2:
        return
    before, after = places[:-1], places[1:]
    same = xp.ones((before.shape[0],), bool)
    later = xp.zeros((before.shape[0],), bool)
    for axis in range(places.shape[1]):
        later = later | (same & (after[:, axis] > before[:, axis]))
        same = same & (after[:, axis] == before[:, axis])
    if not bool(later.all()):
        at = int(xp.flatnonzero(~later)[0]) + 1
        fault = "is repeated" if bool(same[at - 1]) else "is out of order"
        raise ValueError(
            f"index {at} {places[at].tolist()} {fault}; bring the elements into row-major order "
            "with hr.sparse.reorder, or pass validate_indices=False"
        )


@KERNELS.plain("SparseTensorDenseMatMul")
def sparse_tensor_dense_matmul(
    xp: Any,
    indices: Array,
    values: Array,
    dense_shape: Array,
    b: Array,
    *,
    adjoint_a: bool,
    adjoint_b: bool,
) -> Array:
    """Multiply by the compressed rows, or add up multiples of the rows of ``b``."""
    places, dims = _places(indices, dense_shape)
    if len(dims) != 2:
        raise ValueError(f"the sparse matrix must have 2 dimensions, got shape {list(dims)}")
    check_rank(b, 2, "b")
    check_shape(values, (places.shape[0],), "values")
    _check_within(places, dims)
    rows, columns = places[:, 0], places[:, 1]
    if adjoint_a:
        rows, columns, dims = columns, rows, dims[::-1]
        values = values.conj() if values.dtype.kind == "c" else values
    if adjoint_b:
        b = b.T.conj() if b.dtype.kind == "c" else b.T
    if b.shape[0] != dims[1]:
        raise ValueError(
            f"a sparse matrix of {dims[1]} columns and a matrix of {b.shape[0]} rows have no "
            "product"
        )
    shape = (dims[0], b.shape[1])
    _check_dense(math.prod(shape), values.size + b.size, shape)
    wide = values.dtype.kind in "fc" and values.dtype.itemsize >= 4
    if xp is np and wide and values.size and b.size:
        # Imported where it is needed: importing it takes long.
        from scipy.sparse import csr_matrix

        matrix = csr_matrix((values, (rows, columns)), shape=dims)
        return matrix @ np.ascontiguousarray(b)
    total = xp.zeros(shape, widened(values).dtype)
    add_rows(xp, total, rows, widened(b)[columns] * widened(values)[:, None])
    return narrowed(total, values.dtype)
