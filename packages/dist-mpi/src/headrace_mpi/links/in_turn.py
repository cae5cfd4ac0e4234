"""Reading one ring after the other, and staying for a while with who answers at once.

Where more ranks than cores talk to one that serves them, each answer wakes a rank that finds its
core's caches full of what others left there; its work then takes several times as long. So the one
that serves reads the messages of one rank only, as long as the next one comes at once. The others
sleep meanwhile, and have their turn soon.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import final

from headrace_mpi.links.links import Links

# How long a turn takes at most, and for how long the next message is waited for within it.
TURN_S = 0.002
WAIT_S = 0.0001
# Who let the server wait in vain is not waited for the next so many times, twice as many each time.
_MOST_SKIPPED = 4


@final
class InTurn:
    """Reads the rings of a rank in turn."""

    def __init__(self, links: Links) -> None:
        """Begin with the first."""
        self._links = links
        self._at = 0
        self._ends = 0.0
        self._skips = [0] * (links.ranks - 1)
        self._vain = [1] * (links.ranks - 1)

    def receive(self, most: int) -> Sequence[tuple[int, bytearray]]:
        """Return messages of one rank that have come, each with its sender; at most so many.

        Where only others have sent something, it may wait a moment. One thread at a time may do so.

        Raises:
            ValueError: if a ring holds no message where one should be.
        """
        links = self._links
        if not links.waiting:
            return ()
        now = time.monotonic()
        at = self._at
        if now < self._ends and (links.has(at) or self._comes(at, now)):
            return links.receive_from(at, most)
        count = len(self._vain)
        for step in range(1, count + 1):
            index = (at + step) % count
            if links.has(index):
                self._at = index
                links.give_turn(index)
                self._ends = now + TURN_S
                return links.receive_from(index, most)
        return ()

    def _comes(self, index: int, now: float) -> bool:
        """Wait a moment for the next message of a rank; return whether it has come."""
        if self._skips[index]:
            self._skips[index] -= 1
            return False
        end = now + WAIT_S
        while not self._links.has(index):
            if time.monotonic() >= end:
                self._skips[index] = self._vain[index]
                self._vain[index] = min(2 * self._vain[index], _MOST_SKIPPED)
                return False
        self._vain[index] = 1
        return True
