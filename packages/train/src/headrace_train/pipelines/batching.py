"""Batches of examples in the order in which they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as hr
from headrace import Shape
from headrace.extend.arguments import whole
from headrace_train.pipelines.components import Component
from headrace_train.pipelines.examples import Keep, Structure, components_of, same_structures
from headrace_train.pipelines.fullness import summarize_fullness
from headrace_train.queues import FIFOQueue, PaddingFIFOQueue
from headrace_train.runners import QueueRunner, add_queue_runner

# More threads than any machine runs for one queue.
MOST_THREADS = 1 << 16

# Makes the queue, of the component's dtypes and shapes.
QueueMaker = Callable[[list[hr.DType], list[Shape]], Any]


def batched(
    function: str,
    examples: Sequence[Any],
    structure: Structure,
    make_queue: QueueMaker,
    capacity: int,
    batch_size: Any,
    keep_input: Any,
    *,
    least: int | None = None,
    threads: int = 1,
    enqueue_many: bool,
    shapes: Sequence[Any] | None,
    allow_smaller_final_batch: bool,
    name: str | None,
) -> Any:
    """Return batches of examples that threads put into a queue.

    Args:
        function: The public function that is asked for this.
        examples: Each is enqueued by threads of its own.
        structure: How they are arranged.
        make_queue: Makes the queue.
        capacity: How many examples the queue holds.
        batch_size: How many examples a batch has.
        keep_input: Which examples are enqueued.
        least: How many examples stay in the queue; None where none have to.
        threads: How many threads enqueue each example.
        enqueue_many: Whether each tensor holds several examples.
        shapes: The shape of each component of an example; as the tensors tell if None.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too.
        name: The name of the operations.
    """
    with hr.name_scope(name, function) as scope:
        keep = Keep(keep_input, function, enqueue_many=enqueue_many)
        rows = [structure.components(example) for example in examples]
        components = components_of(rows, shapes, enqueue_many=enqueue_many, function=function)
        queue = make_queue([c.dtype for c in components], [c.shape for c in components])
        enqueues = [
            keep.enqueue(
                queue, stored(components, row, enqueue_many=enqueue_many), enqueue_many=enqueue_many
            )
            for row in rows
        ]
        add_queue_runner(
            QueueRunner(queue, enqueues * whole(threads, "num_threads", 1, MOST_THREADS))
        )
        summarize_fullness(queue, capacity, least)
        take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
        return structure.arranged(restored(components, take(batch_size, name=scope)))


def stored(
    components: Sequence[Component], parts: Sequence[Any], *, enqueue_many: bool
) -> list[hr.Tensor]:
    """Return the components of an example as they are enqueued."""
    pairs = zip(components, parts, strict=True)
    return [component.store(part, enqueue_many=enqueue_many) for component, part in pairs]


def restored(components: Sequence[Component], taken: Any) -> list[Any]:
    """Return the components of a batch from what a queue hands out."""
    parts = taken if isinstance(taken, list) else [taken]
    return [component.restore(part) for component, part in zip(components, parts, strict=True)]


def in_order(
    capacity: int, shared_name: str | None, *, dynamic_pad: bool, name: str | None = None
) -> QueueMaker:
    """Return what makes a queue that keeps the order of examples."""
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
    names = {} if name is None else {"name": name}

    def make(dtypes: list[hr.DType], shapes: list[Shape]) -> Any:
        return kind(capacity, dtypes, shapes, shared_name=shared_name, **names)

    return make


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches of those examples that are to be kept; ``batch`` has the rest.

    Args:
        tensors: An example, as for ``batch``.
        keep_input: [], bool, whether this example goes into the batches; with ``enqueue_many``
            also [n], for each of the examples.
        batch_size: How many examples a batch has.
        num_threads: How many threads evaluate ``tensors``.
        capacity: How many examples wait at most.
        enqueue_many: Whether ``tensors`` are several examples.
        shapes: The shape of each tensor of an example.
        dynamic_pad: Whether tensors may have other shapes in each example.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        As ``batch``.

    Raises:
        DTypeError: if ``keep_input`` is not bool.
        ShapeError: if it is not a scalar, and not a vector with ``enqueue_many``; and as
            ``batch``.
    """
    return batched(
        "batch",
        [tensors],
        Structure.of(tensors, "batch"),
        in_order(capacity, shared_name, dynamic_pad=dynamic_pad),
        capacity,
        batch_size,
        keep_input,
        threads=num_threads,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        name=name,
    )


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches of examples, which threads evaluate and put into a queue.

    The threads are those of a ``QueueRunner`` in the graph's collection ``QUEUE_RUNNERS``, which
    ``hr.train.start_queue_runners`` starts. They end when the source of the examples does, with
    ``OutOfRangeError``; batches then raise that, once the queue has too few examples.

    Args:
        tensors: An example: a list, tuple or dict of tensors and sparse tensors. Each thread
            evaluates it again and again.
        batch_size: How many examples a batch has, an integer or a scalar tensor.
        num_threads: How many threads evaluate ``tensors``. The order of the examples is that of
            the source with one thread only.
        capacity: How many examples wait at most.
        enqueue_many: Whether ``tensors`` are several examples, one to each row.
        shapes: The shape of each tensor of an example; as far as the tensors tell if None.
        dynamic_pad: Whether tensors may have other shapes in each example, of one rank. In a batch
            they get zeros, or empty strings, at their ends, up to the largest.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too; it is dropped
            otherwise.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        Tensors [batch_size, ...] arranged as in ``tensors``: a dict, a list, or the only tensor of
        a list of one. The first dimension is not known with ``allow_smaller_final_batch``. Sparse
        tensors get one dimension more, and the largest shape in the batch.

    Raises:
        AttributeValueError: if there are no tensors, or other numbers of shapes and tensors.
        ShapeError: if the shape of a tensor is not known, and ``dynamic_pad`` is not set.
    """
    return maybe_batch(
        tensors,
        True,
        batch_size,
        num_threads,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches of those examples of several sources that are to be kept.

    Args:
        tensors_list: Examples, as for ``batch_join``.
        keep_input: [] or [n], bool, as for ``maybe_batch``; the same for all of them.
        batch_size: How many examples a batch has.
        capacity: How many examples wait at most.
        enqueue_many: Whether each of ``tensors_list`` are several examples.
        shapes: The shape of each tensor of an example.
        dynamic_pad: Whether tensors may have other shapes in each example.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        As ``batch``.

    Raises:
        DTypeError: if ``keep_input`` is not bool.
        ShapeError: if it is not a scalar, and not a vector with ``enqueue_many``; and as
            ``batch_join``.
    """
    return batched(
        "batch_join",
        tensors_list,
        same_structures(tensors_list, "batch_join"),
        in_order(capacity, shared_name, dynamic_pad=dynamic_pad),
        capacity,
        batch_size,
        keep_input,
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
        name=name,
    )


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Sequence[Any] | None = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Return batches of the examples of several sources, each evaluated by a thread of its own.

    Several readers thus work at once, each on a file of its own; ``batch`` has the rest.

    Args:
        tensors_list: Examples that have the same structure, dtypes and shapes.
        batch_size: How many examples a batch has.
        capacity: How many examples wait at most.
        enqueue_many: Whether each of ``tensors_list`` are several examples.
        shapes: The shape of each tensor of an example.
        dynamic_pad: Whether tensors may have other shapes in each example.
        allow_smaller_final_batch: Whether what is left at the end is a batch, too.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        As ``batch``.

    Raises:
        AttributeValueError: if there are no examples, or their structures differ.
        DTypeError: if their dtypes differ.
        ShapeError: if their shapes differ; and as ``batch``.
    """
    return maybe_batch_join(
        tensors_list,
        True,
        batch_size,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )
