"""Input producers: queues that hold the rows of tensors, epoch after epoch."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Operation, Shape, Tensor
from headrace.errors import AttributeValueError, ShapeError, SymbolicTensorError, shown, told
from headrace.extend.arguments import items, whole
from headrace_train.pipelines.fullness import summarize_fullness
from headrace_train.queues import FIFOQueue
from headrace_train.queues.arguments import room
from headrace_train.runners import QueueRunner, add_queue_runner


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """Return a tensor that can be evaluated so many times and then raises ``OutOfRangeError``.

    The count is a local variable ``epochs``, which ``hr.local_variables_initializer()`` starts.

    Args:
        tensor: The tensor.
        num_epochs: How many times, at least 1; ``tensor`` itself is returned if None.
        name: The name of the operations.

    Raises:
        AttributeValueError: if ``num_epochs`` is less than 1.
    """
    if num_epochs is None:
        return tensor
    if whole(num_epochs, "num_epochs") <= 0:
        raise AttributeValueError(f"num_epochs must be >= 1, got {told(num_epochs)}")
    with hr.name_scope(name, "limit_epochs") as scope:
        epochs = hr.Variable(
            hr.constant(0, hr.int64),
            trainable=False,
            collections=[hr.GraphKeys.LOCAL_VARIABLES],
            name="epochs",
        )
        with hr.control_dependencies([epochs.count_up_to(num_epochs)]):
            return hr.identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> FIFOQueue:
    """Return a queue into which a thread puts the rows of a tensor, again and again.

    The thread is one of a ``QueueRunner`` that this adds to the graph's collection
    ``QUEUE_RUNNERS``; ``hr.train.start_queue_runners`` starts it.

    Args:
        input_tensor: [n, ...], the rows; evaluated once in each epoch.
        element_shape: The shape of a row, where that of ``input_tensor`` does not tell.
        num_epochs: How many times each row comes; dequeuing raises ``OutOfRangeError`` after
            that. Without end if None; otherwise counted by a local variable, which
            ``hr.local_variables_initializer()`` starts.
        shuffle: Whether each epoch has an order of its own.
        seed: Decides these orders.
        capacity: How many rows the queue holds.
        shared_name: The name under which sessions share the queue.
        summary_name: The name of a summary of how full the queue is; none is made if None.
        name: The name of the queue.
        cancel_op: Runs when the threads are asked to stop; the queue is closed if None.

    Raises:
        AttributeValueError: if there are no rows, and no end.
        ShapeError: if the shape of a row is not known.
    """
    with hr.name_scope(name, "input_producer"):
        rows = hr.convert_to_tensor(input_tensor, name="input_tensor")
        if rows.shape.rank == 0:
            raise ShapeError(f"input_producer takes the rows of a tensor, got the scalar {rows!r}")
        row_shape = Shape(None) if rows.shape.rank is None else rows.spec.shape[1:]
        row_shape = row_shape.merge_with(element_shape)
        if not row_shape.is_fully_defined():
            raise ShapeError(
                f"the shape of a row of {shown(rows)} is known as {row_shape} only; pass "
                "element_shape="
            )
        if num_epochs is None and rows.shape.dims is not None and rows.shape[0] == 0:
            # Its thread would go through nothing for ever, and whoever takes a row would wait.
            raise AttributeValueError(
                f"{shown(rows)} has no rows to go through again and again; with num_epochs=1 the "
                "input ends at once"
            )
        if shuffle:
            rows = hr.random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(
            capacity,
            [rows.dtype],
            [row_shape],
            shared_name=shared_name,
            name="fifo_queue" if name is None else name,
        )
        fill = queue.enqueue_many([rows])
        add_queue_runner(QueueRunner(queue, [fill], cancel_op=cancel_op))
        if summary_name is not None:
            summarize_fullness(queue, capacity, name=summary_name)
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Operation | None = None,
) -> FIFOQueue:
    """Return a queue of strings, such as names of files, as ``input_producer`` does.

    Args:
        string_tensor: [n], string. If there is none, the thread that fills the queue ends with
            an ``InvalidArgumentError``.
        num_epochs: How many times each string comes; without end if None.
        shuffle: Whether each epoch has an order of its own.
        seed: Decides these orders.
        capacity: How many strings the queue holds.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.
        cancel_op: Runs when the threads are asked to stop; the queue is closed if None.

    Raises:
        AttributeValueError: if ``string_tensor`` is an empty list.
        DTypeError: if it does not hold strings.
    """
    nothing = "string_input_producer needs at least one string, got none"
    if isinstance(string_tensor, list | tuple) and not string_tensor:
        raise AttributeValueError(nothing)
    with hr.name_scope(name, "input_producer") as scope:
        strings = hr.convert_to_tensor(string_tensor, hr.string)
        with hr.control_dependencies([hr.Assert(hr.greater(hr.size(strings), 0), [nothing])]):
            strings = hr.identity(strings)
        return input_producer(
            strings,
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            summary_name=f"fraction_of_{room(whole(capacity, 'capacity'))}_full",
            name=scope,
            cancel_op=cancel_op,
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """Return a queue of the whole numbers below a limit, as ``input_producer`` does.

    Args:
        limit: [], the limit.
        num_epochs: How many times each number comes; without end if None.
        shuffle: Whether each epoch has an order of its own.
        seed: Decides these orders.
        capacity: How many numbers the queue holds.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.
    """
    with hr.name_scope(name, "input_producer") as scope:
        numbers = hr.range(limit)
        return input_producer(
            numbers,
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            summary_name=f"fraction_of_{room(whole(capacity, 'capacity'))}_full",
            name=scope,
        )


def slice_input_producer(
    tensor_list: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Return one row of each of several tensors, another one in each step.

    A queue, as ``range_input_producer`` makes it, holds the numbers of the rows.

    Args:
        tensor_list: Tensors [n, ...] of one leading size.
        num_epochs: How many times each row comes; ``OutOfRangeError`` after that. Without end if
            None.
        shuffle: Whether each epoch has an order of its own.
        seed: Decides these orders.
        capacity: How many numbers of rows the queue holds.
        shared_name: The name under which sessions share the queue.
        name: The name of the operations.

    Returns:
        A list of a row of each tensor, [...].

    Raises:
        AttributeValueError: if ``tensor_list`` is empty.
        SymbolicTensorError: if it is one tensor instead of a list.
    """
    if isinstance(tensor_list, Tensor):
        raise SymbolicTensorError(
            f"slice_input_producer takes a list of tensors, got {shown(tensor_list)}; pass [tensor]"
        )
    with hr.name_scope(name, "input_producer"):
        tensors = [hr.convert_to_tensor(tensor) for tensor in items(tensor_list, "tensor_list")]
        if not tensors:
            raise AttributeValueError("slice_input_producer needs at least one tensor")
        for tensor in tensors:
            if tensor.shape.rank == 0:
                raise ShapeError(f"slice_input_producer takes rows, got the scalar {tensor!r}")
        queue = range_input_producer(
            hr.shape(tensors[0])[0], num_epochs, shuffle, seed, capacity, shared_name
        )
        index = queue.dequeue()
        return [hr.gather(tensor, index) for tensor in tensors]
