"""What a thread waits on while it drives the transport, or while another thread does."""

from __future__ import annotations

import contextlib
import threading
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, final


class Waits(Protocol):
    """A wait that can be ended, and that can be disturbed without ending it."""

    @property
    def woken(self) -> bool:
        """Whether the wait is over."""

    def ring(self) -> None:
        """Make the waiting thread look again, without ending its wait."""

    def sleep(self, timeout_s: float) -> None:
        """Sleep until woken or rung, at most ``timeout_s``."""


@final
class Waiter:
    """What a thread waits on: a flag that any thread or handler can raise."""

    __slots__ = ("_bell", "woken")

    def __init__(self) -> None:
        self._bell = threading.Lock()
        self._bell.acquire()
        self.woken = False

    def wake(self) -> None:
        """End the wait, or the next one if none is under way."""
        self.woken = True
        self.ring()

    def ring(self) -> None:
        """Make the waiting thread look again, without ending its wait."""
        # Releasing a lock that is free means that the bell rings already.
        with contextlib.suppress(RuntimeError):
            self._bell.release()

    def sleep(self, timeout_s: float) -> None:
        """Sleep until woken or rung, at most ``timeout_s``."""
        self._bell.acquire(timeout=timeout_s)


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
            self._get(0)
        return self._here

    def ring(self) -> None:
        """Make the waiting thread look again, without ending its wait."""
        self._queue.put(_RING)

    def sleep(self, timeout_s: float) -> None:
        """Sleep until the item comes or the bell rings, at most ``timeout_s``."""
        if not self._here:
            self._get(timeout_s)

    def _get(self, timeout_s: float) -> None:
        with contextlib.suppress(Empty):
            item = self._queue.get(timeout=timeout_s)
            if item is not _RING:
                self.item = item
                self._here = True
