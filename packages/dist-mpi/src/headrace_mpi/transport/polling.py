"""Polling and backoff: how long a thread that receives spins, and how long it sleeps then.

Polling sees a message at once and keeps a core from whoever has work to do; a nap leaves the core
and costs a wake-up, after which the core's caches and predictors are cold. So a receiver polls for
about as long as an answer takes, and gives its core away between two polls. Ranks that share a core
give it back soon. Other programs do not: where the core comes back late, a receiver does not give
it away for a while, for longer each time that the next poll finds it taken again. It polls for
about as long as a quick answer takes, and then sleeps.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import final

# A tensor of a megabyte takes about as long to be made and moved; a nap costs more than it says.
SPIN_S = 0.001
MOVING_SPIN_S = 0.005
# Where ranks wake each other, a nap costs little; still some 30 us where a core was free to poll.
BELL_SPIN_S = 0.0002
# Answers that take up to so long are polled for as long as they took, and half as long again; the
# longest of them counts less with each that comes.
ANSWER_S = 0.001
_MORE = 1.5
_FORGETS = 0.9
# For how many times as long as a core that came back late is left to others nothing is learned.
_UNSURE = 64
MIN_NAP_S = 0.00005
# What a thread of this process has to say may have to wait for the end of a nap.
BELL_NAP_S = 0.0003
# Who rings wakes it; in between MPI is asked for ranks that are lost.
NEAR_NAP_S = 0.002
MAX_NEAR_NAP_S = 0.01
# Who is not read until its turn comes is rung for then. Waking before takes a core from those whose
# turn it is: with naps of 2 ms some 1000 answers a second of four workers came too late.
PASSED_OVER_NAP_S = 0.02
MAX_NAP_S = 0.001
LONG_NAP_S = 0.004
# Ranks that share cores give them back soon; who has work of his own does not.
_TAKEN_S = 0.0005
_SHARED_S = 0.001
MAX_SHARED_S = 0.64
# For so long an answer is polled for without giving the core away where others want it, too: a core
# that was given away comes back after a time slice of theirs, and who is woken up rarely gets one
# at once. What is used up is this process's own share.
STAY_S = 0.0001
# Polls after which a core that was taken counts as free again.
_ENOUGH_FREE = 3

_yield_core: Callable[[], object] = getattr(os, "sched_yield", lambda: time.sleep(0))


def cores() -> int:
    """Return how many cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@final
class PollingBackoff:
    """Decides for the thread that receives whether it polls on.

    Attributes:
        late: How often the core came back late.
    """

    def __init__(self, ranks: int, *, near: bool = True, alone: bool = False) -> None:
        """Begin.

        Args:
            ranks: How many ranks of this host wake each other; 0 where nobody wakes this one.
            near: Whether all ranks of the job do.
            alone: Whether each of them has a core.
        """
        self._learns = ranks > 0 and alone
        self._bell = ranks > 0
        self._near = near and self._bell
        self._spin_s = BELL_SPIN_S if ranks else SPIN_S
        self._learns_at = 0.0
        self.late = 0
        self._shared_until = 0.0
        self._shared_s = _SHARED_S
        self._free = 0

    def came(self, idle_s: float) -> None:
        """Note for how long nothing had come when something came."""
        # Where others want the core it is waited for, too, and not only the answer.
        if self._learns and time.monotonic() >= self._learns_at:
            took = _MORE * idle_s if idle_s <= ANSWER_S else 0.0
            self._spin_s = max(BELL_SPIN_S, took, _FORGETS * self._spin_s)

    def nap_s(self, idle_s: float, *, passed_over: bool = False) -> float:
        """Return how long to sleep between polls.

        Args:
            idle_s: For how long nothing has come.
            passed_over: Whether the rank that is to answer reads messages of others just now.
        """
        if self._near:
            if passed_over:
                return PASSED_OVER_NAP_S
            return min(max(idle_s, NEAR_NAP_S), MAX_NEAR_NAP_S)
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
            return idle_s < STAY_S
        _yield_core()
        took = time.monotonic() - before
        if took < _TAKEN_S:
            self._free += 1
            return True
        again = self._free < _ENOUGH_FREE
        self._shared_s = min(2 * self._shared_s, MAX_SHARED_S) if again else _SHARED_S
        self._shared_until = before + took + self._shared_s
        self._learns_at = self._shared_until + _UNSURE * self._shared_s
        self.late += 1
        if self._learns:
            self._spin_s = BELL_SPIN_S
        self._free = 0
        return True
