"""On how many threads a program runs while others want the cores: on one, or on all it may use.

Where threads sleep as soon as they wait, every kernel for several of them wakes the others, which
takes as long as most kernels do. Whether that pays depends on the kernels, and on how much of a
core the others leave, so both are tried, and the quicker is taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Runs of each before one is taken for the quicker.
_TRIES = 3
# The slower one is tried again once in so many runs, since what others do changes.
_AGAIN = 64
# What one run adds to what is known of those before it.
_WEIGHT = 1 / 8

_ALONE, _TEAM = 0, 1


class Choice:
    """Chooses between one thread and several for the runs of a program.

    ``several`` before a run and ``done`` after it; runs beside others, which have fewer threads
    anyway, ask for nothing.
    """

    __slots__ = ("_began", "_by", "_clock", "_kind", "_known", "_runs", "_times")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Know nothing yet.

        Args:
            clock: Returns the time in seconds.
        """
        self._clock = clock
        # How many runs are known of each kind, and the running means of their times in seconds.
        self._known, self._times = [0, 0], [0.0, 0.0]
        self._runs, self._kind = 0, _ALONE
        self._began: float | None = None
        self._by = 0

    def several(self) -> bool:
        """Return whether the run that begins now takes several threads."""
        self._runs += 1
        known = self._known
        if known[_ALONE] < _TRIES or known[_TEAM] < _TRIES:
            kind = _ALONE if known[_ALONE] <= known[_TEAM] else _TEAM
        else:
            kind = _TEAM if self._times[_TEAM] < self._times[_ALONE] else _ALONE
            if self._runs % _AGAIN == 0:
                kind = 1 - kind
        self._kind, self._by = kind, threading.get_ident()
        self._began = self._clock()
        return kind == _TEAM

    def done(self) -> None:
        """Note how long the run of this thread took, if it is the last that asked."""
        began = self._began
        if began is None or self._by != threading.get_ident():
            return
        self._began = None
        kind, took = self._kind, self._clock() - began
        self._known[kind] += 1
        weight = max(_WEIGHT, 1 / self._known[kind])
        self._times[kind] += (took - self._times[kind]) * weight
