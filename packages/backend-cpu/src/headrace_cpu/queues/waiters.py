"""Users of a queue that have not got what they want yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from headrace.extend.kernels import Cancellation
from headrace_cpu.queues.elements import Element, Held


class Waiter:
    """An enqueue or dequeue that has not finished.

    Attributes:
        answer: What to call with its result, or with the exception that ended it.
        cancellation: Of the step that waits, once it waits.
        key: Of the callback there.
    """

    __slots__ = ("_finished", "answer", "cancellation", "key")

    def __init__(self, answer: Callable[[Any], None]) -> None:
        self.answer = answer
        self._finished = False
        self.cancellation: Cancellation | None = None
        self.key = 0

    def finished(self) -> bool:
        """Whether its result is settled, which happens under the queue's lock."""
        return self._finished

    def rest(self) -> Held:
        """Return the elements that it holds, and that nobody gets if it fails."""
        return ()

    def settle(self, result: Any) -> Callable[[], None]:
        """Mark it finished, and return what tells so, to be called without the lock."""
        self._finished = True

        def tell() -> None:
            if self.cancellation is not None:
                self.cancellation.discard(self.key)
            self.answer(result)

        return tell


@final
class Put(Waiter):
    """An enqueue: the elements that are still to go in."""

    __slots__ = ("_at", "_elements")

    def __init__(self, elements: Held, answer: Callable[[Any], None]) -> None:
        super().__init__(answer)
        self._elements = elements
        self._at = 0

    def next(self, most: int) -> Held:
        """Return the next elements to go in, at most so many."""
        elements = self._elements[self._at : self._at + most]
        self._at += len(elements)
        return elements

    def head(self) -> Element:
        """Return the element that goes in next, which is still to go."""
        element: Element = self._elements[self._at]
        return element

    def rest(self) -> Held:
        """Return the elements that are still to go in."""
        return self._elements[self._at :]

    def is_done(self) -> bool:
        """Whether all elements are in."""
        return self._at == len(self._elements)


@final
class Take(Waiter):
    """A dequeue: how many elements it wants, and those that it has.

    Attributes:
        wanted: How many elements it waits for.
        partial: Whether fewer do where the queue is closed, at least one.
        taken: The elements that it has.
    """

    __slots__ = ("partial", "taken", "wanted")

    def __init__(self, wanted: int, partial: bool, answer: Callable[[Any], None]) -> None:
        super().__init__(answer)
        self.wanted = wanted
        self.partial = partial
        self.taken: Held = []

    def add(self, elements: Held) -> None:
        """Give it more elements."""
        taken = self.taken
        if not len(taken):
            self.taken = elements
        elif isinstance(taken, list):
            taken += elements
        else:
            self.taken = np.concatenate([taken, elements])

    def rest(self) -> Held:
        """Return the elements that it has."""
        return self.taken
