"""Timing: how long operations take, measured while a step runs for the first times.

From that follows which operations are worth a thread of their own (``parallel.py``): those that
take long, and leave cores to others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, final

# Handing something to another thread takes some 50 us on a busy machine, and cold caches.
LONG_S = 0.002
# How often something is measured. Kernels are generated for the third run, by default.
RUNS = 2
# What takes more of processors than so many times its duration has several cores already.
_ONE_CORE = 1.25

_Item = TypeVar("_Item", bound=Hashable)


@final
class Timing:
    """How long something takes, by the shortest of its runs.

    Attributes:
        seconds: How long.
        processor_s: What the whole process took of processors in that time, in seconds.
    """

    __slots__ = ("_runs", "processor_s", "seconds")

    def __init__(self) -> None:
        """Begin without a run."""
        self.seconds = self.processor_s = 0.0
        self._runs = 0

    def measured(self, call: Callable[..., Any], *values: Any) -> Any:
        """Return what a call returns."""
        cpu, began = time.process_time(), time.perf_counter()
        result = call(*values)
        seconds = time.perf_counter() - began
        if not self._runs or seconds < self.seconds:
            self.seconds, self.processor_s = seconds, time.process_time() - cpu
        self._runs += 1
        return result

    @property
    def long(self) -> bool:
        """Whether it takes long, and leaves cores to others."""
        return self.seconds >= LONG_S and self.processor_s <= _ONE_CORE * self.seconds


def saved_s(
    order: Sequence[_Item],
    needs: Callable[[_Item], Iterable[_Item]],
    timings: Mapping[_Item, Timing],
) -> float:
    """Return how many seconds less a run takes if what does not wait for each other runs at once.

    Args:
        order: What runs, each after what it needs.
        needs: What each needs.
        timings: How long some of it takes; the rest counts as nothing.
    """
    ends: dict[_Item, float] = {}
    for item in order:
        timing = timings.get(item)
        start = max((ends.get(other, 0.0) for other in needs(item)), default=0.0)
        ends[item] = start + (0.0 if timing is None else timing.seconds)
    return sum(timing.seconds for timing in timings.values()) - max(ends.values(), default=0.0)
