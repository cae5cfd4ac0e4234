"""Active rings: a few are read at a time where more ranks than cores talk to one that serves.

Ranks that poll share cores well as long as there are few of them: each gives its core away when it
has nothing to do, and is back before its caches are cold. With many, each waits for so long that it
sleeps, and wakes up for every answer. So the one that serves reads the messages of a few ranks
only, which have a *seat*. The others sleep meanwhile, and take the seats of those that have had one
for longest, or that say nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import final

from headrace_mpi.shared_memory.core_affinity import current_core
from headrace_mpi.shared_memory.links import Links

# For each core but that of the rank that serves: while one computes, another one is answered.
_SEATS_OF_CORE = 2
# For how long a seat is had at least where others wait for one, unless nothing is heard meanwhile.
TURN_S = 0.006
# Who has said nothing for once or twice as long gives its seat to who waits for one.
QUIET_S = 0.0005
# Who has read so often without a rest is busy.
BUSY = 64


def seats_on(cores: int) -> int:
    """Return how many ranks should be read at a time on so many cores."""
    return _SEATS_OF_CORE * max(cores - 1, 1)


@final
class ActiveRings:
    """Reads those rings of a rank whose ranks have seats."""

    def __init__(self, links: Links, seats: int) -> None:
        """Begin with all seats free.

        Args:
            links: The rings.
            seats: How many are read at a time, at least one.
        """
        self._links = links
        self._rings = links.ranks - 1
        self._seats = seats
        # Since when rings have seats, those that have had one for longest first.
        self._since: dict[int, float] = {}
        # Those that said something since it was looked last, and when to look again.
        self._heard: set[int] = set()
        self._look_at = 0.0
        # When the turn of the first one ends.
        self._ends_at = 0.0
        self._next = 0
        # How often something was read since the last rest.
        self._read = 0

    def rest(self) -> None:
        """Note that nothing has come for a while."""
        if self._read >= BUSY:
            self._links.tell_core(-1)
        self._read = 0

    def receive(self, most: int) -> Sequence[tuple[int, bytearray]]:
        """Return messages that have come, each with its sender; at most so many of each.

        One thread at a time may do so.

        Raises:
            ValueError: if a ring holds no message where one should be.
        """
        links, heard = self._links, self._heard
        if not links.waiting:
            return ()
        self._read += 1
        if self._read % BUSY == 0:
            links.tell_core(current_core())
        found: list[tuple[int, bytearray]] = []
        for index in self._since:
            if links.has(index):
                heard.add(index)
                links.receive_from(index, found, most)
        if links.waiting:
            for index in self._seated():
                links.receive_from(index, found, most)
        return found

    def _seated(self) -> list[int]:
        """Give seats to those that wait for one, and return them."""
        now = time.monotonic()
        free = self._seats - len(self._since)
        if not free and now < self._look_at and now < self._ends_at:
            return []
        leaving = [] if free else self._leaving(now)
        seated = []
        order = range(self._next, self._next + self._rings)
        for index in (at % self._rings for at in order):
            if index in self._since or not self._links.has(index):
                continue
            if free:
                free -= 1
            elif leaving:
                gone = leaving.pop()
                del self._since[gone]
                self._links.pass_over(gone, True)
            else:
                break
            self._since[index] = now
            self._links.pass_over(index, False)
            seated.append(index)
            self._next = index + 1
        if seated:
            self._heard.update(seated)
            self._ends_at = next(iter(self._since.values())) + TURN_S
            if len(self._since) == self._seats:
                for index in range(self._rings):
                    if index not in self._since:
                        self._links.pass_over(index, True)
        return seated

    def _leaving(self, now: float) -> list[int]:
        """Return those whose seats are to be had, the first to go last."""
        leaving = []
        if now >= self._ends_at:
            leaving.append(next(iter(self._since)))
        if now >= self._look_at:
            self._look_at = now + QUIET_S
            leaving += [at for at in self._since if at not in self._heard and at not in leaving]
            self._heard.clear()
        return leaving
