"""Sparse tensors as strings, three to each: indices, values and shape as ``TensorProto``.

This is how TensorFlow writes them, so that one side reads what the other wrote.
"""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index, String, Written
from headrace.ops.sparse_tensor import as_sparse
from headrace.shapes import Shape

_TEXT = "strings have no gradient"


@op("SerializeSparse", public="", no_gradient=_TEXT)
def serialize_sparse_op(indices: Index, values: Written, dense_shape: Index) -> Spec:
    """A sparse tensor as strings.

    Args:
        indices: [n, rank].
        values: [n], any dtype.
        dense_shape: [rank].

    Returns:
        [3], string: indices, values and shape.
    """
    return TensorSpec(dtypes.string, Shape([3]))


@op("SerializeManySparse", public="", no_gradient=_TEXT)
def serialize_many_sparse_op(indices: Index, values: Written, dense_shape: Index) -> Spec:
    """Each row of a sparse tensor as strings.

    Args:
        indices: [n, rank], in order of the rows; raises when it runs otherwise.
        values: [n], any dtype.
        dense_shape: [rank], rank > 1.

    Returns:
        [rows, 3], string: indices, values and shape of each row.
    """
    if not dense_shape.shape.is_compatible_with([None]):
        raise ShapeError(f"dense_shape must be a vector, got shape {dense_shape.shape}")
    rank = dense_shape.shape[0]
    if rank is not None and rank < 2:
        raise ShapeError(
            f"a sparse tensor whose rows are serialized needs 2 dimensions or more, got {rank}"
        )
    rows = None if dense_shape.value is None else int(dense_shape.value[0])
    if rows is not None and rows < 0:
        raise ShapeError(f"a sparse tensor cannot have {rows} rows")
    return TensorSpec(dtypes.string, Shape([rows, 3]))


@op("DeserializeManySparse", public="", no_gradient=_TEXT)
def deserialize_many_sparse_op(serialized: String, dtype: DType) -> tuple[Spec, Spec, Spec]:
    """A sparse tensor of serialized ones as its rows.

    Args:
        serialized: [rows, 3], string; at least one row, all of one rank. Anything else raises
            when it runs.
        dtype: The dtype of the values.

    Returns:
        [n, rank + 1], int64, indices; [n], ``dtype``, values; and [rank + 1], int64, the shape:
        the number of rows and the largest shape among them.
    """
    if not serialized.shape.is_compatible_with([None, 3]):
        raise ShapeError(f"serialized_sparse must be [rows, 3], got shape {serialized.shape}")
    if dtype.kind == "resource":
        raise DTypeError("handles are not serialized")
    return (
        TensorSpec(dtypes.int64, Shape([None, None])),
        TensorSpec(dtype, Shape([None])),
        TensorSpec(dtypes.int64, Shape([None])),
    )


def serialize_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """Write a sparse tensor as strings.

    Args:
        sp_input: The sparse tensor.
        name: The name of the operation.
        out_type: ``string``, the only one that there is.

    Returns:
        [3], string: indices, values and shape, each as ``serialize_tensor`` has it.

    Raises:
        DTypeError: if ``sp_input`` is no sparse tensor.
        AttributeValueError: if ``out_type`` is another one.
    """
    sparse = as_sparse(sp_input)
    _check_string(out_type)
    return serialize_sparse_op(*sparse.flatten(), name=name or "SerializeSparse")


def serialize_many_sparse(
    sp_input: Any, name: str | None = None, out_type: Any = dtypes.string
) -> Tensor:
    """Write each row of a sparse tensor as strings.

    Args:
        sp_input: The sparse tensor, of 2 dimensions or more, in row-major order.
        name: The name of the operation.
        out_type: ``string``, the only one that there is.

    Returns:
        [rows, 3], string: indices, values and shape of each row.

    Raises:
        DTypeError: if ``sp_input`` is no sparse tensor.
        ShapeError: if it has fewer dimensions.
        AttributeValueError: if ``out_type`` is another one.
    """
    sparse = as_sparse(sp_input)
    _check_string(out_type)
    return serialize_many_sparse_op(*sparse.flatten(), name=name or "SerializeManySparse")


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Join serialized sparse tensors, each of which becomes a row.

    Args:
        serialized_sparse: [rows, 3], string, of ``serialize_sparse`` or
            ``serialize_many_sparse``.
        dtype: The dtype of the values.
        rank: How many dimensions the result has, where that is known.
        name: The name of the operation.

    Returns:
        A sparse tensor of one dimension more than each. Its shape is the number of rows and the
        largest shape among them.

    Raises:
        ShapeError: if ``serialized_sparse`` has another shape.
    """
    with name_scope(name, "DeserializeManySparse"):
        indices, values, dense_shape = deserialize_many_sparse_op(
            convert_to_tensor(serialized_sparse, dtypes.string), as_dtype(dtype)
        )
        indices.set_shape([None, rank])
        dense_shape.set_shape([rank])
        return SparseTensor(indices, values, dense_shape)


def _check_string(out_type: Any) -> None:
    if as_dtype(out_type) != dtypes.string:
        raise AttributeValueError(f"sparse tensors are serialized as string, got {shown(out_type)}")
