"""Kernels of queues. They hand arrays through, whatever device these are on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace import DType, Shape
from headrace.errors import InvalidArgumentError
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.kernels.numeric import Array, scalar
from headrace_cpu.queues import (
    Element,
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    Queue,
    RandomShuffleQueue,
)
from headrace_cpu.queues.contents import Contents, decode, encode

KERNELS = KernelTable()

Done: TypeAlias = Callable[[Any], None]


KERNELS.resource("FIFOQueue")(FIFOQueue)
KERNELS.resource("PaddingFIFOQueue")(PaddingFIFOQueue)
KERNELS.resource("PriorityQueue")(PriorityQueue)
KERNELS.resource("RandomShuffleQueue")(RandomShuffleQueue)


@KERNELS.stateful("QueueSelect")
def select(ctx: KernelContext, handles: list[Queue], index: Array) -> Queue:
    """Return one of several queues."""
    place = int(scalar(index, "index"))
    if not 0 <= place < len(handles):
        raise IndexError(f"there is no queue {place} in a list of {len(handles)}")
    return handles[place]


@KERNELS.blocking("QueueEnqueue")
def enqueue(
    ctx: KernelContext, step: Any, done: Done, queue: Queue, components: list[Array]
) -> None:
    """Append an element."""
    queue.elements.check(components, many=False)
    queue.put(queue.held(ctx.xp, components, many=False), done, step.cancellation)


@KERNELS.blocking("QueueEnqueueMany")
def enqueue_many(
    ctx: KernelContext, step: Any, done: Done, queue: Queue, components: list[Array]
) -> None:
    """Append an element per row."""
    queue.elements.check(components, many=True)
    queue.put(queue.held(ctx.xp, components, many=True), done, step.cancellation)


@KERNELS.blocking("QueueDequeue")
def dequeue(
    ctx: KernelContext,
    step: Any,
    done: Done,
    queue: Queue,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
) -> None:
    """Take the next element."""
    queue.elements.check_dtypes(component_types)
    answer = _answer(done, lambda elements: queue.arrays(ctx.xp, elements[0]))
    queue.collect(1, answer, step.cancellation)


@KERNELS.blocking("QueueDequeueMany")
def dequeue_many(
    ctx: KernelContext,
    step: Any,
    done: Done,
    queue: Queue,
    n: Array,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
) -> None:
    """Take the next elements, joined."""
    _take(ctx, step, done, queue, n, component_types, partial=False)


@KERNELS.blocking("QueueDequeueUpTo")
def dequeue_up_to(
    ctx: KernelContext,
    step: Any,
    done: Done,
    queue: Queue,
    n: Array,
    *,
    component_types: Sequence[DType],
    shapes: Sequence[Shape],
) -> None:
    """Take the next elements, joined; fewer where a closed queue has no more."""
    _take(ctx, step, done, queue, n, component_types, partial=True)


def _take(
    ctx: KernelContext,
    step: Any,
    done: Done,
    queue: Queue,
    n: Array,
    component_types: Sequence[DType],
    *,
    partial: bool,
) -> None:
    queue.elements.check_dtypes(component_types)
    count = int(scalar(n, "n"))
    if count < 0:
        raise ValueError(f"n must be >= 0, got {count}")
    queue.check_joinable()
    answer = _answer(done, lambda elements: queue.join(ctx.xp, elements))
    queue.collect(count, answer, step.cancellation, partial=partial)


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
def size(ctx: KernelContext, queue: Queue) -> Array:
    """Return the number of elements."""
    return ctx.xp.asarray(queue.size, np.int32)


@KERNELS.stateful("QueueIsClosed")
def is_closed(ctx: KernelContext, queue: Queue) -> Array:
    """Return whether it was closed."""
    return ctx.xp.asarray(queue.is_closed)


@KERNELS.stateful("QueueClose", answers=True)
def close(ctx: KernelContext, queue: Queue, *, cancel_pending_enqueues: bool) -> None:
    """Close the queue."""
    queue.finish(cancel_pending_enqueues=cancel_pending_enqueues)


@KERNELS.stateful("QueueContents")
def contents(ctx: KernelContext, queue: Queue) -> Array:
    """Return what is in the queue."""
    _check_queue(queue)
    found = queue.contents()
    elements = found.elements
    if ctx.xp is not np:
        elements = [tuple(map(ctx.device.to_host, element)) for element in elements]
    made = np.empty((), object)
    made[()] = encode(Contents(elements, found.closed, found.drawn), queue.dtypes)
    return made


@KERNELS.stateful("RestoreQueueContents", answers=True)
def restore_contents(ctx: KernelContext, queue: Queue, contents: Array) -> None:
    """Put other elements in the place of those that are there."""
    _check_queue(queue)
    data = scalar(contents, "contents")
    found = decode(data, queue.elements.label, queue.dtypes)
    queue.replace(found, ctx.xp)


def _check_queue(queue: Any) -> None:
    if not isinstance(queue, Queue):
        raise InvalidArgumentError(f"expected a queue, got a {type(queue).__name__}")
