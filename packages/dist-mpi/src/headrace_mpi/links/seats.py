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

# How long a turn takes at most, and for how long a message is waited for within it: the first one
# longer, as who sends it has to wake up.
TURN_S = 0.003
WAIT_S = 0.0002
FIRST_WAIT_S = 0.0005
# Who let the server wait in vain is not waited for so long, twice as long each time.
_PAUSE_S = 0.002
LONGEST_PAUSE_S = 0.016


@final
class InTurn:
    """Reads the rings of a rank in turn."""

    def __init__(self, links: Links) -> None:
        """Begin with the first."""
        self._links = links
        self._at = 0
        self._ends = 0.0
        # Whether the one that is read has answered in its turn.
        self._answered = False
        self._paused_until = [0.0] * (links.ranks - 1)
        self._pauses = [_PAUSE_S] * (links.ranks - 1)

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
            self._answered = True
            return links.receive_from(at, most)
        count = len(self._pauses)
        for step in range(1, count + 1):
            index = (at + step) % count
            if links.has(index):
                self._at = index
                self._answered = False
                links.give_turn(index)
                self._ends = now + TURN_S
                return links.receive_from(index, most)
        return ()

    def _comes(self, index: int, now: float) -> bool:
        """Wait a moment for the next message of a rank; return whether it has come."""
        if now < self._paused_until[index]:
            return False
        end = now + (WAIT_S if self._answered else FIRST_WAIT_S)
        while not self._links.has(index):
            if time.monotonic() >= end:
                self._paused_until[index] = end + self._pauses[index]
                self._pauses[index] = min(2 * self._pauses[index], LONGEST_PAUSE_S)
                return False
        self._pauses[index] = _PAUSE_S
        return True
