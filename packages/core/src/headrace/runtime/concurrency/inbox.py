"""An inbox: what other threads hand to a run, which may have been left until something comes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, final


@final
class Inbox:
    """What has come for a run, in order.

    Attributes:
        parked: Whether the run was left until something comes.
    """

    __slots__ = ("_items", "_lock", "_wake", "parked")

    def __init__(self, wake: Callable[[], None]) -> None:
        """Begin with nothing.

        Args:
            wake: Called once, by any thread, after ``park`` has returned True, when something has
                come.
        """
        self._items: deque[Any] = deque()
        self._wake = wake
        self._lock = threading.Lock()
        self.parked = False

    def put(self, item: Any) -> None:
        """Note what has come; from any thread."""
        self._items.append(item)
        with self._lock:
            parked, self.parked = self.parked, False
        if parked:
            self._wake()

    def park(self) -> bool:
        """Leave the run until something comes; return False if it has come."""
        if self._items:
            return False
        with self._lock:
            self.parked = not self._items
            return self.parked

    def take(self) -> Any:
        """Return what came first, which is there."""
        return self._items.popleft()
