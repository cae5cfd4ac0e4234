"""Planning without the garbage collector, which would go through a growing graph ever again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# Python 3.12 itself starts with some hundred frozen objects; a program has thousands to freeze.
_FROZEN_AT_START = 1000

# Whether what a process imports and plans first was put among the old objects.
_settled = False


@contextlib.contextmanager
def unhindered() -> Iterator[None]:
    """Pause the collector of cycles; it goes on afterwards, if it was on.

    Planning makes many objects and drops few. Where several threads plan at once, the collector is
    on again when the first of them is done.

    After the first plan of a process, all objects count as old: modules, kernels and the plan
    are most of them and live on, and the collector would otherwise visit them all within the first
    step, for longer than the step takes. Cycles among them are still collected with the old ones.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            _settle_once()
            gc.enable()


def _settle_once() -> None:
    """Count all objects as old, without visiting them; once, or cycles would never be collected."""
    global _settled
    if _settled:
        return
    _settled = True
    # What a program froze itself would be thawed, too.
    if gc.get_freeze_count() < _FROZEN_AT_START:
        gc.freeze()
        gc.unfreeze()
