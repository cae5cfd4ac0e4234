"""Making sparse tensors, making dense ones of them, and arranging their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.graph_scopes import checked_name
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import reshape
from headrace.ops.array import shape as shape_op
from headrace.ops.constant import fill, ones, placeholder, zeros, zeros_like
from headrace.ops.constant import range as range_op
from headrace.ops.conversion import cast
from headrace.ops.elementwise import less_equal, maximum, minimum, not_equal
from headrace.ops.gather import gather, gather_nd, where_indices
from headrace.ops.identity import identity
from headrace.ops.joining import concat, stack
from headrace.ops.reduce import reduce_all, reduce_max
from headrace.ops.report import assert_true
from headrace.ops.sparse import (
    sparse_fill_empty_rows_indices,
    sparse_order,
    sparse_reshape_indices,
    sparse_to_dense_values,
)
from headrace.shapes import Shape, normalize_axis


def as_sparse(value: Any, name: str = "sp_input") -> SparseTensor:
    """Return a sparse tensor of one or of its value.

    Raises:
        DTypeError: if it is something else.
    """
    try:
        return SparseTensor.from_value(value)
    except DTypeError:
        raise DTypeError(f"{name} must be a SparseTensor, got {shown(value)}") from None


def static_rank(sparse: SparseTensor) -> int | None:
    """Return the number of dimensions where it is known."""
    return sparse.shape.rank


def pick(values: Tensor, positions: Tensor) -> Tensor:
    """Return elements of a vector; unlike that of ``gather``, the gradient is dense."""
    # The gradient of values is dense: indices of another rank name no rows.
    return reshape(gather_nd(values, reshape(positions, [-1, 1, 1])), [-1])


# -- making them


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """Make a sparse tensor that has to be fed in every step that needs it.

    Feed a ``SparseTensorValue``, or a tuple of indices, values and dense_shape.

    Args:
        dtype: The dtype of its elements.
        shape: The shape of the whole, as far as known: a list with None for unknown dimensions,
            a vector of int64, or None.
        name: Prefix of the names of its parts.
    """
    rank = None
    dense_shape: Any = None
    hint = Shape(None)
    if name is not None:
        name = checked_name(name)
    prefix = f"{name}/" if name is not None else ""
    if isinstance(shape, Tensor):
        dense_shape = cast(shape, dtypes.int64)
        rank = shape.spec.shape[0] if shape.shape.rank is not None else None
    elif shape is not None:
        dims = [None if d is None or d == -1 else d for d in Shape(_unsigned(shape)).dims or ()]
        hint = Shape(shape) if Shape(_unsigned(shape)).dims is None else Shape(dims)
        rank = hint.rank
        if hint.is_fully_defined():
            dense_shape = convert_to_tensor(list(hint.known), dtypes.int64, f"{prefix}shape")
    if dense_shape is None:
        dense_shape = placeholder(dtypes.int64, [rank], name=f"{prefix}shape")
    values = placeholder(dtype, [None], name=f"{prefix}values")
    indices = placeholder(dtypes.int64, [None, rank], name=f"{prefix}indices")
    return SparseTensor(indices, values, dense_shape).with_static_shape(hint)


def _unsigned(shape: Any) -> Any:
    """Return a shape in which -1 is None."""
    if isinstance(shape, Shape | TensorShape) or not isinstance(shape, Sequence | np.ndarray):
        return shape
    return [None if d is None or d == -1 else d for d in items(shape, "shape")]


def sparse_from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Make a sparse tensor of the elements of a dense one that are not zero.

    Args:
        tensor: [...], any dtype; of strings the empty ones are left out.
        name: The name of the operations.
    """
    with name_scope(name, "dense_to_sparse"):
        dense = convert_to_tensor(tensor)
        zero = fill([], "") if dense.dtype.kind == "string" else zeros([], dense.dtype)
        there = dense if dense.dtype.is_bool else not_equal(dense, zero)
        indices = where_indices(there)
        whole = shape_op(dense, out_type=dtypes.int64)
        return SparseTensor(indices, gather_nd(dense, indices), whole)


def sparse_eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """Make a sparse matrix with ones on its main diagonal.

    Args:
        num_rows: The number of rows.
        num_columns: The number of columns; as many as rows if None.
        dtype: The dtype.
        name: The name of the operations.
    """
    with name_scope(name, "eye"):
        rows = cast(integer_tensor(num_rows), dtypes.int64)
        columns = rows if num_columns is None else cast(integer_tensor(num_columns), dtypes.int64)
        diagonal = range_op(minimum(rows, columns))
        indices = stack([diagonal, diagonal], 1)
        whole = stack([rows, columns])
        return SparseTensor(indices, ones(shape_op(diagonal), as_dtype(dtype)), whole)


