"""Core affinity: which core a thread runs on, and leaving one to a rank that serves many.

A rank that serves works without a pause where many ask it, and each of these waits for it now and
then. Schedulers know only that all of them want a core always, since they poll, and keep each where
it is. Where one that asks shares the core of the one that serves, both wait for each other.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections import deque
from collections.abc import Callable
from typing import Any, final

# How often a thread looks on which core it is; less often the more often it was moved back.
LOOK_S = 0.002
LONGEST_S = 0.256
# Who is on the core again by then was moved back.
SOON_S = 0.02
# Other programs want the cores if these came back late so often in so short a time; then all stay
# where they are for a while.
_OFTEN, _OFTEN_S = 3, 0.02
WANTED_S = 1.0


@functools.cache
def _call() -> Callable[[], int] | None:
    try:
        # It is over in a moment: the interpreter lock is kept.
        call: Any = ctypes.PyDLL(None)["sched_getcpu"]
    except (OSError, AttributeError):
        return None
    call.restype = ctypes.c_int
    call.argtypes = ()
    return call if hasattr(os, "sched_setaffinity") else None


def current_core() -> int:
    """Return the core on which the calling thread runs; -1 where the system does not tell."""
    call = _call()
    return -1 if call is None else call()


def leave_core(core: int) -> None:
    """Move the calling thread to another core, if it may run on another one; it may come back."""
    with contextlib.suppress(OSError):
        allowed = os.sched_getaffinity(0)
        others = allowed - {core}
        if others:
            os.sched_setaffinity(0, others)
            os.sched_setaffinity(0, allowed)


@final
class CoreAffinity:
    """Keeps a thread off the core of a rank that it asks again and again."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._pause_s = LOOK_S
        self._left = -SOON_S
        self._late = 0
        # When the core came back late.
        self._taken: deque[float] = deque([-_OFTEN_S], _OFTEN)
        self._stays_until = 0.0

    def keep_off(self, core: int, now: float, late: int) -> None:
        """Leave a core if the calling thread runs there; it is not looked each time.

        Args:
            core: The core.
            now: The time.
            late: How often the core on which the thread ran came back late when it was given away.
        """
        if now < self._look_at:
            return
        if late != self._late:
            self._late = late
            self._taken.append(now)
            if len(self._taken) == _OFTEN and now - self._taken[0] < _OFTEN_S:
                self._stays_until = now + WANTED_S
        if now >= self._stays_until and current_core() == core:
            leave_core(core)
            soon = now - self._left < max(SOON_S, 2 * self._pause_s)
            self._pause_s = min(2 * self._pause_s, LONGEST_S) if soon else LOOK_S
            self._left = now
        self._look_at = now + self._pause_s
