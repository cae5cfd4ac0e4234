"""Kernels of barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import DType, Shape
from headrace.errors import ShapeError
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.barriers import Barrier
from headrace_cpu.kernels.numeric import Array, scalar

KERNELS = KernelTable()

KERNELS.resource("Barrier")(Barrier)


@KERNELS.stateful("BarrierInsertMany", answers=True)
def insert_many(
    ctx: KernelContext, barrier: Barrier, keys: Array, values: Array, *, component_index: int
) -> None:
    """Set one component of the values of some keys."""
    place = component_index + 2
    if not 2 <= place < len(barrier.elements.dtypes):
        raise ValueError(
            f"component_index must be from 0 to {len(barrier.elements.dtypes) - 3}, got "
            f"{component_index}"
        )
    barrier.elements.check_component(1, keys, many=True)
    barrier.elements.check_component(place, values, many=True)
    if len(keys) != len(values):
        raise ShapeError(f"there are {len(keys)} keys and {len(values)} values")
    if values[:1].size == 0 and len(values):
        raise ShapeError(f"values without elements cannot be inserted, got shape {values.shape}")
    rows = [row for (row,) in barrier.elements.rows(ctx.xp, [values])]
    barrier.insert(component_index, list(keys), rows)


@KERNELS.blocking("BarrierTakeMany")
def take_many(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    barrier: Barrier,
    num_elements: Array,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
    allow_small_batch: bool,
) -> None:
    """Take complete values, joined."""
    barrier.elements.check_dtypes((*barrier.elements.dtypes[:2], *component_types))
    count = int(scalar(num_elements, "num_elements"))
    if count < 1:
        raise ValueError(f"num_elements must be at least 1, got {count}")
    barrier.elements.check_joinable()

    def answer(result: Any) -> None:
        if not isinstance(result, BaseException):
            try:
                result = barrier.elements.stack(ctx.xp, result)
            except Exception as error:
                result = error
        done(result)

    barrier.take(count, answer, step.cancellation, partial=allow_small_batch)


@KERNELS.stateful("BarrierReadySize")
def ready_size(ctx: KernelContext, barrier: Barrier) -> Array:
    """Return the number of complete values."""
    return ctx.xp.asarray(barrier.ready_size, np.int32)


@KERNELS.stateful("BarrierIncompleteSize")
def incomplete_size(ctx: KernelContext, barrier: Barrier) -> Array:
    """Return the number of other values."""
    return ctx.xp.asarray(barrier.incomplete_size, np.int32)


@KERNELS.stateful("BarrierClose", answers=True)
def close(ctx: KernelContext, barrier: Barrier, *, cancel_pending_enqueues: bool) -> None:
    """Close the barrier."""
    barrier.finish(cancel_pending_enqueues=cancel_pending_enqueues)
