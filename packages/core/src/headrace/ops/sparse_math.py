"""Arithmetic with sparse tensors: products, sums, reductions, and elementwise functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.graph.spec import as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.array import reshape
from headrace.ops.array import shape as shape_op
from headrace.ops.complex import abs_
from headrace.ops.constant import ones_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import (
    divide,
    greater,
    greater_equal,
    less,
    logical_or,
    maximum,
    minimum,
)
from headrace.ops.gather import gather, gather_nd, scatter_nd
from headrace.ops.joining import concat
from headrace.ops.linalg import matmul
from headrace.ops.reduce import reduce_sum
from headrace.ops.segment import unsorted_segment_max, unsorted_segment_sum
from headrace.ops.sparse import sparse_dense_matmul_values, sparse_group, sparse_union
from headrace.ops.sparse_tensor import (
    as_sparse,
    sparse_retain,
    sparse_tensor_to_dense,
    static_rank,
)
from headrace.ops.transcendental import exp

# A dense result of so many elements at most is summed in place, rather than group by group.
_SMALL_DENSE = 1 << 22

# -- products


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Multiply a sparse matrix by a dense one.

    Args:
        sp_a: A sparse matrix [rows, k], numeric; elements of equal indices add up.
        b: [k, columns], the dtype of ``sp_a``.
        adjoint_a: Whether to take the conjugate transpose of ``sp_a``.
        adjoint_b: Whether to take the conjugate transpose of ``b``.
        name: The name of the operation.

    Returns:
        [rows, columns], the dtype of ``sp_a``.

    Raises:
        ShapeError: if the shapes do not fit each other.
        ExecutionError: if an index is out of range, when it runs.
    """
    sparse = as_sparse(sp_a, "sp_a")
    return sparse_dense_matmul_values(
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
        b,
        adjoint_a,
        adjoint_b,
        name=name or "SparseTensorDenseMatMul",
    )


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply dense matrices of which some may have many zeros.

    Args:
        a: [rows, k], float32 or bfloat16.
        b: [k, columns], float32 or bfloat16.
        transpose_a: Whether to transpose ``a``.
        transpose_b: Whether to transpose ``b``.
        a_is_sparse: Ignored; dense matrices are multiplied as such.
        b_is_sparse: Ignored.
        name: The name of the operations.

    Returns:
        [rows, columns], float32.

    Raises:
        DTypeError: if a dtype is another one.
    """
    del a_is_sparse, b_is_sparse
    with name_scope(name, "SparseMatMul"):
        left, right = convert_to_tensor(a), convert_to_tensor(b)
        for label, matrix in (("a", left), ("b", right)):
            if matrix.dtype not in (dtypes.float32, dtypes.bfloat16):
                raise DTypeError(f"{label} must be float32 or bfloat16, got {matrix.dtype}")
            if matrix.shape.rank not in (None, 2):
                raise ShapeError(f"{label} must have 2 dimensions, got shape {matrix.spec.shape}")
        return matmul(
            cast(left, dtypes.float32), cast(right, dtypes.float32), transpose_a, transpose_b
        )


def _at_elements(sparse: SparseTensor, dense: Any) -> tuple[Tensor, Tensor]:
    """Return the elements, and those of a dense tensor that broadcasts to the same shape."""
    other = convert_to_tensor(dense, preferred_dtype=sparse.dtype)
    rank, mine = other.shape.rank, static_rank(sparse)
    if rank is None:
        raise ShapeError(f"a sparse tensor times {other!r} needs a known number of dimensions")
    if mine is not None and rank > mine:
        raise ShapeError(
            f"the dense operand {other.spec.shape} must broadcast to the sparse one "
            f"{sparse.shape.plain}; it "
            "has more dimensions"
        )
    if (
        mine is not None
        and sparse.shape.plain.dims is not None
        and other.spec.shape.dims is not None
    ):
        pairs = zip(sparse.shape.plain.dims[mine - rank :], other.spec.shape.dims, strict=True)
        if any(s is not None and d not in (None, 1, s) for s, d in pairs):
            raise ShapeError(
                f"the dense operand {other.spec.shape} must broadcast to the sparse one "
                f"{sparse.shape.plain}"
            )
    if rank == 0:
        return sparse.values, other
    # Axes of size 1 have index 0 only.
    wide = cast(greater(shape_op(other), 1), dtypes.int64)
    last: Any = -rank if mine is None else mine - rank
    return sparse.values, gather_nd(other, sparse.indices[:, last:] * wide)


def _combined(sparse: SparseTensor, dense: Any, operator: Callable[..., Any]) -> SparseTensor:
    values, other = _at_elements(sparse, dense)
    made = SparseTensor(sparse.indices, operator(values, other), sparse.dense_shape)
    return made.with_static_shape(sparse.shape.plain)


def _sparse_mul(sparse: SparseTensor, dense: Any) -> SparseTensor:
    """Multiply the elements by those of a dense tensor."""
    with name_scope(None, "mul"):
        return _combined(sparse, dense, lambda x, y: x * y)


def _sparse_truediv(sparse: SparseTensor, dense: Any) -> SparseTensor:
    """Divide the elements by those of a dense tensor."""
    with name_scope(None, "truediv"):
        return _combined(sparse, dense, divide)


OPERATORS["sparse_mul"] = _sparse_mul
OPERATORS["sparse_truediv"] = _sparse_truediv


# -- sums and extremes of two


def _is_sparse(value: Any) -> bool:
    return isinstance(value, SparseTensor | SparseTensorValue)


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """Add two tensors of which one at least is sparse.

    Args:
        a: A sparse tensor, or a dense one.
        b: Likewise, of the same shape and dtype.
        threshold: Sums of two elements whose magnitude is less are left out, where both are sparse;
            what only one of the tensors has stays. None leaves out nothing.
        thresh: The old name of ``threshold``.

    Returns:
        A sparse tensor in row-major order if both are sparse, else a dense one.

    Raises:
        DTypeError: if neither is sparse.
        ShapeError: if the shapes differ.
    """
    if threshold is not None and thresh is not None:
        raise AttributeValueError("sparse_add takes threshold or thresh, not both")
    least = threshold if thresh is None else thresh
    if not _is_sparse(a) and not _is_sparse(b):
        raise DTypeError("sparse_add needs one SparseTensor at least; use hr.add for dense ones")
    if not _is_sparse(b):
        a, b = b, a
    with name_scope(None, "SparseAdd"):
        right = as_sparse(b, "b")
        if not _is_sparse(a):
            left = convert_to_tensor(a, right.dtype)
            if not left.shape.is_compatible_with(right.shape.plain):
                raise ShapeError(
                    f"sparse_add: shapes {left.spec.shape} and {right.shape.plain} differ"
                )
            return left + scatter_nd(right.indices, right.values, right.dense_shape)
        left_sparse = as_sparse(a, "a")
        indices, group = _union(left_sparse, right)
        values = unsorted_segment_sum(
            concat([left_sparse.values, right.values], 0), group, shape_op(indices)[0]
        )
        added = SparseTensor(indices, values, right.dense_shape)
        added = added.with_static_shape(left_sparse.shape.plain)
        if least is None or (isinstance(least, int | float) and least == 0):
            return added
        size = abs_(values)
        large = greater_equal(size, convert_to_tensor(least, size.dtype))
        parts = unsorted_segment_sum(ones_like(group), group, shape_op(indices)[0])
        return sparse_retain(added, logical_or(large, less(parts, 2)))


def _union(a: SparseTensor, b: SparseTensor) -> tuple[Tensor, Tensor]:
    """Return all places of two tensors, and which of them each element has."""
    if a.dtype != b.dtype:
        raise DTypeError(f"the sparse tensors are {a.dtype} and {b.dtype}; convert the values")
    if not a.shape.is_compatible_with(b.shape):
        raise ShapeError(
            f"the sparse tensors have shapes {a.shape.plain} and {b.shape.plain}; expected one"
        )
    return sparse_union(a.indices, a.dense_shape, b.indices, b.dense_shape)


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Take the larger elements of two sparse tensors; those that are not there are zero.

    Args:
        sp_a: A sparse tensor, real.
        sp_b: A sparse tensor of the same shape and dtype.
        name: The name of the operations.

    Returns:
        A sparse tensor with the places of both, in row-major order.
    """
    return _extreme(sp_a, sp_b, maximum, name or "SparseSparseMaximum")


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Take the smaller elements of two sparse tensors; those that are not there are zero.

    Args:
        sp_a: A sparse tensor, real.
        sp_b: A sparse tensor of the same shape and dtype.
        name: The name of the operations.

    Returns:
        A sparse tensor with the places of both, in row-major order.
    """
    return _extreme(sp_a, sp_b, minimum, name or "SparseSparseMinimum")


def _extreme(sp_a: Any, sp_b: Any, choose: Callable[..., Tensor], name: str) -> SparseTensor:
    a, b = as_sparse(sp_a, "sp_a"), as_sparse(sp_b, "sp_b")
    with name_scope(None, name):
        indices, group = _union(a, b)
        count, first = shape_op(indices)[0], shape_op(a.values)[0]
        left = unsorted_segment_sum(a.values, group[:first], count)
        right = unsorted_segment_sum(b.values, group[first:], count)
        made = SparseTensor(indices, choose(left, right), b.dense_shape)
        return made.with_static_shape(a.shape.plain)


# -- reductions


def sparse_reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Add up the elements along axes, to a dense tensor.

    Args:
        sp_input: A sparse tensor, numeric.
        axis: The axes, negative from the end; all if None.
        keepdims: Whether the result keeps them, with size 1.
        reduction_axes: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The axes that are left, the dtype of ``sp_input``.
    """
    given = axis, keepdims, reduction_axes, keep_dims
    sparse, axes, keep = _reduction(sp_input, *given)
    left = _small_rest(sparse, axes)
    if left is None:
        return sparse_tensor_to_dense(_reduced(sp_input, *given, unsorted_segment_sum))
    with name_scope(None, "SparseReduce"):
        return _summed(sparse, left, keep)