# -- dense tensors of them


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Make a dense tensor of elements at indices and one value elsewhere.

    Args:
        sparse_indices: [n, rank], or [n] for rank 1, or [] for one element; int32 or int64.
        output_shape: [rank], int32 or int64.
        sparse_values: [n], or [] for all, any dtype.
        default_value: [], what all other elements are.
        validate_indices: Whether indices that are out of order or repeated are refused.
        name: The name of the operation.

    Returns:
        ``output_shape``, the dtype of ``sparse_values``.

    Raises:
        ShapeError: if the shapes do not fit each other.
        ExecutionError: if an index is out of range, or refused, when it runs.
    """
    values = convert_to_tensor(sparse_values)
    default = _default(default_value, values.dtype)
    return sparse_to_dense_values(
        integer_tensor(sparse_indices),
        integer_tensor(output_shape),
        values,
        default,
        validate_indices,
        name=name or "SparseToDense",
    )


def _default(value: Any, dtype: DType) -> Tensor:
    """Return the default element, by whatever zero it was given."""
    if value is None or (isinstance(value, int) and value == 0 and not isinstance(value, bool)):
        return fill([], "") if dtype.kind == "string" else zeros([], dtype)
    return convert_to_tensor(value, dtype)


def integer_tensor(value: Any) -> Tensor:
    """Return indices or a shape; data become int64, an empty list too."""
    if isinstance(value, Shape | TensorShape):
        value = list(value.known)
    if isinstance(value, list | tuple) and not value:
        return convert_to_tensor(np.zeros((0,), np.int64))
    found = convert_to_tensor(value, preferred_dtype=dtypes.int64)
    known = found.spec.value
    if known is not None and found.dtype == dtypes.int32:
        return convert_to_tensor(known.astype(np.int64))
    return found


def sparse_tensor_to_dense(
    sp_input: Any,
    default_value: Any = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Make a dense tensor of a sparse one.

    Args:
        sp_input: A sparse tensor.
        default_value: [], what the elements that are not there become; zero if None.
        validate_indices: Whether indices that are out of order or repeated are refused.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``sp_input``.

    Raises:
        ExecutionError: if an index is out of range, or refused, when it runs.
    """
    sparse = as_sparse(sp_input)
    return sparse_to_dense(
        sparse.indices,
        sparse.dense_shape,
        sparse.values,
        default_value,
        validate_indices,
        name=name or "SparseToDense",
    )


# -- arranging elements


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Bring the elements into row-major order; equal indices stay in their order.

    Args:
        sp_input: A sparse tensor.
        name: The name of the operations.
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseReorder"):
        order = sparse_order(sparse.indices, sparse.dense_shape)
        return _picked(sparse, order, gather(sparse.indices, order))


def _picked(sparse: SparseTensor, chosen: Tensor, indices: Tensor) -> SparseTensor:
    """Return a sparse tensor of some elements of another, of its shape."""
    moved = SparseTensor(indices, pick(sparse.values, chosen), sparse.dense_shape)
    return moved.with_static_shape(sparse.shape.plain)


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Keep some of the elements.

    Args:
        sp_input: A sparse tensor of n elements.
        to_retain: [n], which elements to keep: bool, or numbers for what is not 0.

    Raises:
        DTypeError: if ``to_retain`` is neither.
        ShapeError: if ``to_retain`` is no vector of n.
    """
    sparse = as_sparse(sp_input)
    with name_scope(None, "SparseRetain"):
        kept = convert_to_tensor(to_retain)
        if not kept.dtype.is_bool and not kept.dtype.is_numeric:
            raise DTypeError(f"to_retain must be bool or numeric, got {kept.dtype}")
        if not sparse.values.shape.is_compatible_with(kept.shape) or kept.shape.rank not in (
            None,
            1,
        ):
            raise ShapeError(
                f"to_retain must have one entry for each of the elements "
                f"{sparse.values.spec.shape}, got shape {kept.spec.shape}"
            )
        where = reshape(where_indices(kept), [-1])
        return _picked(sparse, where, gather(sparse.indices, where))


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Permute the axes.

    Args:
        sp_input: A sparse tensor.
        perm: For each axis of the result the axis that it was; reversed if None.
        name: The name of the operations.
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseTranspose"):
        order: Any
        if perm is not None:
            order = integer_tensor(perm)
            given = order.spec.value
            rank = static_rank(sparse)
            if given is not None and sorted(given.tolist()) != list(range(given.size)):
                raise AttributeValueError(
                    f"perm must be a permutation, got {shown(given.tolist())}"
                )
            if given is not None and rank not in (None, given.size):
                raise ShapeError(f"perm has {given.size} entries for {rank} dimensions")
        elif static_rank(sparse) is not None:
            order = integer_tensor(list(range(static_rank(sparse) or 0))[::-1])
        else:
            last = shape_op(sparse.dense_shape)[0] - 1
            order = range_op(last, -1, -1)
        columns = gather(sparse.indices, order, axis=1)
        whole = gather(sparse.dense_shape, order)
        moved = SparseTensor(columns, sparse.values, whole)
        known = sparse.shape.plain.dims
        if known is not None and order.spec.value is not None:
            moved = moved.with_static_shape(Shape([known[i] for i in order.spec.value.tolist()]))
        return sparse_reorder(moved)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Give the elements the indices that they have in another shape.

    Args:
        sp_input: A sparse tensor.
        shape: [new rank], of as many elements; one dimension may be -1.
        name: The name of the operations.

    Raises:
        ShapeError: if the shapes have different numbers of elements.
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseReshape"):
        indices, whole = sparse_reshape_indices(
            sparse.indices, sparse.dense_shape, integer_tensor(shape)
        )
        return SparseTensor(indices, sparse.values, whole)


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Insert an axis of size 1.

    Args:
        sp_input: A sparse tensor.
        axis: Where the new axis stands in the result; the last one if None.
        name: The name of the operations.
    """
    sparse = as_sparse(sp_input)
    at = -1 if axis is None else known_number(axis, "axis")
    with name_scope(name, "expand_dims"):
        rank = static_rank(sparse)
        if rank is not None:
            at = normalize_axis(at, rank + 1)
        split: Any = at if at >= 0 else shape_op(sparse.dense_shape)[0] + (at + 1)
        column = zeros_like(sparse.indices[:, :1]) if rank != 0 else _zero_column(sparse)
        indices = concat([sparse.indices[:, :split], column, sparse.indices[:, split:]], 1)
        one = convert_to_tensor(np.ones((1,), np.int64))
        whole = concat([sparse.dense_shape[:split], one, sparse.dense_shape[split:]], 0)
        return SparseTensor(indices, sparse.values, whole)


