"""Kernels of staging areas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import DType, Shape
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.kernels.numeric import Array, scalar
from headrace_cpu.queues.staging import StagingArea

KERNELS = KernelTable()

KERNELS.resource("StagingArea")(StagingArea)


@KERNELS.blocking("Stage")
def stage(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    area: StagingArea,
    components: list[Array],
) -> None:
    """Append an element."""
    area.elements.check(components, many=False)
    area.put([area.elements.one(ctx.xp, components)], done, step.cancellation)


@KERNELS.blocking("Unstage")
def unstage(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    area: StagingArea,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
) -> None:
    """Take the oldest element."""
    area.elements.check_dtypes(component_types)
    answer = _outputs(ctx, area, done)
    area.take(
        1,
        lambda found: answer(found if isinstance(found, BaseException) else found[0]),
        step.cancellation,
    )


@KERNELS.blocking("StagePeek")
def peek(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    area: StagingArea,
    index: Array,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
) -> None:
    """Look at an element."""
    area.elements.check_dtypes(component_types)
    place = int(scalar(index, "index"))
    if place < 0:
        raise ValueError(f"index must be at least 0, got {place}")
    area.peek(place, _outputs(ctx, area, done), step.cancellation)


def _outputs(
    ctx: KernelContext, area: StagingArea, done: Callable[[Any], None]
) -> Callable[[Any], None]:
    """Return the callback that hands on an element as the outputs of a node."""

    def answer(element: Any) -> None:
        if isinstance(element, BaseException):
            done(element)
            return
        arrays = area.elements.arrays(ctx.xp, element)
        done(arrays[0] if len(arrays) == 1 else arrays)

    return answer


@KERNELS.stateful("StageSize")
def size(ctx: KernelContext, area: StagingArea) -> Array:
    """Return the number of elements."""
    return ctx.xp.asarray(area.size, np.int32)


@KERNELS.stateful("StageClear", answers=True)
def clear(ctx: KernelContext, area: StagingArea) -> None:
    """Drop all elements."""
    area.clear()
