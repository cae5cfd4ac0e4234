"""The grace period after a loss: whether a program still saves what it has.

The first step after the loss raises it. What a program runs after that it runs because it knows,
and each such step that has not failed is a sign that it is not done yet. A step that began before
is none: it may wait for what a lost rank was to give.
"""

from __future__ import annotations

import threading
import time
from typing import final

# How long a program may do nothing about a loss before it is ended.
GRACE_S = 4.0
# How long it may save in all.
SAVING_S = 20.0
# What a rank says of itself, or of another, takes so long at most to arrive.
TELL_S = 0.5
# How often a rank that still saves says so.
SAY_S = 0.5


@final
class Saving:
    """The steps of a program that knows of a loss.

    Attributes:
        begun: Whether there was a loss that ends the job; steps are noted from then on.
    """

    def __init__(self) -> None:
        """There was no loss."""
        self.begun = False
        self._under_way: set[object] = set()
        self._last = 0.0
        self._lock = threading.Lock()

    def begin(self, step: object) -> None:
        """Note that a step begins after the loss."""
        with self._lock:
            self._under_way.add(step)

    def end(self, step: object, *, failed: bool) -> None:
        """Note that a step ends; of one that began before the loss, nothing."""
        with self._lock:
            if step in self._under_way:
                self._under_way.discard(step)
                if not failed:
                    self._last = time.monotonic()

    @property
    def last_sign(self) -> float:
        """When the program last ran a step, by ``time.monotonic``; 0 if it has not."""
        with self._lock:
            return time.monotonic() if self._under_way else self._last
