"""Crosses of features: each combination of what stands in a row of several tensors, as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import dtypes
from headrace.arguments import items, whole
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index
from headrace.shapes import Dim, Shape

# What TensorFlow begins with where a program gives no key.
_KEY = 0xDECAFCAFFE


def _one_of_rows(found: Dim, other: Dim, label: str) -> Dim:
    """Return how many rows all have, where another tensor has ``other``."""
    if found is not None and other is not None and found != other:
        raise ShapeError(
            f"inputs must have the same number of rows, got {found}, and {other} in {label}"
        )
    return other if found is None else found


def _check_feature(dtype: dtypes.DType, label: str) -> None:
    if dtype not in (dtypes.string, dtypes.int64):
        raise DTypeError(f"{label} must be string or int64, got {dtype}")


def _check_sparse(indices: TensorSpec, values: TensorSpec, shape: TensorSpec, label: str) -> Dim:
    """Return how many rows a sparse tensor has."""
    if not indices.shape.is_compatible_with([None, 2]):
        raise ShapeError(f"{label} must have 2 dimensions, got indices of shape {indices.shape}")
    count = None if indices.rank is None else indices.shape[0]
    if not values.shape.is_compatible_with([count]):
        raise ShapeError(f"{label} must have one value for each of {indices}, got {values}")
    if not shape.shape.is_compatible_with([2]):
        raise ShapeError(f"{label} must have 2 dimensions, got a shape of {shape.shape}")
    _check_feature(values.dtype, label)
    return None if shape.value is None else int(shape.value[0])


@op("SparseCross", public="", no_gradient="crosses are names, and hashes of them")
def sparse_cross_op(
    indices: Sequence[Index] = (),
    values: Sequence[Anything] = (),
    shapes: Sequence[Index] = (),
    dense_inputs: Sequence[Anything] = (),
    hashed_output: bool = False,
    num_buckets: int = 0,
    hash_key: int = _KEY,
) -> tuple[Spec, Spec, Spec]:
    """Every combination of one feature from each of some tensors, row by row.

    Args:
        indices: [n, 2] for each sparse tensor, in order of the rows; raises when it runs
            otherwise.
        values: [n], string or int64.
        shapes: [2], rows and columns; all tensors have the same number of rows.
        dense_inputs: [rows, columns], string or int64.
        hashed_output: Whether to make numbers of the features: FarmHash's Fingerprint64 of
            strings, joined one after the other.
        num_buckets: Numbers are remainders by so many; 0 for those by 2 ** 63 - 1.
        hash_key: What numbers start from, 64 bits.

    Returns:
        Indices [m, 2], int64, values [m], int64 where hashed and else the features joined by
        "_X_", and the shape [2], int64: rows, and the most crosses of a row.
    """
    if num_buckets < 0:
        raise AttributeValueError(f"num_buckets must be at least 0, got {num_buckets}")
    if not -(2**63) <= hash_key < 2**64:
        raise AttributeValueError(f"hash_key must be an integer of 64 bits, got {hash_key}")
    if not len(indices) == len(values) == len(shapes):
        raise AttributeValueError(
            "each sparse tensor has indices, values and a shape, got "
            f"{len(indices)}, {len(values)} and {len(shapes)} of them"
        )
    rows: Dim = None
    for i, parts in enumerate(zip(indices, values, shapes, strict=True)):
        label = f"sparse tensor {i}"
        rows = _one_of_rows(rows, _check_sparse(*parts, label), label)
    for i, dense in enumerate(dense_inputs):
        label = f"dense tensor {i}"
        if dense.rank not in (None, 2):
            raise ShapeError(f"{label} must have 2 dimensions, got shape {dense.shape}")
        _check_feature(dense.dtype, label)
        rows = _one_of_rows(rows, None if dense.rank is None else dense.shape[0], label)
    return (
        TensorSpec(dtypes.int64, Shape([None, 2])),
        TensorSpec(dtypes.int64 if hashed_output else dtypes.string, Shape([None])),
        TensorSpec(dtypes.int64, Shape([2])),
    )


def _features(values: Tensor) -> Tensor:
    return values if values.dtype == dtypes.string else cast(values, dtypes.int64)


def _split(inputs: Any) -> tuple[list[SparseTensor], list[Tensor]]:
    """Return the sparse and the dense ones of the inputs, each in their order."""
    sparse, dense = [], []
    if not isinstance(inputs, list | tuple):
        raise ArgumentTypeError(
            f"inputs must be a list of tensors and sparse tensors, got {shown(inputs)}"
        )
    for value in items(inputs, "inputs"):
        if isinstance(value, SparseTensor | SparseTensorValue):
            sparse.append(SparseTensor.from_value(value))
        else:
            dense.append(convert_to_tensor(value))
    return sparse, dense


def _cross(inputs: Any, name: str | None, **options: Any) -> SparseTensor:
    sparse, dense = _split(inputs)
    found = sparse_cross_op(
        [one.indices for one in sparse],
        [_features(one.values) for one in sparse],
        [one.dense_shape for one in sparse],
        [_features(one) for one in dense],
        **options,
        name=name or "SparseCross",
    )
    return SparseTensor(*found)


def sparse_cross(inputs: Any, name: str | None = None) -> SparseTensor:
    """Join every combination of one feature from each of some tensors, row by row.

    The features of sparse tensors come before those of dense ones, each in the order of
    ``inputs``; the last one changes fastest.

    Args:
        inputs: A list of tensors [rows, columns] and sparse tensors of that shape, whose elements
            are in order of their rows: strings, or numbers, which become int64.
        name: The name of the operation.

    Returns:
        A sparse tensor of strings, [rows, most crosses of a row]: the features of a cross with
        "_X_" between them.

    Raises:
        ArgumentTypeError: if ``inputs`` is no list.
        ShapeError: if one has not 2 dimensions, or another number of rows.
    """
    return _cross(inputs, name)


def sparse_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Hash every combination of one feature from each of some tensors, row by row.

    Strings are hashed with FarmHash's Fingerprint64, and numbers stand for themselves; a cross
    joins the key with one feature after the other, in the order of ``sparse.cross``.

    Args:
        inputs: As for ``sparse.cross``.
        num_buckets: Results are in [0, num_buckets); 0 for all of int64 from 0 on.
        hash_key: What hashes start from; None, or 0, for a fixed number.
        name: The name of the operation.

    Returns:
        A sparse tensor of int64, [rows, most crosses of a row].

    Raises:
        ArgumentTypeError: if ``inputs`` is no list.
        AttributeValueError: if ``num_buckets`` is negative.
        ShapeError: if one has not 2 dimensions, or another number of rows.
    """
    key = _KEY if hash_key is None else whole(hash_key, "hash_key") or _KEY
    buckets = whole(num_buckets, "num_buckets")
    return _cross(inputs, name, hashed_output=True, num_buckets=buckets, hash_key=key)
