"""Queues of tuples of tensors. A queue is a resource; its ops may wait."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Resource
from headrace.shapes import SCALAR, Shape

_QUEUED = "what passes through a queue belongs to other steps"


@op("FIFOQueue", stateful=True, public="", no_gradient=_QUEUED)
def fifo_queue(
    capacity: int,
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to a first-in, first-out queue of a name in a container of the device.

    Args:
        capacity: How many elements it holds at most.
        component_types: The dtype of each component of an element.
        shapes: The shape of each component, as far as fixed.
        container: The container; empty for the default one.
        shared_name: The queue's name in the container.

    Returns:
        [], a resource handle.
    """
    if capacity < 1:
        raise AttributeValueError(f"capacity must be >= 1, got {capacity}")
    if not component_types or len(shapes) != len(component_types):
        raise AttributeValueError("a queue needs one dtype and one shape for each component")
    return TensorSpec(dtypes.resource, SCALAR)


@op("QueueEnqueue", stateful=True, blocking=True, public="", no_gradient=_QUEUED)
def queue_enqueue(handle: Resource, components: Sequence[Anything]) -> None:
    """Append an element; waits while the queue is full.

    Args:
        handle: [], the queue.
        components: The components of the element.
    """


@op("QueueEnqueueMany", stateful=True, blocking=True, public="", no_gradient=_QUEUED)
def queue_enqueue_many(handle: Resource, components: Sequence[Anything]) -> None:
    """Append one element per row; waits while the queue is full.

    Args:
        handle: [], the queue.
        components: The components of the elements, each with a leading axis of one size.
    """


@op("QueueDequeue", stateful=True, blocking=True, public="", no_gradient=_QUEUED)
def queue_dequeue(
    handle: Resource, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> list[Spec]:
    """Take the oldest element; waits while the queue is empty.

    Args:
        handle: [], the queue.
        component_types: The dtype of each component.
        shapes: The shape of each component, as far as fixed.

    Returns:
        The components. Raises when it runs on a queue that is closed and empty.
    """
    return [TensorSpec(d, s) for d, s in zip(component_types, shapes, strict=True)]


@op("QueueDequeueMany", stateful=True, blocking=True, public="", no_gradient=_QUEUED)
def queue_dequeue_many(
    handle: Resource, n: Index, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> list[Spec]:
    """Take the ``n`` oldest elements, joined along a new first axis; waits until there are so many.

    Args:
        handle: [], the queue.
        n: [], how many.
        component_types: The dtype of each component.
        shapes: The shape of each component, which must be fixed.

    Returns:
        The components, [n, ...]. Raises when it runs on a queue that is closed with fewer.
    """
    count = None if n.value is None else int(n.value)
    pairs = zip(component_types, shapes, strict=True)
    return [TensorSpec(d, Shape([count]).concatenate(s)) for d, s in pairs]


@op("QueueSize", stateful=True, public="", no_gradient=_QUEUED)
def queue_size(handle: Resource) -> Spec:
    """How many elements a queue holds.

    Args:
        handle: [], the queue.

    Returns:
        [], int32.
    """
    return TensorSpec(dtypes.int32, SCALAR)


@op("QueueIsClosed", stateful=True, public="", no_gradient=_QUEUED)
def queue_is_closed(handle: Resource) -> Spec:
    """Whether a queue was closed.

    Args:
        handle: [], the queue.

    Returns:
        [], bool.
    """
    return TensorSpec(dtypes.bool_, SCALAR)


@op("QueueClose", stateful=True, public="", no_gradient=_QUEUED)
def queue_close(handle: Resource, cancel_pending_enqueues: bool = False) -> None:
    """Close a queue: nothing more is enqueued, what is in it can still be taken.

    Args:
        handle: [], the queue.
        cancel_pending_enqueues: Fail the enqueues that wait, too.
    """