def sparse_reduce_sum_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """Add up the elements along axes, to a sparse tensor.

    Args:
        sp_input: A sparse tensor, numeric.
        axis: The axes, negative from the end; all if None.
        keepdims: Whether the result keeps them, with size 1.
        reduction_axes: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.
    """
    return _reduced(sp_input, axis, keepdims, reduction_axes, keep_dims, unsorted_segment_sum)


def sparse_reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Take the largest of the elements that are there along axes, to a dense tensor.

    Args:
        sp_input: A sparse tensor, real.
        axis: The axes, negative from the end; all if None.
        keepdims: Whether the result keeps them, with size 1.
        reduction_axes: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The axes that are left, the dtype of ``sp_input``; 0 where there are no elements.
    """
    reduced = _reduced(sp_input, axis, keepdims, reduction_axes, keep_dims, unsorted_segment_max)
    return sparse_tensor_to_dense(reduced)


def sparse_reduce_max_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """Take the largest of the elements that are there along axes, to a sparse tensor.

    Args:
        sp_input: A sparse tensor, real.
        axis: The axes, negative from the end; all if None.
        keepdims: Whether the result keeps them, with size 1.
        reduction_axes: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.
    """
    return _reduced(sp_input, axis, keepdims, reduction_axes, keep_dims, unsorted_segment_max)


def _reduced(
    sp_input: Any,
    axis: Any,
    keepdims: bool | None,
    reduction_axes: Any,
    keep_dims: bool | None,
    fold: Callable[..., Tensor],
) -> SparseTensor:
    sparse, axes, keep = _reduction(sp_input, axis, keepdims, reduction_axes, keep_dims)
    with name_scope(None, "SparseReduce"):
        indices, group, whole = sparse_group(sparse.indices, sparse.dense_shape, axes, keep)
        values = fold(sparse.values, group, shape_op(indices)[0])
        return SparseTensor(indices, values, whole)


def _small_rest(sparse: SparseTensor, axes: tuple[int, ...] | None) -> dict[int, int] | None:
    """Return the sizes of the axes that a reduction leaves, by axis, where the result is small."""
    dims = as_shape(sparse.dense_shape.spec).dims
    if not dims or None in dims or not sparse.dtype.is_numeric:
        return None
    rank, columns = len(dims), sparse.indices.spec.shape.dims
    if columns is None or len(columns) != 2 or columns[1] != rank:
        return None
    if axes is not None and not all(-rank <= a < rank for a in axes):
        return None
    folded = set(range(rank)) if axes is None else {a % rank for a in axes}
    left = {a: int(d) for a, d in enumerate(dims) if d is not None and a not in folded}
    return left if 0 < prod(left.values()) <= _SMALL_DENSE else None


def _summed(sparse: SparseTensor, left: dict[int, int], keep: bool) -> Tensor:
    """Add elements up where they come to stand, in a dense result."""
    if left:
        places = [sparse.indices[:, a : a + 1] for a in left]
        together = places[0] if len(places) == 1 else concat(places, 1)
        found = scatter_nd(together, sparse.values, list(left.values()))
    else:
        found = reduce_sum(sparse.values)
    if not keep:
        return found
    rank = sparse.shape.rank or 0
    return reshape(found, [left.get(a, 1) for a in range(rank)])


def _reduction(
    sp_input: Any,
    axis: Any,
    keepdims: bool | None,
    reduction_axes: Any,
    keep_dims: bool | None,
) -> tuple[SparseTensor, tuple[int, ...] | None, bool]:
    """Return what is reduced, along which axes, and whether the result keeps them."""
    if axis is not None and reduction_axes is not None:
        raise AttributeValueError("pass axis or reduction_axes, not both")
    if keepdims is not None and keep_dims is not None:
        raise AttributeValueError("pass keepdims or keep_dims, not both")
    sparse = as_sparse(sp_input)
    axes = _axes(reduction_axes if axis is None else axis)
    return sparse, axes, bool(keep_dims or keepdims)


def _axes(axis: Any) -> tuple[int, ...] | None:
    known = axis.spec.value if isinstance(axis, Tensor) else axis
    if known is None:
        if axis is None:
            return None
        raise AttributeValueError(f"axis must be known when the graph is built, got {shown(axis)}")
    try:
        found = np.atleast_1d(np.asarray(list(known) if isinstance(known, Sequence) else known))
    except (ValueError, OverflowError, MemoryError):
        raise AttributeValueError(
            f"axis must be an integer or a list of them, got {shown(axis)}"
        ) from None
    if found.ndim > 1 or (found.size and found.dtype.kind not in "iu"):
        raise AttributeValueError(f"axis must be an integer or a list of them, got {shown(axis)}")
    return tuple(int(a) for a in found)


# -- elementwise


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Take the softmax along the last axis of the elements that are there.

    Args:
        sp_input: A sparse tensor of two dimensions at least, floating.
        name: The name of the operations.
    """
    sparse = as_sparse(sp_input)
    rank = static_rank(sparse)
    if rank is not None and rank < 2:
        raise ShapeError(f"sparse_softmax needs two dimensions at least, got {sparse.shape.plain}")
    if not sparse.dtype.is_floating:
        raise DTypeError(f"sparse_softmax takes floating tensors, got {sparse.dtype}")
    with name_scope(name, "SparseSoftmax"):
        rows, group, _ = sparse_group(sparse.indices, sparse.dense_shape, (-1,))
        count = shape_op(rows)[0]
        most = unsorted_segment_max(sparse.values, group, count)
        grown = exp(sparse.values - gather(most, group))
        total = unsorted_segment_sum(grown, group, count)
        made = SparseTensor(sparse.indices, grown / gather(total, group), sparse.dense_shape)
        return made.with_static_shape(sparse.shape.plain)
