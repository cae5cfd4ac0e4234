"""Threads of pipelines: they end with their iterator, and with the process."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable

from headrace.errors import CancelledError
from headrace.extend.state import Cancellation

# How long the end of a process waits for its threads, in seconds.
_PATIENCE_S = 1.0

_LIFETIMES: weakref.WeakSet[Lifetime] = weakref.WeakSet()
_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


class Lifetime(Cancellation):
    """How long an iterator lives: cancelled when its session closes, or the process ends."""

    __slots__ = ("__weakref__", "_held")

    def __init__(self) -> None:
        super().__init__("an iterator")
        self._held: list[threading.Lock] = []
        _LIFETIMES.add(self)

    def hold(self, lock: threading.Lock) -> None:
        """Take a lock until the position is saved, so that no thread moves on meanwhile."""
        lock.acquire()
        self._held.append(lock)

    def release(self) -> None:
        """Let the threads go on."""
        held, self._held = self._held, []
        for lock in held:
            lock.release()


def start_thread(target: Callable[[], None], name: str) -> None:
    """Run a function in a thread; it must return when the lifetime of its iterator is cancelled."""
    thread = threading.Thread(target=target, name=f"headrace-data-{name}", daemon=True)
    _THREADS.add(thread)
    thread.start()


@atexit.register
def _end() -> None:
    """End all threads before the interpreter does, which would stop them anywhere."""
    for lifetime in list(_LIFETIMES):
        lifetime.cancel(CancelledError("the process ends"))
    until = time.monotonic() + _PATIENCE_S
    for thread in list(_THREADS):
        thread.join(max(0.0, until - time.monotonic()))
