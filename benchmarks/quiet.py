"""How busy the machine is while all participants wait: the share that others take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

# A pause is disturbed by the threads of the last participant that spin before they sleep, and by
# the system's own work; above this share somebody else is computing.
BUSY = 0.15

_COUNTERS = Path("/proc/stat")


def pause(seconds: float) -> float | None:
    """Sleep, and measure what the processors did meanwhile.

    Args:
        seconds: how long to sleep.

    Returns:
        Share of all processors' time that was spent on something, 0 to 1; None where the system
        does not tell.
    """
    if not _COUNTERS.exists():
        time.sleep(seconds)
        return None
    before = _COUNTERS.read_text()
    time.sleep(seconds)
    return busy_share(before, _COUNTERS.read_text())


def busy_share(before: str, after: str) -> float | None:
    """Return the busy share between two readings of ``/proc/stat``, None if no tick passed."""
    old, new = _ticks(before), _ticks(after)
    passed = [b - a for a, b in zip(old, new, strict=True)]
    total = sum(passed)
    if total <= 0:
        return None
    idle, waiting = passed[3], passed[4]
    return 1 - (idle + waiting) / total


def others_share(pauses: Sequence[float | None]) -> float | None:
    """Return the median share over the pauses of a run, None if nothing was measured."""
    known = [share for share in pauses if share is not None]
    return statistics.median(known) if known else None


def _ticks(counters: str) -> list[int]:
    """Return user, nice, system, idle, iowait, irq, softirq and stolen ticks of all processors."""
    return [int(field) for field in counters.splitlines()[0].split()[1:9]]
