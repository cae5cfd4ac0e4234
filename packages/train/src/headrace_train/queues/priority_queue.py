"""Priority queues: elements of small numbers leave first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import headrace as hr
from headrace import Shape
from headrace.extend.primitives import priority_queue
from headrace_train.queues.arguments import dtype_list, handle, name_list, room, shape_list
from headrace_train.queues.queue_base import QueueBase


@final
class PriorityQueue(QueueBase):
    """A queue from which the element of the smallest priority comes out first.

    The priority is one more component before those of ``types``: an int64 scalar. Of equal ones,
    the element that went in first comes out first.
    """

    def __init__(
        self,
        capacity: int | None,
        types: Any,
        shapes: Any = None,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        """Make a queue in the default graph.

        Args:
            capacity: How many elements it holds at most, at least 1; -1 or None for any.
            types: The dtype of each component but the priority, or of the only one.
            shapes: The shape of each of these components, fully known; any if None.
            names: The name of each component, that of the priority first; elements then are dicts.
            shared_name: Its name in its container; the queue's own name if None. Queues of one
                shared name in a named container or a cluster are one queue.
            name: The queue's name; made unique.

        Raises:
            AttributeValueError: if the numbers of dtypes, shapes and names differ.
            ShapeError: if a shape is not fully known.
        """
        others = dtype_list(types)
        kinds = [hr.int64, *others]
        forms = [Shape([]), *shape_list(shapes, len(others))]
        labels = name_list(names, len(kinds))
        ref = handle(
            priority_queue,
            name,
            shared_name,
            capacity=room(capacity),
            component_types=tuple(kinds),
            shapes=tuple(forms),
        )
        super().__init__(kinds, forms, labels, ref)
