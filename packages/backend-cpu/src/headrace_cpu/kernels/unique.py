"""Kernels of sets of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_rank, widened

KERNELS = KernelTable()


@KERNELS.plain("Unique")
def unique(xp: Any, x: Array, *, out_idx: DType) -> tuple[Array, Array, Array]:
    """Find the distinct elements by sorting, and put them in the order of their first places."""
    check_rank(x, 1, "x")
    kind = out_idx.numpy
    if not x.size:
        return x, xp.zeros((0,), kind), xp.zeros((0,), kind)
    if x.dtype == object:
        return _unique_objects(x, kind)
    _, first, places, counts = xp.unique(
        widened(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = first.argsort()
    # Each place in the sorted elements, to its place in their order here.
    ranks = order.argsort()
    return (
        x[first[order]],
        ranks[places.reshape(-1)].astype(kind),
        counts[order].astype(kind),
    )


def _unique_objects(x: Array, kind: Any) -> tuple[Array, Array, Array]:
    numbers: dict[Any, int] = {}
    places = np.array([numbers.setdefault(item, len(numbers)) for item in x.tolist()], kind)
    found = np.empty((len(numbers),), object)
    found[:] = list(numbers)
    return found, places, np.bincount(places, minlength=len(numbers)).astype(kind)


@KERNELS.plain("ListDiff")
def list_diff(xp: Any, x: Array, y: Array, *, out_idx: DType) -> tuple[Array, Array]:
    """Drop what the other vector has."""
    check_rank(x, 1, "x")
    check_rank(y, 1, "y")
    if x.dtype == object:
        other = set(y.tolist())
        left = np.array([item not in other for item in x.tolist()], bool)
    else:
        left = ~xp.isin(widened(x), widened(y))
    return x[left], xp.flatnonzero(left).astype(out_idx.numpy)
