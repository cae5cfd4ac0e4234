"""Ops that parse examples."""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace import DType
from headrace.errors import ShapeError
from headrace.extend import Anything, Shape, Spec, String, TensorSpec, op, require

_PARSED = "what is in strings does not depend on tensors"


def _batch(serialized: TensorSpec, *, single: bool) -> list[int | None]:
    """Return the dimensions that a batch adds in front: none for a single example."""
    rank = 0 if single else 1
    what = "a scalar" if single else "a vector"
    require(
        serialized.rank in (None, rank),
        f"serialized must be {what}, got shape {serialized.shape}",
        ShapeError,
    )
    if single:
        return []
    return [None] if serialized.rank is None else list(serialized.shape)


def _sparse(types: Sequence[DType], rank: int) -> list[TensorSpec]:
    """Return the specs of indices, values and shape of sparse tensors."""
    return [
        *(TensorSpec(hr.int64, Shape([None, rank])) for _ in types),
        *(TensorSpec(dtype, Shape([None])) for dtype in types),
        *(TensorSpec(hr.int64, Shape([rank])) for _ in types),
    ]


@op("ParseExample", public="", no_gradient=_PARSED)
def parse_example_op(
    serialized: String,
    names: String,
    dense_defaults: Sequence[Anything] = (),
    *,
    sparse_keys: tuple[str, ...],
    sparse_types: tuple[DType, ...],
    dense_keys: tuple[str, ...],
    dense_types: tuple[DType, ...],
    dense_shapes: tuple[Shape, ...],
    single: bool,
    in_rows: tuple[str, ...] = (),
) -> list[Spec]:
    """The features of examples as tensors.

    Args:
        serialized: [n], examples, or [] where ``single``. Raises when it runs on what is none, or
            lacks a feature.
        names: [n], what messages call them; [0] for numbers.
        dense_defaults: For each dense feature the values of examples that lack it, or what
            sequences are padded with; empty where it must be there.
        sparse_keys: The names of the features that become sparse tensors.
        sparse_types: Their dtypes.
        dense_keys: The names of those that become dense tensors.
        dense_types: Their dtypes.
        dense_shapes: The shapes of their values; an unknown first dimension is a sequence.
        single: Whether it is one example alone.
        in_rows: The names of dense features of one string each that may be ``StringRows``.

    Returns:
        The indices, then the values, then the shapes of all sparse tensors, then the dense ones,
        each with n in front unless ``single``.
    """
    batch = _batch(serialized, single=single)
    dense = [
        TensorSpec(dtype, Shape(batch).concatenate(shape))
        for dtype, shape in zip(dense_types, dense_shapes, strict=True)
    ]
    return [*_sparse(sparse_types, 1 if single else 2), *dense]


@op("ParseSequenceExample", public="", no_gradient=_PARSED)
def parse_sequence_example_op(
    serialized: String,
    names: String,
    dense_defaults: Sequence[Anything] = (),
    *,
    sparse_keys: tuple[str, ...],
    sparse_types: tuple[DType, ...],
    dense_keys: tuple[str, ...],
    dense_types: tuple[DType, ...],
    dense_shapes: tuple[Shape, ...],
    list_sparse_keys: tuple[str, ...],
    list_sparse_types: tuple[DType, ...],
    list_dense_keys: tuple[str, ...],
    list_dense_types: tuple[DType, ...],
    list_dense_shapes: tuple[Shape, ...],
    allowed_missing: tuple[str, ...],
    single: bool,
) -> list[Spec]:
    """The context and the lists of examples of sequences as tensors.

    Args:
        serialized: [n], examples, or [] where ``single``. Raises when it runs on what is none, or
            lacks a feature or a list.
        names: [n], what messages call them; [0] for numbers.
        dense_defaults: For each dense feature of the context the values of examples that lack it;
            empty where it must be there.
        sparse_keys: The names of the features of the context that become sparse tensors.
        sparse_types: Their dtypes.
        dense_keys: The names of those that become dense tensors.
        dense_types: Their dtypes.
        dense_shapes: The shapes of their values.
        list_sparse_keys: The names of the lists that become sparse tensors.
        list_sparse_types: Their dtypes.
        list_dense_keys: The names of the lists that become dense tensors.
        list_dense_types: Their dtypes.
        list_dense_shapes: The shapes of the values of each step.
        allowed_missing: The lists that an example may lack.
        single: Whether it is one example alone.

    Returns:
        For the context as ``ParseExample``; then for the lists the indices, the values and the
        shapes of all sparse tensors, the dense ones, [n, steps, ...], and the number of steps of
        each of these, [n]; without n where ``single``.
    """
    batch = _batch(serialized, single=single)
    dense = [
        TensorSpec(dtype, Shape(batch).concatenate(shape))
        for dtype, shape in zip(dense_types, dense_shapes, strict=True)
    ]
    steps = [
        TensorSpec(dtype, Shape([*batch, None]).concatenate(shape))
        for dtype, shape in zip(list_dense_types, list_dense_shapes, strict=True)
    ]
    return [
        *_sparse(sparse_types, 1 if single else 2),
        *dense,
        *_sparse(list_sparse_types, 2 if single else 3),
        *steps,
        *(TensorSpec(hr.int64, Shape(batch)) for _ in list_dense_types),
    ]
