"""Whether weights fit what they weigh."""

from __future__ import annotations

from headrace.errors import ShapeError
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.ops.array import rank, shape
from headrace.ops.cond import cond
from headrace.ops.elementwise import equal, logical_or
from headrace.ops.reduce import reduce_all
from headrace.ops.report import assert_true


def check_weights(weights: Tensor, values: Tensor) -> list[Operation]:
    """Return the operations that check weights when they run; none where they fit for certain.

    Args:
        weights: A scalar, or of the rank of ``values``, with axes of their size or of size 1.
        values: What they weigh.

    Raises:
        ShapeError: if it is known that they do not fit.
    """
    mine, theirs = weights.spec.shape, values.spec.shape
    if mine.rank == 0:
        return []
    if mine.rank is not None and theirs.rank is not None:
        sizes = list(zip(mine, theirs, strict=False))
        if mine.rank != theirs.rank or any(
            a is not None and a != 1 and b is not None and a != b for a, b in sizes
        ):
            raise ShapeError(
                f"weights {mine} must be a scalar, or have the rank of the losses {theirs} and in "
                "each dimension the same size or 1"
            )
        if all(a == 1 or (a is not None and a == b) for a, b in sizes):
            return []
        return [_held(_fit(weights, values), weights, values)]
    fits = cond(
        equal(rank(weights), rank(values)),
        lambda: _fit(weights, values),
        lambda: equal(rank(weights), 0),
    )
    return [_held(fits, weights, values)]


def _fit(weights: Tensor, values: Tensor) -> Tensor:
    ours, theirs = shape(weights), shape(values)
    return reduce_all(logical_or(equal(ours, 1), equal(ours, theirs)))


def _held(fits: Tensor, weights: Tensor, values: Tensor) -> Operation:
    message = "weights do not fit the values: shapes of weights and values are"
    return assert_true(fits, [message, shape(weights), shape(values)])
