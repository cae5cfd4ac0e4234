"""Batches of examples that are alike, such as sequences of about one length."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace import Operation, Shape, Tensor
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    DTypeError,
    OutOfRangeError,
    shown,
    told,
)
from headrace.extend.arguments import items, text, whole
from headrace_train import summary
from headrace_train.pipelines.batching import MOST_THREADS, in_order, restored, stored
from headrace_train.pipelines.examples import Keep, Structure, components_of
from headrace_train.pipelines.fullness import summarize_fullness
from headrace_train.queues import PaddingFIFOQueue, QueueBase
from headrace_train.queues.arguments import room
from headrace_train.runners import QueueRunner, add_queue_runner

_ENDS = (OutOfRangeError, CancelledError)


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Return batches of examples of one bucket each.

    Every bucket has a queue of its own. Threads put each example into the queue of its bucket;
    other threads, one for each bucket, take a batch whenever there are enough, and put it into a
    queue of batches. When the source of the examples ends, what is left in the buckets is dropped,
    or makes smaller batches with ``allow_smaller_final_batch``; then ``OutOfRangeError`` is raised.

    Args:
        tensors: An example, as for ``hr.train.batch``.
        which_bucket: [], int32, the bucket of the example, from 0 to ``num_buckets`` - 1. Another
            number ends the threads with an ``InvalidArgumentError``.
        batch_size: How many examples a batch has: an integer or a scalar tensor, or a list of one
            for each bucket.
        num_buckets: How many buckets there are.
        num_threads: How many threads evaluate ``tensors``.
        capacity: How many batches wait at most, and how many examples in each bucket.
        bucket_capacities: How many examples wait in each bucket at most; ``capacity`` if None.
        shapes: The shape of each tensor of an example; as far as the tensors tell if None.
        dynamic_pad: Whether tensors may have other shapes in each example, which get zeros, or
            empty strings, at their ends up to the largest in a batch.
        allow_smaller_final_batch: Whether what is left in a bucket at the end is a batch, too.
        keep_input: [], bool, whether the example goes into a bucket at all.
        shared_name: The name under which sessions share the queues.
        name: The name of the operations.

    Returns:
        The bucket of the batch, [], int32; and the batch, as ``hr.train.batch`` returns it.

    Raises:
        AttributeValueError: if there are no tensors or buckets, or other numbers of sizes or
            capacities than of buckets.
        ShapeError: if the shape of a tensor is not known, and ``dynamic_pad`` is not set.
    """
    threads = whole(num_threads, "num_threads", 1, MOST_THREADS)
    if shared_name is not None:
        text(shared_name, "shared_name")
    sizes = _one_each(batch_size, num_buckets, "batch_size")
    capacities = _one_each(
        capacity if bucket_capacities is None else items(bucket_capacities, "bucket_capacities"),
        num_buckets,
        "bucket_capacities",
    )
    structure = Structure.of(tensors, "bucket")
    with hr.name_scope(name, "bucket"):
        keep = Keep(keep_input, "bucket", enqueue_many=False)
        parts = structure.components(tensors)
        components = components_of([parts], shapes, enqueue_many=False, function="bucket")
        buckets = [
            in_order(
                capacities[i],
                None if shared_name is None else f"{shared_name}_{i}",
                dynamic_pad=dynamic_pad,
                name=f"bucket_queue_{i}",
            )([c.dtype for c in components], [c.shape for c in components])
            for i in range(num_buckets)
        ]
        # Its elements are whole batches. It pads none, but takes batches of different shapes.
        size = _static_size(batch_size, allow_smaller_final_batch)
        batches = PaddingFIFOQueue(
            capacity,
            [hr.int32, *buckets[0].dtypes],
            [
                Shape([]),
                *(Shape([size]).concatenate(shape) for shape in buckets[0].shapes),
            ],
            shared_name=shared_name,
            name="top_queue",
        )
        which = hr.convert_to_tensor(which_bucket, hr.int32, name="which_bucket")
        fill = keep.enqueue(
            QueueBase.from_list(which, buckets),
            stored(components, parts, enqueue_many=False),
            enqueue_many=False,
        )
        _add_runners(
            buckets,
            batches,
            [fill] * threads,
            [
                _move(queue, i, sizes[i], batches, allow_smaller_final_batch)
                for i, queue in enumerate(buckets)
            ],
        )
        for queue in buckets:
            summary.scalar(f"bucket/{queue.name}/size", hr.cast(batches.size(), hr.float32))
        full = f"bucket/{batches.name}/fraction_of_{room(whole(capacity, 'capacity'))}_full"
        summarize_fullness(batches, capacity, name=full)
        number, *taken = batches.dequeue(name="dequeue_top")
        return number, structure.arranged(restored(components, taken))


