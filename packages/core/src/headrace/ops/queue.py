"""Queues of tuples of tensors. A queue is a resource; its ops may wait."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, ShapeError, told
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Resource, String
from headrace.shapes import SCALAR, Shape

_QUEUED = "what passes through a queue belongs to other steps"


@op("FIFOQueue", concurrent=True, effects="reads", public="", no_gradient=_QUEUED)
def fifo_queue(
    capacity: int,
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to a first-in, first-out queue of a name in a container of the device.

    Args:
        capacity: How many elements it holds at most; -1 for any number.
        component_types: The dtype of each component of an element.
        shapes: The shape of each component, as far as fixed.
        container: The container; empty for the default one.
        shared_name: The queue's name in the container.

    Returns:
        [], a resource handle.
    """
    return _handle(capacity, component_types, shapes)


@op("PaddingFIFOQueue", concurrent=True, effects="reads", public="", no_gradient=_QUEUED)
def padding_fifo_queue(
    capacity: int,
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to a first-in, first-out queue that pads the elements that it joins.

    Args:
        capacity: How many elements it holds at most; -1 for any number.
        component_types: The dtype of each component of an element.
        shapes: The shape of each component, of known rank; open dimensions are padded.
        container: The container; empty for the default one.
        shared_name: The queue's name in the container.

    Returns:
        [], a resource handle.
    """
    free = [i for i, shape in enumerate(shapes) if shape.rank is None]
    if free:
        raise ShapeError(
            f"a queue that pads needs the rank of every component, that of component {free[0]} is "
            "unknown; use None for dimensions that differ"
        )
    return _handle(capacity, component_types, shapes)


@op("PriorityQueue", concurrent=True, effects="reads", public="", no_gradient=_QUEUED)
def priority_queue(
    capacity: int,
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to a queue from which the element of the smallest priority leaves first.

    Args:
        capacity: How many elements it holds at most; -1 for any number.
        component_types: The dtype of each component of an element; the first is the priority.
        shapes: The shape of each component, as far as fixed.
        container: The container; empty for the default one.
        shared_name: The queue's name in the container.

    Returns:
        [], a resource handle.
    """
    if component_types[:1] != (dtypes.int64,) or shapes[:1] != (SCALAR,):
        raise AttributeValueError("the first component of a priority queue must be int64[]")
    return _handle(capacity, component_types, shapes)


@op("RandomShuffleQueue", concurrent=True, effects="reads", public="", no_gradient=_QUEUED)
def random_shuffle_queue(
    capacity: int,
    min_after_dequeue: int,
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    seeds: tuple[int, int] | None,
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to a queue from which elements leave in random order.

    Args:
        capacity: How many elements it holds at most; -1 for any number.
        min_after_dequeue: How many elements stay in it until it is closed.
        component_types: The dtype of each component of an element.
        shapes: The shape of each component, as far as fixed.
        seeds: Seeds of the order; None for another one in each run.
        container: The container; empty for the default one.
        shared_name: The queue's name in the container.

    Returns:
        [], a resource handle.
    """
    if min_after_dequeue < 0 or 0 <= capacity <= min_after_dequeue:
        raise AttributeValueError(
            f"min_after_dequeue must be at least 0 and less than the capacity "
            f"{told(capacity)}, got "
            f"{told(min_after_dequeue)}"
        )
    return _handle(capacity, component_types, shapes)


def _handle(
    capacity: int, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> TensorSpec:
    if capacity < 1 and capacity != -1:
        raise AttributeValueError(
            f"capacity must be at least 1, or -1 for any number of elements, got {capacity}"
        )
    if not component_types or len(shapes) != len(component_types):
        raise AttributeValueError("a queue needs one dtype and one shape for each component")
    return TensorSpec(dtypes.resource, SCALAR)


@op("QueueSelect", concurrent=True, effects="reads", public="", no_gradient=_QUEUED)
def queue_select(handles: Sequence[Resource], index: Index) -> Spec:
    """A handle to one of several queues, chosen when the step runs.

    Args:
        handles: [] each, the queues.
        index: [], which of them.

    Returns:
        [], a resource handle. Raises when it runs if there is no queue of that number.
    """
    return TensorSpec(dtypes.resource, SCALAR)


@op("QueueEnqueue", effects="changes", blocking=True, public="", no_gradient=_QUEUED)
def queue_enqueue(handle: Resource, components: Sequence[Anything]) -> None:
    """Append an element; waits while the queue is full.

    Args:
        handle: [], the queue.
        components: The components of the element.
    """


@op("QueueEnqueueMany", effects="changes", blocking=True, public="", no_gradient=_QUEUED)
def queue_enqueue_many(handle: Resource, components: Sequence[Anything]) -> None:
    """Append one element per row; waits while the queue is full.

    Args:
        handle: [], the queue.
        components: The components of the elements, each with a leading axis of one size.
    """


@op("QueueDequeue", effects="changes", blocking=True, public="", no_gradient=_QUEUED)
def queue_dequeue(
    handle: Resource, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> list[Spec]:
    """Take the next element; waits while the queue is empty.

    Args:
        handle: [], the queue.
        component_types: The dtype of each component.
        shapes: The shape of each component, as far as fixed.

    Returns:
        The components. Raises when it runs on a queue that is closed and empty.
    """
    return [TensorSpec(d, s) for d, s in zip(component_types, shapes, strict=True)]


def _count(n: TensorSpec) -> int | None:
    """Return a number of elements, None where it is not known yet."""
    count = None if n.value is None else int(n.value)
    if count is not None and count < 0:
        raise AttributeValueError(f"n must be at least 0, got {count}")
    return count


@op("QueueDequeueMany", effects="changes", blocking=True, public="", no_gradient=_QUEUED)
def queue_dequeue_many(
    handle: Resource, n: Index, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> list[Spec]:
    """Take the next ``n`` elements, joined along a new first axis; waits until there are so many.

    Args:
        handle: [], the queue.
        n: [], how many.
        component_types: The dtype of each component.
        shapes: The shape of each component, which must be fixed except where the queue pads.

    Returns:
        The components, [n, ...]. Raises when it runs on a queue that is closed with fewer.
    """
    count = _count(n)
    pairs = zip(component_types, shapes, strict=True)
    return [TensorSpec(d, Shape([count]).concatenate(s)) for d, s in pairs]


@op("QueueDequeueUpTo", effects="changes", blocking=True, public="", no_gradient=_QUEUED)
def queue_dequeue_up_to(
    handle: Resource, n: Index, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> list[Spec]:
    """Take the next ``n`` elements, joined; fewer, but at least one, of a queue that is closed.

    Args:
        handle: [], the queue.
        n: [], how many at most.
        component_types: The dtype of each component.
        shapes: The shape of each component, which must be fixed except where the queue pads.

    Returns:
        The components, [up to n, ...]. Raises when it runs on a queue that is closed and empty.
    """
    _count(n)
    pairs = zip(component_types, shapes, strict=True)
    return [TensorSpec(d, Shape([None]).concatenate(s)) for d, s in pairs]


@op("QueueSize", effects="reads", public="", no_gradient=_QUEUED)
def queue_size(handle: Resource) -> Spec:
    """How many elements a queue holds.

    Args:
        handle: [], the queue.

    Returns:
        [], int32.
    """
    return TensorSpec(dtypes.int32, SCALAR)


@op("QueueIsClosed", effects="reads", public="", no_gradient=_QUEUED)
def queue_is_closed(handle: Resource) -> Spec:
    """Whether a queue was closed.

    Args:
        handle: [], the queue.

    Returns:
        [], bool.
    """
    return TensorSpec(dtypes.bool_, SCALAR)


@op("QueueClose", effects="changes", public="", no_gradient=_QUEUED)
def queue_close(handle: Resource, cancel_pending_enqueues: bool = False) -> None:
    """Close a queue: nothing more is enqueued, what is in it can still be taken.

    Raises when it runs on a queue that is closed, unless it cancels.

    Args:
        handle: [], the queue.
        cancel_pending_enqueues: Fail the enqueues that wait, too.
    """


@op("QueueContents", effects="reads", public="", no_gradient=_QUEUED)
def queue_contents(handle: Resource) -> Spec:
    """What is in a queue at one moment, as savers keep it.

    Elements that an unfinished dequeue holds count as in it; those of an unfinished enqueue that
    have not gone in do not.

    Args:
        handle: [], the queue.

    Returns:
        [], string.
    """
    return TensorSpec(dtypes.string, SCALAR)


@op("RestoreQueueContents", effects="changes", public="", no_gradient=_QUEUED)
def restore_queue_contents(handle: Resource, contents: String) -> None:
    """Put elements into a queue in the place of those that are there.

    Raises when it runs if they are not elements of this queue, or more than it holds.

    Args:
        handle: [], the queue.
        contents: [], string, what ``QueueContents`` yielded.
    """
    if contents.rank not in (None, 0):
        raise ShapeError(f"contents must be a scalar, got shape {contents.shape}")
