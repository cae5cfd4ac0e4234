"""First-in, first-out queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from headrace import DType, Shape
from headrace_cpu.queues.elements import Held
from headrace_cpu.queues.oldest_first import OldestFirst
from headrace_cpu.queues.slot_fifo import Line
from headrace_cpu.queues.slots import Slots


@final
class FIFOQueue(OldestFirst):
    """A first-in, first-out queue that joins elements of equal shapes."""

    def __init__(
        self,
        name: str,
        capacity: int,
        component_types: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(name, capacity, component_types, shapes)
        self._slots = Slots.fitting(component_types, shapes)
        # Those that are numbers of places; tuples of arrays stand in the queue beside it.
        self._places = Line()

    def _count(self) -> int:
        return len(self._elements) + len(self._places)

    def _listed(self) -> Held:
        return super()._listed() if self._elements else self._places.listed()

    def _keep(self, elements: Held) -> None:
        if self._slots_of(elements) is None:
            super()._keep(elements)
        else:
            self._places.add(elements)

    def _choose(self, count: int) -> Held:
        return self._places.choose(count) if self._places else super()._choose(count)

    def _return(self, elements: Held) -> None:
        if self._slots_of(elements) is None:
            super()._return(elements)
        else:
            self._places.give_back(elements)

    def _empty(self) -> None:
        super()._empty()
        self._places.clear()
