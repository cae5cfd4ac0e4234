"""Gradients of ops on sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import (
    Operation,
    Tensor,
    cast,
    conj,
    equal,
    gather,
    gather_nd,
    ones,
    reduce_sum,
    reshape,
    shape,
    size,
    stack,
    transpose,
    where,
    zeros,
    zeros_like,
)
from headrace import range as range_
from headrace.extend import GradientTable
from headrace.extend.primitives import sparse_dense_matmul_values, sparse_to_dense_values

RULES = GradientTable()


@RULES.add("SparseTensorDenseMatMul")
def _sparse_dense_matmul(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    indices, values, dense_shape, b = op.inputs
    adjoint_a, adjoint_b = op.attrs["adjoint_a"], op.attrs["adjoint_b"]
    rows, columns = indices[:, 0], indices[:, 1]
    dense = conj(transpose(b)) if adjoint_b else b
    if adjoint_a:
        rows, columns = columns, rows
    per_value = reduce_sum(gather(grad, rows) * conj(gather(dense, columns)), 1)
    if adjoint_a:
        per_value = conj(per_value)
    for_b = sparse_dense_matmul_values(
        indices, values, dense_shape, grad, adjoint_a=not adjoint_a, adjoint_b=False
    )
    return None, per_value, None, conj(transpose(for_b)) if adjoint_b else for_b


@RULES.add("SparseToDense")
def _sparse_to_dense(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    indices, output_shape, values, _ = op.inputs
    validated = op.attrs["validate_indices"]
    places = indices
    if indices.shape.rank is None or indices.shape.rank < 2:
        places = reshape(indices, stack([-1, size(output_shape)]))
    rows = cast(range_(shape(places)[0]), places.dtype)
    per_value = gather_nd(grad, places)
    if not validated:
        # Of elements of one place only the last one got there.
        nobody = zeros([], places.dtype)
        last = sparse_to_dense_values(places, output_shape, rows, nobody, validate_indices=False)
        per_value = where(equal(gather_nd(last, places), rows), per_value, zeros_like(per_value))
    zero, one = zeros([], grad.dtype), ones([], grad.dtype)
    untouched = sparse_to_dense_values(places, output_shape, zero, one, validate_indices=validated)
    scalar = values.shape.rank == 0
    return None, None, reduce_sum(per_value) if scalar else per_value, reduce_sum(grad * untouched)
