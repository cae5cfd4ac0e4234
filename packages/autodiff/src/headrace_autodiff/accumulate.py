"""Sums of the partial gradients that reach one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import IndexedSlices, Tensor, add, cast, concat, convert_to_tensor, int64
from headrace.extend.primitives import list_add

Grad = Tensor | IndexedSlices | None


def dense(grad: Grad) -> Tensor | None:
    """Return a gradient as a tensor, its rows scattered where it is row-sparse."""
    return convert_to_tensor(grad) if isinstance(grad, IndexedSlices) else grad


def total(parts: Sequence[Tensor]) -> Tensor | None:
    """Return the sum of tensors of one shape, None if there are none.

    Neighbours are added first, then neighbouring sums: the order is fixed, and no summand passes
    through more additions than the logarithm of their number.
    """
    left = list(parts)
    while len(left) > 1:
        sums = [_added(left[i], left[i + 1]) for i in range(0, len(left) - 1, 2)]
        left = sums + left[len(sums) * 2 :]
    return left[0] if left else None


def _added(left: Tensor, right: Tensor) -> Tensor:
    return list_add(left, right) if left.dtype.kind == "list" else add(left, right)


def accumulated(parts: Sequence[Tensor | IndexedSlices]) -> Grad:
    """Return the sum of partial gradients: row-sparse where all are, dense otherwise."""
    rows = [p for p in parts if isinstance(p, IndexedSlices)]
    if len(parts) == 1:
        return parts[0]
    if parts and len(rows) == len(parts):
        return _stacked(rows)
    return total([t for t in map(dense, parts) if t is not None])


def _stacked(parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """Return the rows of all parts one after the other; those named twice add up."""
    indices = [p.indices for p in parts]
    if len({i.dtype for i in indices}) > 1:
        indices = [cast(i, int64) for i in indices]
    values = concat([p.values for p in parts], 0)
    return IndexedSlices(values, concat(indices, 0), parts[0].dense_shape)
