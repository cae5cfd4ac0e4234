"""How long a thread that receives polls without a pause, and how long it naps then.

Polling sees a message at once and keeps a core from whoever has work to do; a nap leaves the core
and costs a wake-up. So a receiver polls for about as long as an answer takes where every rank has a
core of its own, and hardly at all where ranks share cores: there the answer comes from a rank that
wants this core. Other programs may want it, too. That shows when the core is given away between two
polls and comes back late; for a while it is then left to them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import final

# A tensor of a megabyte takes about as long to be made and moved; a nap costs more than it says.
SPIN_S = 0.001
MOVING_SPIN_S = 0.005
# Where ranks wake each other, a nap costs little.
BELL_SPIN_S = 0.0002
MIN_NAP_S = 0.00005
# What a thread of this process has to say may have to wait for the end of a nap.
BELL_NAP_S = 0.0003
MAX_NAP_S = 0.001
LONG_NAP_S = 0.004
# Giving the core away takes a few us, unless somebody takes it.
_TAKEN_S = 0.00002
_SHARED_S = 0.02

_yield_core: Callable[[], object] = getattr(os, "sched_yield", lambda: time.sleep(0))


def cores() -> int:
    """Return how many cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@final
class Patience:
    """Decides for the thread that receives whether it polls on."""

    def __init__(self, ranks: int) -> None:
        """Begin.

        Args:
            ranks: How many ranks of this host wake each other; 0 where nobody wakes this one.
        """
        self._bell = ranks > 0
        self._spin_s = SPIN_S if not ranks else BELL_SPIN_S if ranks <= cores() else 0.0
        self._shared_until = 0.0

    def nap_s(self, idle_s: float) -> float:
        """Return how long to sleep between polls when nothing has come for ``idle_s`` seconds."""
        least = BELL_NAP_S if self._bell else MIN_NAP_S
        return min(max(idle_s / 8, least), MAX_NAP_S if idle_s < 1.0 else LONG_NAP_S)

    def spins(self, idle_s: float, *, moving: bool) -> bool:
        """Return whether to poll again at once; the core was given away meanwhile.

        Args:
            idle_s: For how long nothing has come.
            moving: Whether there is data for which MPI has to be called.
        """
        if idle_s >= (MOVING_SPIN_S if moving else self._spin_s):
            return False
        if not self._bell:
            _yield_core()
            return True
        before = time.monotonic()
        if before < self._shared_until and not moving:
            return False
        _yield_core()
        if time.monotonic() - before > _TAKEN_S:
            self._shared_until = before + _SHARED_S
        return True
