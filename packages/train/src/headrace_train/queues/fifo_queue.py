"""First-in, first-out queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from headrace.extend.primitives import fifo_queue
from headrace_train.queues.arguments import components, handle, room
from headrace_train.queues.queue_base import QueueBase


@final
class FIFOQueue(QueueBase):
    """A queue whose elements come out in the order in which they went in."""

    def __init__(
        self,
        capacity: int | None,
        dtypes: Any,
        shapes: Any = None,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        """Make a queue in the default graph.

        Args:
            capacity: How many elements it holds at most, at least 1; -1 or None for any.
            dtypes: The dtype of each component, or of the only one.
            shapes: The shape of each component, or of the only one, fully known; any if None.
            names: The name of each component, or of the only one; elements then are dicts.
            shared_name: Its name in its container; the queue's own name if None. Queues of one
                shared name in a named container or a cluster are one queue.
            name: The queue's name; made unique.

        Raises:
            AttributeValueError: if the numbers of dtypes, shapes and names differ.
            ShapeError: if a shape is not fully known.
        """
        kinds, forms, labels = components(dtypes, shapes, names)
        ref = handle(
            fifo_queue,
            name,
            shared_name,
            capacity=room(capacity),
            component_types=tuple(kinds),
            shapes=tuple(forms),
        )
        super().__init__(kinds, forms, labels, ref)
