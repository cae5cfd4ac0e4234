"""First-in, first-out queues."""

from __future__ import annotations

from typing import final

from headrace_cpu.queues.oldest_first import OldestFirst


@final
class FIFOQueue(OldestFirst):
    """A first-in, first-out queue that joins elements of equal shapes."""
