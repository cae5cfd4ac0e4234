"""Rows of sparse tensors, and sparse tensors made of rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError

Parts = tuple[Any, Any, Any]


def rows_of_sparse(indices: Any, values: Any, dense_shape: Any) -> list[Parts]:
    """Return the rows of a sparse tensor, each as indices, values and shape."""
    count = int(dense_shape[0])
    rows = indices[:, 0]
    if np.any(rows[1:] < rows[:-1]):
        raise InvalidArgumentError(
            "the indices of a sparse tensor that is taken by rows must be in order; "
            "hr.sparse.reorder brings them there"
        )
    bounds = np.searchsorted(rows, np.arange(count + 1))
    return [
        (
            np.ascontiguousarray(indices[first:last, 1:]),
            values[first:last],
            np.array(dense_shape[1:]),
        )
        for first, last in itertools.pairwise(bounds)
    ]


def batch_of_sparse(rows: Sequence[Parts]) -> Parts:
    """Return a sparse tensor of rows; its rows are as large as the largest of them.

    Raises:
        InvalidArgumentError: if they have different numbers of dimensions.
    """
    ranks = {len(shape) for _, _, shape in rows}
    if len(ranks) > 1:
        raise InvalidArgumentError(
            f"sparse tensors of different ranks cannot be batched: {sorted(ranks)}"
        )
    shape = np.max([shape for _, _, shape in rows], axis=0)
    placed = [
        np.concatenate([np.full((len(i), 1), row, np.int64), i], axis=1)
        for row, (i, _, _) in enumerate(rows)
    ]
    return (
        np.concatenate(placed),
        np.concatenate([values for _, values, _ in rows]),
        np.array([len(rows), *shape], np.int64),
    )
