"""A pool of buffers for results, reused when nobody holds what is in them.

The first write to fresh memory costs more than the sum that is written: the system has to find and
clear each page. A buffer is idle when the pool alone refers to it, which Python's reference count
tells, as it does for variables that are updated in place (decision 25). Results are views of the
buffer, and a view of a view refers to the buffer, too.
"""

from __future__ import annotations

import sys
import threading
from math import prod
from typing import Any, final

import numpy as np

Array = np.ndarray[Any, Any]

# Below this numpy's own memory is as good.
LEAST_BYTES = 1 << 20
_MOST_IDLE = 6
_MOST_IDLE_BYTES = 1 << 30
_SPARE = 1.25


@final
class Buffers:
    """Buffers of any size."""

    def __init__(self, most_idle: int = _MOST_IDLE) -> None:
        """Start without any.

        Args:
            most_idle: How many buffers that nobody holds are kept; fewer where they are large.
        """
        self._most_idle = most_idle
        self._known: list[Array] = [np.empty(1, np.uint8)]
        self._lock = threading.Lock()
        # What the count is of a buffer that nobody holds, seen from where the pool looks.
        self._idle_count = self._count(0)

    def _count(self, place: int) -> int:
        return sys.getrefcount(self._known[place])

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array whose elements may be anything."""
        kind = np.dtype(dtype)
        nbytes = prod(shape) * kind.itemsize
        if nbytes < LEAST_BYTES or kind.hasobject:
            return np.empty(shape, kind)
        with self._lock:
            buffer = self._idle(nbytes)
            if buffer is None:
                buffer = np.empty(nbytes, np.uint8)
                self._known.append(buffer)
            found: Array = buffer[:nbytes].view(kind).reshape(shape)
            return found

    def _idle(self, nbytes: int) -> Array | None:
        idle = [p for p in range(1, len(self._known)) if self._count(p) == self._idle_count]
        fitting = [p for p in idle if nbytes <= self._known[p].nbytes <= _SPARE * nbytes]
        if fitting:
            # What was used last is in the cache, and those not used go.
            buffer = self._known.pop(min(fitting, key=lambda p: self._known[p].nbytes))
            self._known.append(buffer)
            return buffer
        # Of those that nobody holds, the ones used last stay.
        kept = nbytes
        for count, place in enumerate(reversed(idle), 1):
            kept += self._known[place].nbytes
            if count >= self._most_idle or kept > _MOST_IDLE_BYTES:
                del self._known[place]
        return None
