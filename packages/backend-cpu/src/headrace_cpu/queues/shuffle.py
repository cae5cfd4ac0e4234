"""Queues from which any element may leave next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, final

from headrace import DType, Shape
from headrace_cpu.queues.elements import Element
from headrace_cpu.queues.queue import Queue
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
        self._random = random.Random(self._seed)
        self._elements: list[Element] = []
        self._slots = Slots.fitting(component_types, shapes)

    def describe(self) -> str:
        """Return which queue this is and what is in it, as ``Queue.describe`` does."""
        kept = self.min_after_dequeue
        return super().describe() + (f" and keeps {kept} until it is closed" if kept else "")

    def _count(self) -> int:
        return len(self._elements)

    def _to_give(self) -> int:
        kept = 0 if self.is_closed else self.min_after_dequeue
        return len(self._elements) - kept

    def _listed(self) -> Sequence[Element]:
        return list(self._elements)

    def _drawn(self) -> Any:
        return self._random.getstate()

    def _go_on_drawing(self, drawn: Any) -> None:
        version, numbers, gauss = drawn
        self._random.setstate((version, tuple(numbers), gauss))

    def _keep(self, elements: Sequence[Element]) -> None:
        self._elements.extend(elements)

    def _choose(self, count: int) -> list[Element]:
        elements, draw, chosen = self._elements, self._random.random, list[Element]()
        add, drop, there = chosen.append, elements.pop, len(elements)
        # Drawn at once, which is quicker than one by one.
        for place in [int(draw() * left) for left in range(there, there - count, -1)]:
            # The last one takes the place of the one that leaves.
            add(elements[place])
            elements[place] = elements[-1]
            drop()
        return chosen

    def _return(self, elements: Sequence[Element]) -> None:
        self._elements.extend(elements)

    def _empty(self) -> None:
        self._elements.clear()
        self._random = random.Random(self._seed)
