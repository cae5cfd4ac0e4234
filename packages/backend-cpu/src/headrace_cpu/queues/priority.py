"""Queues in which the element of the smallest number leaves first."""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Sequence
from typing import final

from headrace import DType, Shape
from headrace_cpu.queues.elements import Element
from headrace_cpu.queues.queue import Queue


@final
class PriorityQueue(Queue):
    """A queue that hands out the element whose first component is smallest.

    Of equal ones, the oldest leaves first.
    """

    def __init__(
        self,
        name: str,
        capacity: int,
        component_types: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(name, capacity, component_types, shapes)
        self._heap: list[tuple[int, int, Element]] = []
        self._later = itertools.count()
        self._earlier = itertools.count(-1, -1)

    def _count(self) -> int:
        return len(self._heap)

    def _listed(self) -> Sequence[Element]:
        return [element for _, _, element in sorted(self._heap, key=operator.itemgetter(0, 1))]

    def _keep(self, elements: Sequence[Element]) -> None:
        for element in elements:
            heapq.heappush(self._heap, (int(element[0]), next(self._later), element))

    def _choose(self, count: int) -> list[Element]:
        return [heapq.heappop(self._heap)[2] for _ in range(count)]

    def _return(self, elements: Sequence[Element]) -> None:
        # Before all of the same priority, in the order in which they were.
        for element in reversed(elements):
            heapq.heappush(self._heap, (int(element[0]), next(self._earlier), element))

    def _empty(self) -> None:
        self._heap.clear()
