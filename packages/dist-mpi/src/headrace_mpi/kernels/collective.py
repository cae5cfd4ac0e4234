"""Kernels of the collectives, on the host: they begin, and answer when all ranks have come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace.errors import FailedPreconditionError, InvalidArgumentError
from headrace.extend import KernelContext, KernelTable
from headrace_mpi.collectives import algorithms, products
from headrace_mpi.collectives.groups import current_group
from headrace_mpi.collectives.parts import Array
from headrace_mpi.collectives.planning import places_of
from headrace_mpi.collectives.values import Algorithm, Link

KERNELS = KernelTable()

Done: TypeAlias = Callable[[Any], None]
Plan: TypeAlias = tuple[str, ...]


def _begin(
    ctx: KernelContext,
    step: Any,
    done: Done,
    plan: Plan,
    make: Callable[[Link], Algorithm],
    alone: Callable[[], Sequence[Any]],
) -> None:
    """Begin a collective, or answer at once where there are no other ranks.

    Args:
        ctx: The node.
        step: Its run.
        done: Gets its outputs.
        plan: The collectives of the step.
        make: Makes what the ranks send each other.
        alone: Returns the outputs where there is one rank only.
    """
    group = current_group()
    if group.size == 1:
        done(list(alone()))
        return
    place = ctx.attrs["place"]
    if place < 0:
        raise FailedPreconditionError(
            f"{ctx.op_type} {ctx.op_name!r} runs outside of a step that a session prepared"
        )
    # What the step waits with receives for the group, too.
    step.wait = group.wait
    what = f"{ctx.op_type} {ctx.op_name!r}"
    group.run(plan, place, places_of(plan), what, make, step.cancellation, done)


def _check_root(root: int) -> None:
    size = current_group().size
    if root >= size:
        raise InvalidArgumentError(f"root must be one of the ranks 0 to {size - 1}, got {root}")


def _rows(x: Array, sizes: Array | None, what: str, *, even: bool) -> list[int]:
    """Return how many rows of a tensor go to each rank.

    Raises:
        InvalidArgumentError: if the rows cannot be dealt out so.
    """
    size = current_group().size
    if x.ndim == 0:
        raise InvalidArgumentError(f"{what} takes tensors of at least one dimension, got a scalar")
    rows = x.shape[0]
    if sizes is not None:
        found: list[int] = sizes.tolist()
        if len(found) != size or min(found) < 0 or sum(found) != rows:
            raise InvalidArgumentError(
                f"{what}: sizes must be {size} numbers >= 0 that add up to the {rows} rows, got "
                f"{found}"
            )
        return found
    if even and rows % size:
        raise InvalidArgumentError(
            f"{what}: the {rows} rows cannot be dealt out evenly to {size} ranks"
        )
    return [rows // size + (rank < rows % size) for rank in range(size)]


@KERNELS.blocking("AllReduce")
def all_reduce(
    ctx: KernelContext,
    step: Any,
    done: Done,
    tensors: list[Array],
    *,
    reduction: str,
    bucket_bytes: int,
    place: int,
    plan: Plan,
) -> None:
    """Begin to add up tensors of all ranks."""
    _begin(
        ctx,
        step,
        done,
        plan,
        lambda link: algorithms.all_reduce(link, tensors, reduction),
        lambda: tensors,
    )


@KERNELS.blocking("AllReduceProduct")
def all_reduce_product(
    ctx: KernelContext,
    step: Any,
    done: Done,
    a: Array,
    b: Array,
    *,
    transpose_a: bool,
    transpose_b: bool,
    reduction: str,
    place: int,
    plan: Plan,
) -> None:
    """Begin to add up products of all ranks."""
    left = a if transpose_a else a.T
    right = b.T if transpose_b else b
    _begin(
        ctx,
        step,
        done,
        plan,
        lambda link: products.all_reduce_product(link, left, right, reduction),
        lambda: [left.T @ right],
    )


@KERNELS.blocking("AllGather")
def all_gather(
    ctx: KernelContext, step: Any, done: Done, x: Array, *, place: int, plan: Plan
) -> None:
    """Begin to collect the rows of all ranks."""
    _rows(x, None, "all_gather", even=False)
    _begin(
        ctx,
        step,
        done,
        plan,
        lambda link: algorithms.all_gather(link, x),
        lambda: (x, np.array([x.shape[0]], np.int64)),
    )


@KERNELS.blocking("ReduceScatter")
def reduce_scatter(
    ctx: KernelContext,
    step: Any,
    done: Done,
    x: Array,
    sizes: Array | None,
    *,
    reduction: str,
    place: int,
    plan: Plan,
) -> None:
    """Begin to add up the rows of this rank."""
    rows = _rows(x, sizes, "reduce_scatter", even=False)
    _begin(
        ctx,
        step,
        done,
        plan,
        lambda link: algorithms.reduce_scatter(link, x, rows, reduction),
        lambda: (x,),
    )


@KERNELS.blocking("AllToAll")
def all_to_all(
    ctx: KernelContext,
    step: Any,
    done: Done,
    x: Array,
    sizes: Array | None,
    *,
    place: int,
    plan: Plan,
) -> None:
    """Begin to deal out rows to all ranks."""
    rows = _rows(x, sizes, "all_to_all", even=True)
    _begin(
        ctx,
        step,
        done,
        plan,
        lambda link: algorithms.all_to_all(link, x, rows),
        lambda: (x, np.array([x.shape[0]], np.int64)),
    )


@KERNELS.blocking("BroadcastFromRank")
def broadcast(
    ctx: KernelContext, step: Any, done: Done, x: Array, *, root: int, place: int, plan: Plan
) -> None:
    """Begin to hand around the tensor of one rank."""
    _check_root(root)
    _begin(
        ctx,
        step,
        done,
        plan,
        lambda link: algorithms.broadcast(link, np.asarray(x), root),
        lambda: (x,),
    )


@KERNELS.blocking("ReduceToRank")
def reduce_to_rank(
    ctx: KernelContext, step: Any, done: Done, x: Array, *, root: int, place: int, plan: Plan
) -> None:
    """Begin to add up tensors on one rank."""
    _check_root(root)
    _begin(
        ctx,
        step,
        done,
        plan,
        lambda link: algorithms.reduce_to_rank(link, x, root),
        lambda: (x,),
    )


@KERNELS.blocking("RankBarrier")
def barrier(
    ctx: KernelContext, step: Any, done: Done, waits_for: list[Array], *, place: int, plan: Plan
) -> None:
    """Begin to wait for all ranks."""
    _begin(ctx, step, done, plan, algorithms.barrier, lambda: ())
