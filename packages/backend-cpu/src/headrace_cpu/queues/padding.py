"""First-in, first-out queues that join elements of different sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from headrace_cpu.queues.elements import Element
from headrace_cpu.queues.oldest_first import OldestFirst


@final
class PaddingFIFOQueue(OldestFirst):
    """A first-in, first-out queue that pads the elements that it joins to the largest of them."""

    def check_joinable(self) -> None:
        """Accept any shapes: ``join`` pads."""

    def join(self, xp: Any, elements: Sequence[Element]) -> Element:
        """Join elements along a new first axis, padded; arguments as for ``Queue.join``."""
        return self.elements.pad(xp, elements)
