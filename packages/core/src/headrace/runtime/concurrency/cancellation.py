"""Cancellation: telling everything that waits that its step is over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headrace.interrupts import uninterrupted
from headrace.plugins.error_attribution import described, line_of_error

# Guards all flags: each step has one, and nothing is done under it that takes time.
_lock = threading.Lock()


class Cancellation:
    """A flag of one step, with functions to call when it is set.

    Attributes:
        reason: Why it is set, None until then.
    """

    __slots__ = ("_callbacks", "_next", "_whose", "reason")

    def __init__(self, whose: str = "") -> None:
        """Start with the flag not set.

        Args:
            whose: Who adds functions, for messages about those that fail.
        """
        self._whose = whose
        self.reason: BaseException | None = None
        self._callbacks: dict[int, Callable[[BaseException], None]] = {}
        self._next = 0

    def add(self, callback: Callable[[BaseException], None]) -> int:
        """Call ``callback(reason)`` on cancellation, at once if that was already.

        Returns:
            A key for ``discard``.
        """
        with _lock:
            if self.reason is None:
                self._next += 1
                self._callbacks[self._next] = callback
                return self._next
            reason = self.reason
        self._call(callback, reason)
        return 0

    def discard(self, key: int) -> None:
        """Forget a callback."""
        with _lock:
            self._callbacks.pop(key, None)

    @uninterrupted
    def cancel(self, reason: BaseException) -> None:
        """Set the flag; the first reason counts.

        All functions are called. One that fails is noted on the reason, and holds up nobody.
        """
        with _lock:
            if self.reason is not None:
                return
            self.reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            self._call(callback, reason)

    def _call(self, callback: Callable[[BaseException], None], reason: BaseException) -> None:
        try:
            callback(reason)
        except (Exception, SystemExit) as error:
            whose = f" of {self._whose}" if self._whose else ""
            where = line_of_error(error, callback)
            reason.add_note(
                f"  a cancellation callback{whose} failed: {described(error)}, at {where}"
            )


class _Current(threading.local):
    """The step that a thread is at work for."""

    def __init__(self) -> None:
        self.cancellation = Cancellation()


# What runs inside of a compiled region is handed no step; what takes long there looks here if the
# step is over.
CURRENT = _Current()


def current_cancellation() -> Cancellation:
    """Return the flag of the step for which this thread is at work in a region."""
    return CURRENT.cancellation


def within_step(cancellation: Cancellation, run: Callable[[Any], Any], values: Any) -> Any:
    """Return what a program yields that runs for the step with a flag."""
    before, CURRENT.cancellation = CURRENT.cancellation, cancellation
    try:
        return run(values)
    finally:
        CURRENT.cancellation = before
