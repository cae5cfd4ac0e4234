"""Batches of examples in random order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace import Shape
from headrace.errors import AttributeValueError, shown
from headrace.extend.arguments import whole
from headrace_train.pipelines.batching import QueueMaker, batched
from headrace_train.pipelines.examples import Structure, same_structures
from headrace_train.queues import RandomShuffleQueue


def _shuffled(
    function: str,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None,
    shared_name: str | None,
) -> QueueMaker:
    """Return what makes a queue from which examples come in random order.

    Raises:
        AttributeValueError: if there is no room beside those that have to stay.
    """
    if whole(capacity, "capacity") <= whole(min_after_dequeue, "min_after_dequeue"):
        raise AttributeValueError(
            f"{function}: capacity must be more than min_after_dequeue, got {shown(capacity)} and "
            f"{shown(min_after_dequeue)}"
        )

    def make(dtypes: list[hr.DType], shapes: list[Shape]) -> Any:
        return RandomShuffleQueue(
            capacity, min_after_dequeue, dtypes, shapes, seed=seed, shared_name=shared_name
        )

    return make


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches, in random order, of those examples that are to be kept.

    Args:
        tensors: An example, as for ``batch``.
        batch_size: How many examples a batch has.
        capacity: How many examples wait at most, more than ``min_after_dequeue``.
        min_after_dequeue: How many examples stay in the queue, as for ``shuffle_batch``.
        keep_input: [] or [n], bool, as for ``maybe_batch``.
        num_threads: How many threads evaluate ``tensors``.
        seed: Seeds what is drawn, as for ``shuffle_batch``.
        enqueue_many: Whether ``tensors`` are several examples.
        shapes: The shape of each tensor of an example.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        As ``batch``.

    Raises:
        AttributeValueError: if ``capacity`` is too small; and as ``batch``.
        DTypeError: if ``keep_input`` is not bool.
        ShapeError: if it is not a scalar, and not a vector with ``enqueue_many``.
    """
    return batched(
        "shuffle_batch",
        [tensors],
        Structure.of(tensors, "shuffle_batch"),
        _shuffled("shuffle_batch", capacity, min_after_dequeue, seed, shared_name),
        capacity,
        batch_size,
        keep_input,
        least=min_after_dequeue,
        threads=num_threads,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        name=name,
    )


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches of examples in random order, which threads evaluate and put into a queue.

    Each example of a batch is drawn from all that are in the queue, so that the more of them stay,
    the better they are mixed; ``batch`` has the rest.

    Args:
        tensors: An example: a list, tuple or dict of tensors and sparse tensors of known shapes.
        batch_size: How many examples a batch has, an integer or a scalar tensor.
        capacity: How many examples wait at most, more than ``min_after_dequeue``: one batch for
            each thread, and some.
        min_after_dequeue: How many examples stay in the queue at least when a batch is taken, until
            the source ends.
        num_threads: How many threads evaluate ``tensors``.
        seed: Seeds what is drawn. The order is also that in which examples come, and depends on how
            many have come when a batch is taken.
        enqueue_many: Whether ``tensors`` are several examples, one to each row.
        shapes: The shape of each tensor of an example; as the tensors tell if None.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too; it is dropped
            otherwise.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        As ``batch``.

    Raises:
        AttributeValueError: if ``capacity`` is too small; and as ``batch``.
        ShapeError: if the shape of a tensor is not known.
    """
    return maybe_shuffle_batch(
        tensors,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        num_threads,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches, in random order, of those examples of several sources that are to be kept.

    Args:
        tensors_list: Examples, as for ``batch_join``.
        batch_size: How many examples a batch has.
        capacity: How many examples wait at most, more than ``min_after_dequeue``.
        min_after_dequeue: How many examples stay in the queue, as for ``shuffle_batch``.
        keep_input: [] or [n], bool, as for ``maybe_batch``; the same for all of them.
        seed: Seeds what is drawn, as for ``shuffle_batch``.
        enqueue_many: Whether each of ``tensors_list`` are several examples.
        shapes: The shape of each tensor of an example.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        As ``batch``.

    Raises:
        AttributeValueError: if ``capacity`` is too small; and as ``batch_join``.
        DTypeError: if ``keep_input`` is not bool.
        ShapeError: if it is not a scalar, and not a vector with ``enqueue_many``.
    """
    return batched(
        "shuffle_batch_join",
        tensors_list,
        same_structures(tensors_list, "shuffle_batch_join"),
        _shuffled("shuffle_batch_join", capacity, min_after_dequeue, seed, shared_name),
        capacity,
        batch_size,
        keep_input,
        least=min_after_dequeue,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        name=name,
    )


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches, in random order, of the examples of several sources.

    Each source is evaluated by a thread of its own, as ``batch_join`` does.

    Args:
        tensors_list: Examples that have the same structure, dtypes and shapes.
        batch_size: How many examples a batch has.
        capacity: How many examples wait at most, more than ``min_after_dequeue``.
        min_after_dequeue: How many examples stay in the queue, as for ``shuffle_batch``.
        seed: Seeds what is drawn, as for ``shuffle_batch``.
        enqueue_many: Whether each of ``tensors_list`` are several examples.
        shapes: The shape of each tensor of an example.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        As ``batch``.

    Raises:
        AttributeValueError: if ``capacity`` is too small; and as ``batch_join``.
        DTypeError: if the dtypes of the examples differ.
        ShapeError: if their shapes differ or are not known.
    """
    return maybe_shuffle_batch_join(
        tensors_list,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )
