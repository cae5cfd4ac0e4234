"""Bands: nests that run together, row by row of the dimension that is the outermost of all.

Softmax behind a product, or the means of groups, take several nests over the same data. One after
the other each of them walks through all of it, which the innermost cache may not hold, and threads
wait for each other in between. Where no nest needs more of the nests before it than what belongs to
the same step along the outermost dimension, all of them run for one step, then for the next. What
is reduced there belongs to one step, and hence to one thread: nothing has to be joined.
"""

from __future__ import annotations

from headrace_cpu.fusion.schedule import Nest, Schedule

# Threads get whole steps: with fewer for each, one would wait for the other.
_STEPS_PER_THREAD = 4


def find_bands(schedule: Schedule, threads: int) -> dict[int, int]:
    """Return for the number of each nest in a band that of the band's first nest.

    Args:
        schedule: The nests.
        threads: How many threads will run them.
    """
    found: dict[int, int] = {}
    nests = schedule.nests
    first = 0
    for number in range(1, len(nests) + 1):
        together = number < len(nests) and _outermost(nests[number]) == _outermost(nests[first])
        if together and _divides(schedule, nests[number], threads):
            continue
        if number - first > 1 and _divides(schedule, nests[first], threads):
            found.update(dict.fromkeys(range(first, number), first))
        first = number
    return found


def _outermost(nest: Nest) -> int | None:
    """Return the dimension of a nest's outermost loop, None where it has only an inner one."""
    return nest.dims[0] if len(nest.dims) > 1 else None


def _divides(schedule: Schedule, nest: Nest, threads: int) -> bool:
    """Whether what a nest computes at one step of its outermost dimension is of that step only."""
    outermost = _outermost(nest)
    if outermost is None or schedule.space.sizes[outermost] < _STEPS_PER_THREAD * threads:
        return False
    # Variables that are updated in place are read elsewhere under the order of whole nests.
    updates = any(root.store is not None and root.store.update for root in nest.roots)
    return not updates and not any(
        root.reduces and outermost in root.value.over for root in nest.roots
    )
