"""Queues from which any element may leave next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from headrace import DType, Shape
from headrace_cpu.queues.elements import Held
from headrace_cpu.queues.queue import Queue
from headrace_cpu.queues.random_slots import Places
from headrace_cpu.queues.slots import Slots


@final
class RandomShuffleQueue(Queue):
    """A queue that hands out elements in random order.

    While it is open, it keeps some elements back, so that there are always enough to choose from.

    Attributes:
        min_after_dequeue: How many elements stay in it until it is closed.
    """

    def __init__(
        self,
        name: str,
        capacity: int,
        component_types: Sequence[DType],
        shapes: Sequence[Shape],
        min_after_dequeue: int,
        seeds: tuple[int, int] | None,
    ) -> None:
        super().__init__(name, capacity, component_types, shapes)
        self.min_after_dequeue = min_after_dequeue
        self._seed = None if seeds is None else (seeds[0] << 64) ^ seeds[1]
        self._random = _random(self._seed)
        # Those that are numbers of places are held as such; tuples of arrays in a list.
        self._elements: list[Any] = []
        self._places = Places()
        self._slots = Slots.fitting(component_types, shapes)

    def describe(self) -> str:
        """Return which queue this is and what is in it, as ``Queue.describe`` does."""
        kept = self.min_after_dequeue
        return super().describe() + (f" and keeps {kept} until it is closed" if kept else "")

    def _count(self) -> int:
        return len(self._elements) + len(self._places)

    def _to_give(self) -> int:
        kept = 0 if self.is_closed else self.min_after_dequeue
        return self._count() - kept

    def _listed(self) -> Held:
        return self._elements[:] if self._elements else self._places.listed()

    def _drawn(self) -> Any:
        state: Any = self._random.get_state()
        _, numbers, place, *_ = state
        return _VERSION, (*numbers.tolist(), place), None

    def _go_on_drawing(self, drawn: Any) -> None:
        _, numbers, _ = drawn
        self._random.set_state(_state(numbers))

    def _keep(self, elements: Held) -> None:
        if self._slots_of(elements) is None:
            self._elements.extend(elements)
        else:
            self._places.add(elements)

    def _choose(self, count: int) -> Held:
        # Drawn at once, which is quicker than one by one.
        drawn = self._random.random_sample(count)
        if self._places:
            return self._places.choose(drawn)
        elements, there = self._elements, len(self._elements)
        last = there - count
        places = (drawn * np.arange(there, last, -1)).astype(np.intp)
        chosen = []
        for place, end in zip(places.tolist(), range(there - 1, last - 1, -1), strict=True):
            # The last one takes the place of the one that leaves.
            chosen.append(elements[place])
            elements[place] = elements[end]
        del elements[last:]
        return chosen

    def _return(self, elements: Held) -> None:
        self._keep(elements)

    def _empty(self) -> None:
        self._elements.clear()
        self._places.clear()
        self._random = _random(self._seed)


# Of the states that ``random.Random`` gives.
_VERSION = 3


def _random(seed: int | None) -> np.random.RandomState:
    """Return what draws the numbers that ``random.Random`` draws, many in one call.

    Both are MT19937, of which each float takes two words; only their seeds are spread otherwise.
    """
    _, numbers, _ = random.Random(seed).getstate()
    made = np.random.RandomState()
    made.set_state(_state(numbers))
    return made


def _state(numbers: Sequence[int]) -> Any:
    """Return a state of NumPy's: its words, and the place of the next, as Python gives them."""
    return "MT19937", np.array(numbers[:-1], np.uint32), numbers[-1]
