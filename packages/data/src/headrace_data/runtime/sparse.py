"""Rows of sparse tensors, and sparse tensors made of rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError

Parts = tuple[Any, Any, Any]


def in_order(indices: Any) -> bool:
    """Whether the rows of a sparse tensor come one after the other."""
    rows = indices[:, 0]
    return not np.any(rows[1:] < rows[:-1])


def check_sparse(indices: Any, values: Any, dense_shape: Any) -> None:
    """Refuse parts that make no sparse tensor.

    Raises:
        InvalidArgumentError: if their sizes differ.
    """
    if len(indices) != len(values):
        raise InvalidArgumentError(
            "a sparse tensor has as many indices as values, got "
            f"{len(indices)} indices and {len(values)} values"
        )
    if indices.shape[1] != len(dense_shape):
        raise InvalidArgumentError(
            f"a sparse tensor of {len(dense_shape)} axes has as many columns of indices, got "
            f"{indices.shape[1]}"
        )


def rows_of_sparse(indices: Any, values: Any, dense_shape: Any) -> list[Parts]:
    """Return the rows of a sparse tensor, each as indices, values and shape.

    Raises:
        InvalidArgumentError: if its parts do not fit together, or the indices are in no order.
    """
    check_sparse(indices, values, dense_shape)
    count = int(dense_shape[0])
    rows = indices[:, 0]
    if not in_order(indices):
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
