"""Sums of partial gradients beside what they are made of."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import IndexedSlices, Tensor, colocate_with
from headrace_autodiff.accumulate import Grad, accumulated


def summed_beside(tensor: Tensor, parts: Sequence[Tensor | IndexedSlices]) -> Grad:
    """Return the sum of the partial gradients of a tensor, of each device beside the first of it.

    What several devices have summed up, and rows, are joined beside what yields the tensor.

    Args:
        tensor: The tensor.
        parts: What has arrived, from the last use of the tensor to the first.
    """
    if len(parts) < 2:
        return accumulated(parts)
    if any(isinstance(part, IndexedSlices) for part in parts):
        with colocate_with(tensor.op, ignore_existing=True):
            return accumulated(parts)
    groups: dict[str, list[Tensor]] = {}
    for part in parts:
        assert isinstance(part, Tensor)
        groups.setdefault(part.op.device, []).append(part)
    sums: list[Tensor | IndexedSlices] = []
    for group in groups.values():
        with colocate_with(group[-1].op, ignore_existing=True):
            found = accumulated(group)
        assert found is not None
        sums.append(found)
    if len(sums) == 1:
        return sums[0]
    with colocate_with(tensor.op, ignore_existing=True):
        return accumulated(sums)
