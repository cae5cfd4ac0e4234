"""What a thread sleeps on until another one wakes it."""

from __future__ import annotations

import threading
import time
from typing import Protocol, final


class Bell(Protocol):
    """What other processes ring."""

    def sleep(self, heard: int, seconds: float) -> None:
        """Sleep until it rings, unless it has done so since ``heard``."""

    def stay(self) -> None:
        """Do not sleep after all."""

    def ring(self) -> None:
        """Wake who sleeps."""


@final
class Wakeup:
    """A flag that one thread waits for, and that any thread or handler can raise.

    Attributes:
        woken: Whether it is raised. Who has waited for it takes it down.
    """

    __slots__ = ("_door", "_lock", "woken")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        # What the waiting thread sleeps on, where that is not the lock.
        self._door: Bell | None = None
        self.woken = False

    def wake(self) -> None:
        """End the wait, or the next one if none is under way."""
        self.woken = True
        self.ring()

    def ring(self) -> None:
        """Make the waiting thread look again, without ending its wait."""
        # Releasing a lock that is free means that it was rung already.
        try:  # noqa: SIM105 - it is called for each step
            self._lock.release()
        except RuntimeError:
            pass
        door = self._door
        if door is not None:
            door.ring()

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until woken, for so many seconds at most; return whether it was.

        The flag is ready for another wait then.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.woken:
            if deadline is None:
                self._lock.acquire()
            else:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._lock.acquire(timeout=left)
        self.woken = False
        return True

    def sleep(self, seconds: float) -> None:
        """Sleep until woken or rung, for about ``seconds`` at most."""
        self._lock.acquire(timeout=seconds)

    def sleep_by(self, bell: Bell, heard: int, seconds: float) -> None:
        """Sleep like ``sleep``, or until a bell rings.

        Args:
            bell: The bell.
            heard: What its ``listen`` said.
            seconds: For how long at most, about.
        """
        self._door = bell
        # Who rings now rings the bell, too, and it has been listened to before.
        if self._lock.acquire(blocking=False):
            bell.stay()
        else:
            bell.sleep(heard, seconds)
            self._lock.acquire(blocking=False)
        self._door = None
