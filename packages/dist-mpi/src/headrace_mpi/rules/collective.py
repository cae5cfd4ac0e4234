"""Gradients of collectives: of the sum over all ranks of what each rank differentiates.

Each rank's tensor has a part in the outputs of all ranks, so its gradient is made of theirs, by a
collective in the other direction.
"""

from __future__ import annotations

from typing import Any

from headrace import Operation, Tensor, cast, equal, size, zeros_like
from headrace.extend import GradientTable
from headrace.extend.primitives import select
from headrace_mpi.ops import collective as ops

RULES = GradientTable()


def _summed(grad: Any, reduction: str) -> Tensor:
    return ops.all_reduce([grad], reduction=reduction)[0]


@RULES.add("AllReduce")
def all_reduce(op: Operation, *grads: Tensor | None) -> list[Tensor | None]:
    """Add up the gradients of all ranks; a least or largest element passes its share on."""
    reduction = op.attrs["reduction"]
    found: list[Tensor | None] = []
    for x, y, grad in zip(op.inputs, op.outputs, grads, strict=True):
        if grad is None:
            found.append(None)
        elif reduction in ("sum", "mean"):
            found.append(_summed(grad, reduction))
        else:
            # As TensorFlow's reduce_max does: equal elements share.
            hit = equal(x, y)
            count = _summed(cast(hit, y.dtype), "sum")
            share = _summed(grad, "sum") / count
            found.append(select(hit, share, zeros_like(share)))
    return found


@RULES.add("AllGather")
def all_gather(op: Operation, grad: Tensor | None, _: Tensor | None) -> Tensor | None:
    """Add up the gradients of this rank's rows."""
    if grad is None:
        return None
    return ops.reduce_scatter(grad, op.outputs[1], reduction="sum")


@RULES.add("ReduceScatter")
def reduce_scatter(op: Operation, grad: Tensor | None) -> list[Tensor | None]:
    """Collect the gradients of all rows."""
    rest: list[Tensor | None] = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *rest]
    reduction = op.attrs["reduction"]
    gathered, sizes = ops.all_gather(grad)
    if reduction == "sum":
        return [gathered, *rest]
    if reduction == "mean":
        return [gathered / cast(size(sizes), gathered.dtype), *rest]
    x = op.inputs[0]
    best, _ = ops.all_gather(op.outputs[0])
    hit = equal(x, best)
    share = gathered / _summed(cast(hit, gathered.dtype), "sum")
    return [select(hit, share, zeros_like(share)), *rest]


@RULES.add("AllToAll")
def all_to_all(op: Operation, grad: Tensor | None, _: Tensor | None) -> list[Tensor | None]:
    """Send the gradients of rows back to where the rows came from."""
    rest: list[Tensor | None] = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *rest]
    return [ops.all_to_all(grad, op.outputs[1])[0], *rest]


@RULES.add("BroadcastFromRank")
def broadcast(op: Operation, grad: Tensor | None) -> Tensor | None:
    """Add up the gradients of all ranks on the root; other tensors have no part in anything."""
    return None if grad is None else ops.reduce_to_rank(grad, root=op.attrs["root"])


@RULES.add("ReduceToRank")
def reduce_to_rank(op: Operation, grad: Tensor | None) -> Tensor | None:
    """Hand the root's gradient around."""
    return None if grad is None else ops.broadcast(grad, root=op.attrs["root"])
