"""Cancellation: telling everything that waits that its step is over."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Cancellation:
    """A flag of one step, with functions to call when it is set."""

    __slots__ = ("_callbacks", "_lock", "_next", "reason")

    def __init__(self) -> None:
        self.reason: BaseException | None = None
        self._callbacks: dict[int, Callable[[BaseException], None]] = {}
        self._next = 0
        self._lock = threading.Lock()

    def add(self, callback: Callable[[BaseException], None]) -> int:
        """Call ``callback(reason)`` on cancellation, at once if that was already.

        Returns:
            A key for ``discard``.
        """
        with self._lock:
            if self.reason is None:
                self._next += 1
                self._callbacks[self._next] = callback
                return self._next
            reason = self.reason
        callback(reason)
        return 0

    def discard(self, key: int) -> None:
        """Forget a callback."""
        with self._lock:
            self._callbacks.pop(key, None)

    def cancel(self, reason: BaseException) -> None:
        """Set the flag; the first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback(reason)
