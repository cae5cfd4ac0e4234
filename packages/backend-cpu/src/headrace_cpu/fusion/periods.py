"""Rows of few elements, many of them side by side, with what is the same in each row.

Three channels of an image are scaled by three numbers, ten scores get ten biases: the rows are
shorter than a vector, and what they share repeats from row to row. Here so many rows become one
that it fills vectors, and what is shared is read from a copy that repeats as often.
"""

from __future__ import annotations

from headrace_cpu.fusion.constants import ELEMENTARY
from headrace_cpu.fusion.space import Space, Value

# Rows of so many elements fill a vector by themselves.
_WIDE = 16
# The rows that become one have about so many elements; much fewer are not worth it.
_LONG, _SHORT = 192, 32
# Below so many elements nothing is gained.
_FEW = 1 << 10


def widen(space: Space) -> None:
    """Make long rows of the short ones of a space, where all that it has allows it."""
    if len(space.sizes) < 2:
        return
    row = len(space.sizes) - 1
    rows, size = space.sizes[row - 1], space.sizes[row]
    if not 1 < size < _WIDE or rows * size < _FEW or not _allowed(space, row):
        return
    shared = [v for v in space.values if v.kind == "load" and _along(v.dims, row) == (row,)]
    together = _together(rows, size)
    if not shared or together is None:
        return
    for value in shared:
        value.period = size
    space.sizes[row - 1] = rows // together
    space.sizes[row] = together * size
    for strides in (*(v.strides for v in space.values), *(s.strides for s in space.stores)):
        if row - 1 in strides:
            strides[row - 1] *= together


def _together(rows: int, size: int) -> int | None:
    """Return how many rows become one: whole vectors of them if that can be."""
    fitting = [n for n in range(2, _LONG // size + 1) if rows % n == 0 and n * size >= _SHORT]
    return max(fitting, key=lambda n: (n * size % _WIDE == 0, n), default=None)


def _along(dims: tuple[int, ...], row: int) -> tuple[int, ...]:
    return tuple(dim for dim in dims if dim >= row - 1)


def _allowed(space: Space, row: int) -> bool:
    size = space.sizes[row]
    return all(_fits(value, size, row) for value in space.values) and all(
        not _along(store.dims, row) or _side_by_side(store.strides, size, row)
        for store in space.stores
    )


def _fits(value: Value, size: int, row: int) -> bool:
    along = _along(value.dims, row)
    if not along:
        return not _along(value.over, row)
    if value.kind == "load":
        return value.dims == (row,) if along == (row,) else _side_by_side(value.strides, size, row)
    if value.kind != "map" or along == (row - 1,):
        return False
    # What is computed of what is shared is computed anew for each row then.
    return row - 1 in along or value.name not in ELEMENTARY


def _side_by_side(strides: dict[int, int], size: int, row: int) -> bool:
    """Whether the elements of all rows follow one another in memory."""
    return strides.get(row) == 1 and strides.get(row - 1) == size
