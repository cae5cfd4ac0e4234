"""Kernels of accumulators. They keep what they add on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import DType, Shape
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.accumulators import (
    Accumulator,
    ConditionalAccumulator,
    SparseConditionalAccumulator,
)
from headrace_cpu.kernels.numeric import Array, scalar

KERNELS = KernelTable()

KERNELS.resource("ConditionalAccumulator")(ConditionalAccumulator)
KERNELS.resource("SparseConditionalAccumulator")(SparseConditionalAccumulator)


@KERNELS.stateful("AccumulatorApplyGradient", answers=True)
def apply_gradient(
    ctx: KernelContext, accumulator: ConditionalAccumulator, local_step: Array, gradient: Array
) -> None:
    """Add a gradient."""
    accumulator.apply(int(scalar(local_step, "local_step")), gradient)


@KERNELS.stateful("SparseAccumulatorApplyGradient", answers=True)
def sparse_apply_gradient(
    ctx: KernelContext,
    accumulator: SparseConditionalAccumulator,
    local_step: Array,
    indices: Array,
    values: Array,
    shape: Array,
) -> None:
    """Add a row-sparse gradient."""
    rows = indices.astype(np.int64)
    accumulator.apply(int(scalar(local_step, "local_step")), (rows, values, shape))


@KERNELS.blocking("AccumulatorTakeGradient")
def take_gradient(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    accumulator: ConditionalAccumulator,
    num_required: Array,
    *,
    dtype: DType,
    shape: Shape,
) -> None:
    """Take what was accumulated."""
    accumulator.take(_required(num_required), done, step.cancellation)


@KERNELS.blocking("SparseAccumulatorTakeGradient")
def sparse_take_gradient(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    accumulator: SparseConditionalAccumulator,
    num_required: Array,
    *,
    dtype: DType,
    shape: Shape,
) -> None:
    """Take what was accumulated."""
    accumulator.take(_required(num_required), done, step.cancellation)


@KERNELS.stateful("AccumulatorPlaceGradient", answers=True)
def place_gradient(
    ctx: KernelContext, accumulator: ConditionalAccumulator, place: Array, gradient: Array
) -> None:
    """Keep a gradient."""
    accumulator.place(int(scalar(place, "place")), gradient)


@KERNELS.stateful("SparseAccumulatorPlaceGradient", answers=True)
def sparse_place_gradient(
    ctx: KernelContext,
    accumulator: SparseConditionalAccumulator,
    place: Array,
    indices: Array,
    values: Array,
    shape: Array,
) -> None:
    """Keep a row-sparse gradient."""
    rows = indices.astype(np.int64)
    accumulator.place(int(scalar(place, "place")), (rows, values, shape))


@KERNELS.blocking("AccumulatorTakePlaced")
def take_placed(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    accumulator: ConditionalAccumulator,
    places: Array,
    *,
    dtype: DType,
    shape: Shape,
) -> None:
    """Take the gradients of some numbers."""
    accumulator.take_placed(_numbers(places), done, step.cancellation)


@KERNELS.blocking("SparseAccumulatorTakePlaced")
def sparse_take_placed(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    accumulator: SparseConditionalAccumulator,
    places: Array,
    *,
    dtype: DType,
    shape: Shape,
) -> None:
    """Take the gradients of some numbers."""
    accumulator.take_placed(_numbers(places), done, step.cancellation)


def _numbers(places: Array) -> list[int]:
    if np.ndim(places) != 1 or not len(places):
        raise ValueError(f"places must be a vector of some numbers, got shape {np.shape(places)}")
    return [int(place) for place in places]


def _required(num_required: Array) -> int:
    required = int(scalar(num_required, "num_required"))
    if required < 1:
        raise ValueError(f"num_required must be at least 1, got {required}")
    return required


@KERNELS.stateful("AccumulatorNumAccumulated")
def num_accumulated(ctx: KernelContext, accumulator: Accumulator) -> Array:
    """Return the number of gradients."""
    return ctx.xp.asarray(accumulator.count, np.int32)


@KERNELS.stateful("AccumulatorSetGlobalStep", answers=True)
def set_global_step(ctx: KernelContext, accumulator: Accumulator, new_global_step: Array) -> None:
    """Set the step."""
    accumulator.set_step(int(scalar(new_global_step, "new_global_step")))
