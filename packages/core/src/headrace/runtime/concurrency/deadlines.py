"""Deadlines: calling functions at a time, all by one thread that sleeps in between."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from headrace.errors import DeadlineExceededError

# How many discarded functions may wait for their time beside those that still count.
_SPARE = 64
_NOT_KNOWN = (
    "expected it to be: a step that waits for a queue says for which after Config(wait_report=...) "
    "seconds, and one that works takes a longer timeout"
)


class Deadlines:
    """Functions that wait for their time. The thread starts with the first one."""

    def __init__(self) -> None:
        # When which function is due, and those that were not discarded, by number.
        self._waiting: list[tuple[float, int]] = []
        self._calls: dict[int, Callable[[], None]] = {}
        self._serial = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, seconds: float, call: Callable[[], None]) -> int:
        """Call a function in so many seconds, unless ``discard`` gets the number returned."""
        due = time.monotonic() + seconds
        with self._changed:
            key = next(self._serial)
            self._calls[key] = call
            heapq.heappush(self._waiting, (due, key))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="headrace deadlines", daemon=True
                )
                self._thread.start()
            elif self._waiting[0][1] == key:
                self._changed.notify()
        return key

    def discard(self, key: int) -> None:
        """Forget a function."""
        with self._changed:
            self._calls.pop(key, None)
            # Short steps with long deadlines would otherwise pile up until these are over.
            if len(self._waiting) > 2 * len(self._calls) + _SPARE:
                self._waiting = [entry for entry in self._waiting if entry[1] in self._calls]
                heapq.heapify(self._waiting)

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._waiting or self._waiting[0][0] > time.monotonic():
                    due = self._waiting[0][0] - time.monotonic() if self._waiting else None
                    self._changed.wait(due)
                _, key = heapq.heappop(self._waiting)
                call = self._calls.pop(key, None)
            if call is not None:
                call()


_DEADLINES = Deadlines()


def call_after(seconds: float, call: Callable[[], None]) -> Callable[[], None]:
    """Call a function in so many seconds, on a thread that all share: it must not wait.

    Args:
        seconds: When.
        call: The function.

    Returns:
        What takes it back, as long as it was not called.
    """
    key = _DEADLINES.add(seconds, call)
    return lambda: _DEADLINES.discard(key)


@contextmanager
def deadline(
    seconds: float | None,
    cancel: Callable[[BaseException], None],
    waits: Callable[[], Sequence[str]] = tuple,
) -> Iterator[None]:
    """Cancel what the block waits for when it takes longer than a time.

    Args:
        seconds: How long it may take; None for as long as it wants.
        cancel: Is called with a ``DeadlineExceededError``.
        waits: Returns lines of text on what is waited for then, for its message; none where that
            is not known.
    """
    if seconds is None:
        yield
        return

    def late() -> None:
        first, *rest = [*waits()] or [_NOT_KNOWN]
        text = "\n".join([f"the step was not done within {seconds:g} s; {first}", *rest])
        cancel(DeadlineExceededError(text))

    key = _DEADLINES.add(seconds, late)
    try:
        yield
    finally:
        _DEADLINES.discard(key)