def _one_each(given: Any, count: int, what: str) -> list[Any]:
    """Return a value for each bucket, of a list of them or of the one for all."""
    if whole(count, "num_buckets", most=MOST_THREADS) < 1:
        raise AttributeValueError(f"bucket needs at least one bucket, got num_buckets={count}")
    if not isinstance(given, list | tuple):
        return [given] * count
    if len(given) != count:
        raise AttributeValueError(
            f"bucket: {what} needs one for each of {count} buckets, got {len(given)}"
        )
    return list(given)


def _static_size(batch_size: Any, smaller: bool) -> int | None:
    """Return the size that all batches have, None where it is not known."""
    if smaller or isinstance(batch_size, list | tuple):
        return None
    value = hr.convert_to_tensor(batch_size, hr.int32, name="batch_size").spec.value
    return None if value is None else int(value)


def _move(queue: Any, number: int, size: Any, batches: Any, smaller: bool) -> Operation:
    """Return what takes a batch out of a bucket and puts it into the queue of batches."""
    take = queue.dequeue_up_to if smaller else queue.dequeue_many
    taken = take(size, name=f"read_bucket_{number}")
    taken = taken if isinstance(taken, list) else [taken]
    moved: Operation = batches.enqueue(
        [hr.constant(number, hr.int32), *taken], name=f"enqueue_from_bucket_{number}"
    )
    return moved


def _add_runners(
    buckets: Sequence[Any], batches: Any, fills: list[Any], moves: list[Operation]
) -> None:
    """Add the threads, those that fill the buckets and those that empty them.

    The end of the source closes the buckets; when all of them are empty, the queue of batches is
    closed.
    """
    add_queue_runner(
        QueueRunner(
            buckets[0],
            moves,
            close_op=batches.close(),
            cancel_op=batches.close(cancel_pending_enqueues=True),
            queue_closed_exception_types=_ENDS,
        )
    )
    add_queue_runner(
        QueueRunner(
            batches,
            fills,
            close_op=hr.group(*(queue.close() for queue in buckets)),
            cancel_op=hr.group(*(q.close(cancel_pending_enqueues=True) for q in buckets)),
            queue_closed_exception_types=_ENDS,
        )
    )


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """Return batches of examples of about one length, so that little of a batch is padding.

    There is one bucket more than there are boundaries: the first takes lengths below the first
    boundary, each other one those from its boundary up to the next.

    Args:
        input_length: [], int32, the length of the example.
        tensors: An example, as for ``hr.train.batch``.
        batch_size: How many examples a batch has, as for ``bucket``.
        bucket_boundaries: Lengths, in increasing order.
        num_threads: How many threads evaluate ``tensors``.
        capacity: How many batches wait at most, and how many examples in each bucket.
        bucket_capacities: How many examples wait in each bucket at most; ``capacity`` if None.
        shapes: The shape of each tensor of an example.
        dynamic_pad: Whether tensors may have other shapes in each example, as for ``bucket``.
        allow_smaller_final_batch: Whether what is left in a bucket at the end is a batch, too.
        keep_input: [], bool, whether the example goes into a bucket at all.
        shared_name: The name under which sessions share the queues.
        name: The name of the operations.

    Returns:
        The lengths of the examples in the batch, [batch_size], int32; and the batch: a dict, or a
        list, also of one tensor.

    Raises:
        DTypeError: if ``bucket_boundaries`` is no list of integers.
        AttributeValueError: if it is empty or not increasing; and as ``bucket``.
        ShapeError: as ``bucket``.
    """
    boundaries = _checked_boundaries(bucket_boundaries)
    structure = Structure.of(tensors, "bucket_by_sequence_length")
    with hr.name_scope(name, "bucket_by_sequence_length"):
        length = hr.convert_to_tensor(input_length, hr.int32, name="input_length")
        below = hr.less_equal(hr.constant(boundaries, hr.int32), length)
        which = hr.reduce_sum(hr.cast(below, hr.int32))
        _, batch = bucket(
            [length, *structure.components(tensors)],
            which,
            batch_size,
            len(boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [[], *items(shapes, "shapes")],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        lengths, *taken = batch
        return lengths, taken if structure.keys is None else structure.arranged(taken)


def _checked_boundaries(boundaries: Any) -> list[int]:
    if not isinstance(boundaries, list | tuple):
        raise DTypeError(f"bucket_boundaries must be a list of integers, got {shown(boundaries)}")
    if not boundaries:
        raise AttributeValueError("bucket_boundaries must hold at least one length")
    for boundary in boundaries:
        if not isinstance(boundary, int):
            raise DTypeError(f"bucket_boundaries must be integers, got {shown(boundary)}")
    for lower, upper in itertools.pairwise(boundaries):
        if lower >= upper:
            raise AttributeValueError(
                f"bucket_boundaries must increase, got {told(lower)} before {told(upper)}"
            )
    return list(boundaries)
