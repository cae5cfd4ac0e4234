"""What a thread waits on while it drives the transport, or while another thread does."""

from __future__ import annotations

import contextlib
import threading
import time
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, final


class Bell(Protocol):
    """What other processes ring."""

    def sleep(self, heard: int, seconds: float) -> None:
        """Sleep until it rings, unless it has done so since ``heard``."""

    def stay(self) -> None:
        """Do not sleep after all."""

    def ring(self) -> None:
        """Wake who sleeps."""


class Waits(Protocol):
    """A wait that can be ended, and that can be disturbed without ending it."""

    @property
    def woken(self) -> bool:
        """Whether the wait is over."""

    def ring(self) -> None:
        """Make the waiting thread look again, without ending its wait."""

    def nap(self, seconds: float) -> None:
        """Sleep between two looks at what may have come: about ``seconds``, or until woken."""

    def nap_by(self, bell: Bell, heard: int, seconds: float) -> None:
        """Sleep like ``nap``, or until the bell rings; ``heard`` is what its ``listen`` said."""

    def sleep(self, timeout_s: float) -> None:
        """Sleep until woken or rung, at most about ``timeout_s``."""


@final
class Waiter:
    """What a thread waits on: a flag that any thread or handler can raise."""

    __slots__ = ("_bell", "_door", "woken")

    def __init__(self) -> None:
        self._bell = threading.Lock()
        self._bell.acquire()
        # What the waiting thread sleeps on, where that is not the lock.
        self._door: Bell | None = None
        self.woken = False

    def wake(self) -> None:
        """End the wait, or the next one if none is under way."""
        self.woken = True
        self.ring()

    def ring(self) -> None:
        """Make the waiting thread look again, without ending its wait."""
        # Releasing a lock that is free means that the bell rings already.
        try:  # noqa: SIM105 - it is called for each step
            self._bell.release()
        except RuntimeError:
            pass
        door = self._door
        if door is not None:
            door.ring()

    def nap_by(self, bell: Bell, heard: int, seconds: float) -> None:
        """Sleep for about ``seconds``, or until woken or rung, or the bell rings."""
        self._door = bell
        # Who rings now rings the bell, too, and it has been listened to before.
        if self._bell.acquire(blocking=False):
            bell.stay()
        else:
            bell.sleep(heard, seconds)
            self._bell.acquire(blocking=False)
        self._door = None

    def nap(self, seconds: float) -> None:
        """Sleep for about ``seconds``, or until woken or rung."""
        self._bell.acquire(timeout=seconds)

    sleep = nap


_RING: Final = object()


@final
class QueueWaiter:
    """The wait for one item of a queue, which any thread can put."""

    __slots__ = ("_here", "_queue", "item")

    def __init__(self, queue: SimpleQueue[Any]) -> None:
        self._queue = queue
        self._here = False
        self.item: Any = None

    @property
    def woken(self) -> bool:
        """Whether the item is there."""
        if not (self._here or self._queue.empty()):
            self._get(block=False)
        return self._here

    def ring(self) -> None:
        """Make the waiting thread look again, without ending its wait."""
        self._queue.put(_RING)

    # No call below has a short timeout: SimpleQueue.get(timeout=...) may wait for ever when it is
    # woken without an item, or by a signal, just as its time ends (it then goes on to wait with
    # the time that is left, which is negative; seen with CPython 3.11).

    def nap(self, seconds: float) -> None:
        """Sleep for about ``seconds``; the item may come meanwhile."""
        if not self.woken:
            time.sleep(seconds)

    def nap_by(self, bell: Bell, heard: int, seconds: float) -> None:
        """Sleep for about ``seconds``, or until the bell rings; the item may come meanwhile."""
        if self.woken:
            bell.stay()
        else:
            bell.sleep(heard, seconds)

    def sleep(self, timeout_s: float) -> None:
        """Sleep until the item comes or the bell rings. There is no time limit."""
        if not self._here:
            self._get(block=True)

    def _get(self, *, block: bool) -> None:
        with contextlib.suppress(Empty):
            item = self._queue.get(block)
            if item is not _RING:
                self.item = item
                self._here = True
