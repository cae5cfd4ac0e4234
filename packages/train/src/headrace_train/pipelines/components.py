"""Components of examples on their way through a queue, sparse ones as strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import headrace as hr
from headrace import DType, Shape, SparseTensor, Tensor
from headrace.errors import ShapeError, shown


@final
@dataclass(frozen=True)
class DenseComponent:
    """A tensor, which goes through a queue as it is.

    Attributes:
        dtype: The dtype in the queue.
        shape: The shape of one example in the queue.
    """

    dtype: DType
    shape: Shape

    def store(self, part: Any, *, enqueue_many: bool) -> Tensor:
        """Return what is enqueued."""
        tensor: Tensor = part
        return tensor

    def restore(self, stored: Tensor) -> Tensor:
        """Return what is handed out of a batch that was dequeued."""
        return stored


@final
@dataclass(frozen=True)
class SparseComponent:
    """A sparse tensor, which goes through a queue as three strings.

    TensorFlow keeps sparse tensors in a table beside the queue, where those of examples that are
    dropped stay; here the queue has all of it.

    Attributes:
        values_dtype: The dtype of the sparse tensor.
        rank: How many dimensions an example has, None where that is not known.
    """

    values_dtype: DType
    rank: int | None

    dtype = hr.string
    shape = Shape([3])

    @staticmethod
    def of(column: Sequence[Any], *, enqueue_many: bool) -> SparseComponent:
        """Return the component of sparse tensors of one dtype.

        Raises:
            ShapeError: if their ranks differ, or those of rows are too small.
        """
        shape = column[0].shape
        for sparse in column[1:]:
            shape = shape.merge_with(
                Shape(None if (r := sparse.shape.rank) is None else [None] * r)
            )
        rank = shape.rank
        if rank is not None and enqueue_many:
            rank -= 1
        if rank is not None and rank < 1:
            raise ShapeError(
                f"with enqueue_many=True each row of {shown(column[0])} is an example, so that it "
                "needs "
                "2 dimensions or more"
            )
        return SparseComponent(column[0].dtype, rank)

    def store(self, part: Any, *, enqueue_many: bool) -> Tensor:
        """Return what is enqueued."""
        stored: Tensor = (
            hr.serialize_many_sparse(part) if enqueue_many else hr.serialize_sparse(part)
        )
        return stored

    def restore(self, stored: Tensor) -> SparseTensor:
        """Return what is handed out of a batch that was dequeued: one dimension more."""
        rank = None if self.rank is None else self.rank + 1
        sparse: SparseTensor = hr.deserialize_many_sparse(stored, self.values_dtype, rank)
        return sparse


Component: TypeAlias = DenseComponent | SparseComponent
