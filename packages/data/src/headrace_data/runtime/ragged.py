"""Rows of ragged tensors, and ragged tensors made of rows.

A ragged tensor is its flat values and the splits of each ragged axis, from the outermost; without
a ragged axis it is its values alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError

Parts = tuple[Any, ...]


def rows_of_ragged(parts: Parts) -> list[Parts]:
    """Return the rows of a ragged tensor."""
    flat, *splits = parts
    if not splits:
        return [(flat[i, ...],) for i in range(flat.shape[0])]
    outer, *inner = splits
    return [_row(flat, inner, first, last) for first, last in itertools.pairwise(outer)]


def _row(flat: Any, splits: Sequence[Any], first: Any, last: Any) -> Parts:
    kept = []
    for each in splits:
        part = each[first : last + 1]
        first, last = part[0], part[-1]
        kept.append(part - first)
    return (flat[first:last], *kept)


def batch_of_ragged(rows: Sequence[Parts], splits_dtype: Any) -> Parts:
    """Return a ragged tensor of rows.

    Args:
        rows: The rows, at least one.
        splits_dtype: The dtype of splits.

    Raises:
        InvalidArgumentError: if the values in them have different shapes.
    """
    flats = [parts[0] for parts in rows]
    if not all(flat.shape for flat in flats):
        raise InvalidArgumentError("ragged tensors are batched of rows, and a scalar is none")
    shapes = {flat.shape[1:] for flat in flats}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            "ragged tensors whose values have different shapes cannot be batched: "
            f"{sorted(map(list, shapes))}"
        )
    inner = rows[0][1:]
    sizes = [len(parts[1]) - 1 if inner else len(parts[0]) for parts in rows]
    made = [np.cumsum([0, *sizes]).astype(splits_dtype)]
    for axis in range(1, len(inner) + 1):
        columns = [parts[axis] for parts in rows]
        starts = np.cumsum([0, *(column[-1] for column in columns)])
        shifted = [c[1:] + start for c, start in zip(columns, starts[:-1], strict=True)]
        made.append(np.concatenate([[0], *shifted]).astype(splits_dtype))
    return (np.concatenate(flats), *made)