def _zero_column(sparse: SparseTensor) -> Tensor:
    return zeros(stack([shape_op(sparse.values)[0], 1]), dtypes.int64)


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """Give a sparse tensor another shape, with the same indices.

    Args:
        sp_input: A sparse tensor.
        new_shape: [rank], not less than the shape; the least that holds all elements if None.

    Raises:
        ShapeError: if it is less, as far as that is known.
    """
    sparse = as_sparse(sp_input)
    with name_scope(None, "SparseResetShape"):
        if new_shape is None:
            # Without elements there is nothing to hold.
            whole = maximum(reduce_max(sparse.indices, 0), -1) + 1
            return SparseTensor(sparse.indices, sparse.values, whole)
        whole = cast(integer_tensor(new_shape), dtypes.int64)
        old, new = sparse.shape.plain, Shape(None)
        if whole.spec.value is not None:
            new = Shape(whole.spec.value.tolist())
        if whole.shape.rank not in (None, 1) or (
            whole.shape.rank is not None and old.rank not in (None, whole.spec.shape[0])
        ):
            raise ShapeError(f"new_shape must have the rank of {old}, got shape {whole.shape}")
        if old.dims is not None and new.dims is not None:
            pairs = zip(old.dims, new.dims, strict=True)
            if any(a is not None and b is not None and b < a for a, b in pairs):
                raise ShapeError(f"new_shape {new} must not be less than {old} along any axis")
        if old.is_fully_defined() and new.is_fully_defined():
            return SparseTensor(sparse.indices, sparse.values, whole)
        message = "sparse_reset_shape: new_shape must not be less than the shape along any axis"
        held = assert_true(
            reduce_all(less_equal(sparse.dense_shape, whole)), [message, sparse.dense_shape, whole]
        )
        with control_dependencies([held]):
            return SparseTensor(sparse.indices, sparse.values, identity(whole))


def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Give each row without elements one, in its first column.

    Args:
        sp_input: A sparse tensor of one dimension at least, whose first axis has the rows.
        default_value: [], the new elements.
        name: The name of the operations.

    Returns:
        The sparse tensor, its elements by rows; and [rows], bool, which rows were empty.
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows"):
        default = convert_to_tensor(default_value, sparse.dtype)
        if default.shape.rank not in (None, 0):
            raise ShapeError(f"default_value must be a scalar, got shape {default.spec.shape}")
        indices, source, empty, _ = sparse_fill_empty_rows_indices(
            sparse.indices, sparse.dense_shape
        )
        values = pick(concat([sparse.values, reshape(default, [1])], 0), source)
        filled = SparseTensor(indices, values, sparse.dense_shape)
        return filled.with_static_shape(sparse.shape.plain), empty


def known_number(value: Any, label: str) -> int:
    """Return an integer that must be known now.

    Raises:
        AttributeValueError: if it is none.
    """
    known = value.spec.value if isinstance(value, Tensor) else value
    if known is None or isinstance(known, bool | Mapping):
        raise AttributeValueError(f"{label} must be an integer known when the graph is built")
    try:
        return int(np.asarray(known)[()].__index__())
    except (AttributeError, TypeError, ValueError, MemoryError):
        raise AttributeValueError(f"{label} must be an integer, got {shown(value)}") from None
