"""Reductions (sum, mean, minimum, maximum) of the ranks' values, in the order of the ranks.

Every element is computed on one rank, or on each of them in the same way, so all ranks have the
same bits, and so has every run. Floats of 16 bits are added up as float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace_mpi.collectives.parts import Array, LocalPart, Part

# About what stays in a core's cache beside the results: each block is read, and used at once.
BLOCK_BYTES = 256 * 1024

_UFUNCS: dict[str, Any] = {
    "sum": np.add,
    "mean": np.add,
    "min": np.minimum,
    "max": np.maximum,
}


def reduce_parts(parts: Sequence[Part], reduction: str, out: Array) -> None:
    """Fill ``out`` with what the parts make together.

    Args:
        parts: The values of the ranks in the order of the ranks, each as many as ``out`` has.
        reduction: ``"sum"``, ``"mean"``, ``"min"`` or ``"max"``.
        out: [elements], where the result goes.
    """
    ufunc = _UFUNCS[reduction]
    wide = _wide(out.dtype)
    count = len(parts)
    if wide is None and count > 1 and out.nbytes <= BLOCK_BYTES:
        _reduce_block(parts, ufunc, out)
        if reduction == "mean":
            _divide(out, count)
        return
    block = max(BLOCK_BYTES // max(out.itemsize, 1), 1)
    scratch = np.empty(min(block, out.size), out.dtype)
    room = None if wide is None else np.empty(min(block, out.size), wide)
    for start in range(0, out.size, block):
        stop = min(start + block, out.size)
        target = out[start:stop]
        total = target if room is None else room[: stop - start]
        first = parts[0].read(start, stop, target)
        if count == 1 or room is not None:
            total[...] = first
        for place, part in enumerate(parts[1:]):
            value = part.read(start, stop, scratch[: stop - start])
            ufunc(total if place or room is not None else first, value, out=total)
        if reduction == "mean":
            _divide(total, count)
        if room is not None:
            target[...] = total


def _reduce_block(parts: Sequence[Part], ufunc: Any, out: Array) -> None:
    """Reduce what is small, in as few calls as can be."""
    first, second, *rest = parts
    size = out.size
    ufunc(first.read(0, size, out), _read(second, out), out=out)
    for part in rest:
        ufunc(out, _read(part, out), out=out)


def _divide(total: Array, count: int) -> None:
    """Divide a sum by the number of its summands."""
    if total.dtype.kind == "f" and not count & (count - 1):
        # The same bits in half of the time.
        np.multiply(total, 1 / count, out=total)
    else:
        np.divide(total, count, out=total)


def _read(part: Part, like: Array) -> Array:
    return part.array if type(part) is LocalPart else part.read(0, like.size, np.empty_like(like))


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype in which values of a dtype are added up, None where it is the same."""
    narrow = dtype.itemsize == 2 and dtype.kind not in "iu"
    return np.dtype(np.float32) if narrow else None
