"""How far sequences are apart."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import ShapeError
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index, Same
from headrace.ops.sparse_tensor import as_sparse
from headrace.shapes import UNKNOWN, Dim, Shape


@op(
    "EditDistance",
    host_inputs=[
        "hypothesis_indices",
        "hypothesis_values",
        "hypothesis_shape",
        "truth_indices",
        "truth_values",
        "truth_shape",
    ],
    public="",
    no_gradient="it counts edits",
)
def _edit_distance(
    hypothesis_indices: Index,
    hypothesis_values: Same,
    hypothesis_shape: Index,
    truth_indices: Index,
    truth_values: Same,
    truth_shape: Index,
    normalize: bool = True,
) -> Spec:
    """The least number of insertions, deletions and replacements that turn one sequence to another.

    Args:
        hypothesis_indices: [n, rank], where the elements of the sequences stand, in row-major
            order.
        hypothesis_values: [n], the elements, any dtype.
        hypothesis_shape: [rank], the shape of all sequences; they run along its last axis.
        truth_indices: [m, rank], as for the hypotheses.
        truth_values: [m], of the dtype of the hypotheses.
        truth_shape: [rank], as for the hypotheses.
        normalize: Whether to divide by the lengths of the truths.

    Returns:
        The larger of both shapes without their last axis, float32. Between two empty sequences 0;
        of a truth that alone is empty, normalized, infinity.
    """
    rank: Dim = None
    for indices, values, shape in (
        (hypothesis_indices, hypothesis_values, hypothesis_shape),
        (truth_indices, truth_values, truth_shape),
    ):
        if not indices.shape.is_compatible_with([None, None]):
            raise ShapeError(f"indices must be a matrix, got {indices}")
        count, columns = [None, None] if indices.rank is None else indices.shape.as_list()
        if not values.shape.is_compatible_with([count]):
            raise ShapeError(f"there must be one value for each of {indices}, got {values}")
        if not shape.shape.is_compatible_with([columns]):
            raise ShapeError(f"the shape must have {columns} dimensions, got {shape}")
        length = shape.shape[0] if shape.rank == 1 else None
        mine = columns if columns is not None else length
        if None not in (rank, mine) and rank != mine:
            raise ShapeError(f"hypothesis and truth must have one rank, got {rank} and {mine}")
        rank = mine if rank is None else rank
    if rank == 0:
        raise ShapeError("sequences need one axis at least, along which they run")
    ours, theirs = as_shape(hypothesis_shape), as_shape(truth_shape)
    if ours.dims is None or theirs.dims is None:
        known = UNKNOWN if rank is None else Shape([None] * (rank - 1))
        return TensorSpec(dtypes.float32, known)
    pairs = zip(ours.dims[:-1], theirs.dims[:-1], strict=True)
    dims = [None if a is None or b is None else max(a, b) for a, b in pairs]
    return TensorSpec(dtypes.float32, Shape(dims))


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str | None = "edit_distance"
) -> Tensor:
    """The least number of insertions, deletions and replacements that turn one sequence to another.

    Args:
        hypothesis: A sparse tensor whose sequences run along its last axis, in row-major order.
        truth: Another, of the same dtype and rank.
        normalize: Whether to divide by the lengths of the truths.
        name: The name of the operation.

    Returns:
        The larger of both shapes without their last axis, float32. Between two empty sequences 0;
        of a truth that alone is empty, normalized, infinity.

    Raises:
        ShapeError: if the ranks are known to differ.
        DTypeError: if the dtypes differ.
    """
    ours, theirs = as_sparse(hypothesis, "hypothesis"), as_sparse(truth, "truth")
    return _edit_distance(
        ours.indices,
        ours.values,
        ours.dense_shape,
        theirs.indices,
        theirs.values,
        theirs.dense_shape,
        normalize,
        name=name,
    )
