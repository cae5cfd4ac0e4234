"""Planning, and adding gradients, while Python's garbage collector is paused.

The collector would go through a growing graph ever again.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# Python 3.12 itself starts with some hundred frozen objects; a program has thousands to freeze.
_FROZEN_AT_START = 1000
# To visit so many objects takes a hundredth of a second.
_MANY = 100_000
# When so many were put among the old objects unvisited, all are visited: what plans leave behind
# in cycles takes a gigabyte or two at most.
_MOST_UNVISITED = 20_000_000

# Whether what a process imports and plans first was put among the old objects.
_settled = False
# How many objects were, since all were visited.
_unvisited = 0


@contextlib.contextmanager
def unhindered(*, settle: bool = True) -> Iterator[None]:
    """Pause the collector of cycles; it goes on afterwards, if it was on.

    Planning makes many objects and drops few. Where several threads plan at once, the collector is
    on again when the first of them is done.

    After the first plan of a process, all objects count as old: modules, kernels and the plan
    are most of them and live on, and the collector would otherwise visit them all within the first
    step, for longer than the step takes. Cycles among them are still collected with the old ones.
    The same holds for what a large plan made.

    Args:
        settle: Whether this is a plan.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            _settle(settle)
            gc.enable()


def _settle(plan: bool) -> None:
    """Count all objects as old, without visiting them, where these are many new ones."""
    global _settled, _unvisited
    made = gc.get_count()[0]
    first = plan and not _settled
    if not first and made < _MANY:
        return
    _settled = _settled or first
    # What a program froze itself would be thawed, too.
    if gc.get_freeze_count() >= _FROZEN_AT_START:
        return
    gc.freeze()
    gc.unfreeze()
    if not first:
        _unvisited += made
    if _unvisited > _MOST_UNVISITED:
        # Nobody counts them but us: cycles among them would never be collected.
        _unvisited = 0
        gc.collect()
