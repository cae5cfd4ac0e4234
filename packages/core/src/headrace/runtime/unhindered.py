"""Planning without the garbage collector, which would go through a growing graph ever again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def unhindered() -> Iterator[None]:
    """Pause the collector of cycles; it goes on afterwards, if it was on.

    Planning makes many objects and drops few. Where several threads plan at once, the collector is
    on again when the first of them is done.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
