"""Components of elements at run time: how many arrays one is, its rows, and one made of rows.

A component is known by its kind: ``tensor``, ``sparse``, ``array``, ``dataset``, ``optional`` with
the number of its tensors, or ``ragged`` with the number of ragged axes and the dtype of splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace_data.runtime.ragged import batch_of_ragged, rows_of_ragged
from headrace_data.runtime.sparse import batch_of_sparse, rows_of_sparse

Parts = tuple[Any, ...]
_WIDTHS = {"tensor": 1, "sparse": 3, "array": 1, "dataset": 1}


def width_of(kind: str) -> int:
    """Return how many arrays a component of a kind is."""
    # Ragged ones have flat values beside their splits, optionals whether they are there.
    return _WIDTHS[kind] if kind in _WIDTHS else int(kind.split(":")[1]) + 1


def by_component(arrays: Sequence[Any], kinds: Sequence[str]) -> Iterator[tuple[str, Parts]]:
    """Yield the kind of each component of an element, and its arrays."""
    first = 0
    for kind in kinds:
        last = first + width_of(kind)
        yield kind, tuple(arrays[first:last])
        first = last


def size_of(kind: str, parts: Parts) -> int | None:
    """Return how many rows a component has, None for a scalar."""
    if kind == "sparse":
        return int(parts[2][0])
    if kind.startswith("ragged") and len(parts) > 1:
        return len(parts[1]) - 1
    shape = np.shape(parts[0])
    return shape[0] if shape else None


def rows_of(kind: str, parts: Parts) -> Callable[[int], Parts]:
    """Return a function from a number to the arrays of the row of a component."""
    if kind == "sparse":
        return rows_of_sparse(*parts).__getitem__
    if len(parts) > 1:
        return rows_of_ragged(parts).__getitem__
    (array,) = parts
    if kind == "dataset":
        return lambda i: (array[i],)
    return lambda i: (array[i, ...],)


def batch_of(kind: str, rows: Sequence[Parts]) -> Parts:
    """Return the arrays of a component made of rows.

    Raises:
        InvalidArgumentError: if they do not fit together.
    """
    if kind == "sparse":
        return batch_of_sparse(rows)
    if kind.startswith("ragged"):
        return batch_of_ragged(rows, kind.split(":")[2])
    if kind == "dataset":
        return (handles([value for (value,) in rows]),)
    return (stacked([array for (array,) in rows]),)


def handles(values: Sequence[Any]) -> Any:
    """Return data sets, or batches of them of one shape, as one array of objects."""
    made = np.empty((len(values), *np.shape(values[0])), object)
    for i, value in enumerate(values):
        if np.shape(value) != made.shape[1:]:
            raise InvalidArgumentError("batch: cannot batch batches of different numbers of data")
        made[i] = value
    return made


def stacked(arrays: Sequence[Any]) -> Any:
    """Return arrays of one shape joined along a new first axis.

    Raises:
        InvalidArgumentError: if their shapes differ.
    """
    first = arrays[0]
    shape = first.shape
    made = np.empty((len(arrays), *shape), first.dtype)
    for i, array in enumerate(arrays):
        if array.shape != shape:
            raise InvalidArgumentError(
                f"batch: cannot batch tensors of different shapes: element 0 has shape "
                f"{list(shape)}, element {i} has {list(array.shape)}; padded_batch pads them"
            )
        made[i, ...] = array
    return made
