"""Resident memory of this process: now, at its peak, and at the peak of the steps alone."""

from __future__ import annotations

import contextlib
import gc
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
# What the kernel wants to read there to let the peak begin anew at the present size.
_RESET_PEAK = "5"


@dataclass
class Meter:
    """Remembers what the kernel forgets when its peak is reset.

    Attributes:
        earlier: the largest size before the last reset, in bytes.
        imported: size after the imports, in bytes; 0 until ``note_imports``.
    """

    earlier: int = 0
    imported: int = 0

    def note_imports(self) -> None:
        """Take the present size as that of a process which has imported its library."""
        self.imported = resident_bytes()

    def settle(self) -> None:
        """Begin the peak anew: what building and compiling took for a while is left out of it.

        Where the system refuses, the peak goes on, and ``over_imports`` counts the building too.
        """
        gc.collect()
        self.earlier = self.peak()
        with contextlib.suppress(OSError):
            _CLEAR.write_text(_RESET_PEAK)

    def peak(self) -> int:
        """Return the largest size that this process has had."""
        return max(self.earlier, peak_bytes())

    def over_imports(self) -> int:
        """Return the largest size since ``settle``, over the size after the imports."""
        return max(0, peak_bytes() - self.imported)


# The one of this process.
METER = Meter()


def resident_bytes() -> int:
    """Return the resident size of this process, 0 where the system does not tell."""
    return _status("VmRSS") or 0


def peak_bytes() -> int:
    """Return the largest resident size that the kernel remembers.

    The kernel's figure for the address space is preferred to ``getrusage``, which still counts
    the memory of the parent that started this process.
    """
    peak = _status("VmHWM")
    if peak is not None:
        return peak
    import resource
    import sys

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def thread_count() -> int:
    """Return the number of threads of this process, 0 where the system does not tell."""
    return _status("Threads", unit=1) or 0


def _status(key: str, unit: int = 1024) -> int | None:
    """Return a line of the kernel's account of this process, None if there is none."""
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * unit
    return None
