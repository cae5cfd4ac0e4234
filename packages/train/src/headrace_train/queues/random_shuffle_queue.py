"""Queues from which elements come out in random order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, final

import headrace as hr
from headrace.extend.primitives import random_shuffle_queue
from headrace_train.queues.arguments import components, handle, room, whole_number
from headrace_train.queues.queue_base import QueueBase


@final
class RandomShuffleQueue(QueueBase):
    """A queue from which elements come out in random order.

    While it is open, ``min_after_dequeue`` elements stay in it, so that there are always so many
    to choose from: steps that dequeue wait. When it is closed, all of them come out.
    """

    def __init__(
        self,
        capacity: int | None,
        min_after_dequeue: int | None,
        dtypes: Any,
        shapes: Any = None,
        names: str | Sequence[str] | None = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        """Make a queue in the default graph.

        Args:
            capacity: How many elements it holds at most, at least 1; -1 or None for any.
            min_after_dequeue: How many elements stay in it until it is closed, at least 0 and less
                than the capacity; 0 if None.
            dtypes: The dtype of each component, or of the only one.
            shapes: The shape of each component, or of the only one, fully known; any if None.
            names: The name of each component, or of the only one; elements then are dicts.
            seed: The seed of the order, together with that of the graph (``hr.set_random_seed``);
                without either, each run has another order. Equal seeds give an equal order where
                equal elements come in the same order.
            shared_name: Its name in its container; the queue's own name if None. Queues of one
                shared name in a named container or a cluster are one queue.
            name: The queue's name; made unique.

        Raises:
            AttributeValueError: if the numbers of dtypes, shapes and names differ, or
                ``min_after_dequeue`` does not fit the capacity.
            ShapeError: if a shape is not fully known.
        """
        kinds, forms, labels = components(dtypes, shapes, names)
        least = 0 if min_after_dequeue is None else min_after_dequeue
        ref = handle(
            random_shuffle_queue,
            name,
            shared_name,
            capacity=room(capacity),
            min_after_dequeue=whole_number(least, "min_after_dequeue"),
            component_types=tuple(kinds),
            shapes=tuple(forms),
            seeds=_seeds(seed, shared_name),
        )
        super().__init__(kinds, forms, labels, ref)


def _seeds(seed: int | None, shared_name: str | None) -> tuple[int, int] | None:
    graph_seed, op_seed = hr.get_seed(seed)
    if graph_seed is None or op_seed is None:
        return None
    if seed is None and shared_name:
        # Of the name alone, as TensorFlow has it: whoever shares the queue declares the same seeds.
        named = hashlib.md5(f"{graph_seed}{shared_name}".encode(), usedforsecurity=False)
        op_seed = int(named.hexdigest()[:8], 16) & 0x7FFFFFFF
    return graph_seed, op_seed
