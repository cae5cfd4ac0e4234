"""What gives elements, such as a queue, as kernels of any package see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from headrace.dtypes import DType
from headrace.runtime.concurrency.cancellation import Cancellation


@runtime_checkable
class ElementSource(Protocol):
    """Gives elements, each a tuple of arrays: what handles of queues stand for.

    A kernel that takes from a queue gets one, whichever package made the queue.
    """

    name: str

    @property
    def dtypes(self) -> Sequence[DType]:
        """The dtype of each component of an element."""
        ...

    def take(
        self, count: int, done: Callable[[Any], None], cancellation: Cancellation | None = None
    ) -> None:
        """Take the next ``count`` elements, when there are so many.

        Args:
            count: How many, at least 0.
            done: Called once, from any thread: with the list of elements, or with an exception.
            cancellation: Ends the waiting; nothing is taken then.
        """
        ...
