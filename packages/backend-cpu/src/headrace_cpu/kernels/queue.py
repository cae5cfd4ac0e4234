"""Kernels of queues. They hand arrays through, whatever device these are on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace.errors import ResourceError, ShapeError
from headrace.extend import DType, KernelContext, KernelTable, Shape
from headrace_cpu.kernels.numeric import Array, scalar
from headrace_cpu.queues import Element, FIFOQueue

KERNELS = KernelTable()

Done: TypeAlias = Callable[[Any], None]


@KERNELS.stateful("FIFOQueue")
def fifo_queue(
    ctx: KernelContext,
    *,
    capacity: int,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
    container: str,
    shared_name: str,
) -> FIFOQueue:
    """Find the queue of a name, made when first asked for."""
    queue = ctx.container(container).get_or_create(
        shared_name, FIFOQueue, lambda: FIFOQueue(shared_name, capacity, component_types, shapes)
    )
    queue.check_component_types(component_types)
    if (queue.capacity, queue.shapes) != (capacity, tuple(shapes)):
        raise ResourceError(
            f"queue {shared_name!r} has capacity {queue.capacity} and shapes "
            f"{', '.join(map(str, queue.shapes))}, expected {capacity} and "
            f"{', '.join(map(str, shapes))}; give one of them another shared_name"
        )
    return queue


@KERNELS.blocking("QueueEnqueue")
def enqueue(
    ctx: KernelContext, step: Any, done: Done, queue: FIFOQueue, components: list[Array]
) -> None:
    """Append an element."""
    queue.check_components(components, many=False)
    # Copies: what is fed belongs to the caller, who may change it after the step.
    element = tuple(ctx.xp.array(component) for component in components)
    queue.put([element], done, step.cancellation)


@KERNELS.blocking("QueueEnqueueMany")
def enqueue_many(
    ctx: KernelContext, step: Any, done: Done, queue: FIFOQueue, components: list[Array]
) -> None:
    """Append an element per row."""
    queue.check_components(components, many=True)
    copies = [ctx.xp.array(component) for component in components]
    rows = range(copies[0].shape[0])
    elements = [tuple(copy[row, ...] for copy in copies) for row in rows]
    queue.put(elements, done, step.cancellation)


@KERNELS.blocking("QueueDequeue")
def dequeue(
    ctx: KernelContext,
    step: Any,
    done: Done,
    queue: FIFOQueue,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
) -> None:
    """Take the oldest element."""
    queue.check_component_types(component_types)
    queue.take(1, _answer(done, lambda elements: elements[0]), step.cancellation)


@KERNELS.blocking("QueueDequeueMany")
def dequeue_many(
    ctx: KernelContext,
    step: Any,
    done: Done,
    queue: FIFOQueue,
    n: Array,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
) -> None:
    """Take the oldest elements, stacked."""
    queue.check_component_types(component_types)
    count = int(scalar(n, "n"))
    if count < 0:
        raise ValueError(f"n must be >= 0, got {count}")
    if not all(shape.is_fully_defined() for shape in queue.shapes):
        raise ShapeError(
            f"queue {queue.name!r} has components of shapes {', '.join(map(str, queue.shapes))}; "
            "elements are joined only where all dimensions are fixed: pass shapes= to the queue"
        )

    def stack(elements: list[Element]) -> Element:
        if elements:
            return tuple(ctx.xp.stack(parts) for parts in zip(*elements, strict=True))
        pairs = zip(queue.dtypes, queue.shapes, strict=True)
        return tuple(ctx.xp.empty((0, *shape.known), dtype.numpy) for dtype, shape in pairs)

    queue.take(count, _answer(done, stack), step.cancellation)


def _answer(done: Done, arrange: Callable[[list[Element]], Element]) -> Done:
    """Return the callback that hands on elements as the outputs of a node."""

    def answer(result: Any) -> None:
        if isinstance(result, BaseException):
            done(result)
            return
        try:
            outputs = arrange(result)
        except Exception as error:
            done(error)
            return
        # A node with one output yields a value, one with several a sequence.
        done(outputs[0] if len(outputs) == 1 else outputs)

    return answer


@KERNELS.stateful("QueueSize")
def size(ctx: KernelContext, queue: FIFOQueue) -> Array:
    """Return the number of elements."""
    return ctx.xp.asarray(queue.size, np.int32)


@KERNELS.stateful("QueueIsClosed")
def is_closed(ctx: KernelContext, queue: FIFOQueue) -> Array:
    """Return whether it was closed."""
    return ctx.xp.asarray(queue.is_closed)


@KERNELS.stateful("QueueClose")
def close(ctx: KernelContext, queue: FIFOQueue, *, cancel_pending_enqueues: bool) -> None:
    """Close the queue."""
    queue.close(cancel_pending_enqueues=cancel_pending_enqueues)
