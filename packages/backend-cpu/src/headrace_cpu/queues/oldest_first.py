"""What queues have in common from which the oldest element leaves first."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from headrace import DType, Shape
from headrace_cpu.queues.elements import Element, Held
from headrace_cpu.queues.queue import Queue


class OldestFirst(Queue):
    """A queue that hands out elements in the order in which they came."""

    def __init__(
        self,
        name: str,
        capacity: int,
        component_types: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(name, capacity, component_types, shapes)
        self._elements: deque[Element] = deque()

    def _count(self) -> int:
        return len(self._elements)

    def _listed(self) -> Held:
        return list(self._elements)

    def _keep(self, elements: Held) -> None:
        self._elements.extend(elements)

    def _choose(self, count: int) -> Held:
        take = self._elements.popleft
        return [take() for _ in range(count)]

    def _return(self, elements: Held) -> None:
        self._elements.extendleft(reversed(elements))

    def _empty(self) -> None:
        self._elements.clear()
