"""First-in, first-out queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from headrace import DType, Shape
from headrace_cpu.queues.oldest_first import OldestFirst
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
