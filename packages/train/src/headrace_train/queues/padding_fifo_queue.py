"""First-in, first-out queues of elements of different sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from headrace.errors import AttributeValueError, shown
from headrace.extend.primitives import padding_fifo_queue
from headrace_train.queues.arguments import components, handle, room
from headrace_train.queues.queue_base import QueueBase


@final
class PaddingFIFOQueue(QueueBase):
    """A first-in, first-out queue that joins elements of different sizes.

    ``dequeue_many`` and ``dequeue_up_to`` pad each component at its ends to the largest of those
    that they join: numbers with zeros, strings with empty ones.
    """

    pads = True

    def __init__(
        self,
        capacity: int | None,
        dtypes: Any,
        shapes: Any,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        """Make a queue in the default graph.

        Args:
            capacity: How many elements it holds at most, at least 1; -1 or None for any.
            dtypes: The dtype of each component, or of the only one.
            shapes: A list with the shape of each component, of known rank; a dimension that
                differs between elements is None.
            names: The name of each component, or of the only one; elements then are dicts.
            shared_name: Its name in its container; the queue's own name if None. Queues of one
                shared name in a named container or a cluster are one queue.
            name: The queue's name; made unique.

        Raises:
            AttributeValueError: if the numbers of dtypes, shapes and names differ, or ``shapes``
                is no list of shapes.
            ShapeError: if the rank of a component is unknown.
        """
        if not isinstance(shapes, list | tuple) or any(
            shape is None or isinstance(shape, int) for shape in shapes
        ):
            raise AttributeValueError(
                "a PaddingFIFOQueue needs a list with the shape of each component, got "
                f"{shown(shapes)}"
            )
        kinds, forms, labels = components(dtypes, shapes, names, partial=True)
        ref = handle(
            padding_fifo_queue,
            name,
            shared_name,
            capacity=room(capacity),
            component_types=tuple(kinds),
            shapes=tuple(forms),
        )
        super().__init__(kinds, forms, labels, ref)
