"""Callouts: threads for what operations call that is the program's own code, and may wait.

Such a call runs in a thread of its own only where other operations of its step could run in the
meantime. Threads are kept for the next call for a while, and never keep a process alive.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import final

# How many seconds a thread waits for the next call before it ends.
_PATIENCE = 5.0

_lock = threading.Lock()
_idle: list[_Caller] = []


@final
class _Caller(threading.Thread):
    """A thread that makes one call after the other."""

    def __init__(self) -> None:
        super().__init__(name="headrace-callout", daemon=True)
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                call = self.calls.get(timeout=_PATIENCE)
            except Empty:
                with _lock:
                    if self in _idle:
                        _idle.remove(self)
                        return
                # Somebody has just taken it off the list, to give it a call.
                call = self.calls.get()
            call()
            del call
            with _lock:
                _idle.append(self)


def call_out(call: Callable[[], None]) -> None:
    """Make a call in another thread, with the context variables of this one.

    Args:
        call: The call; it must not raise.
    """
    context = copy_context()
    with _lock:
        caller = _idle.pop() if _idle else None
    if caller is None:
        caller = _Caller()
        caller.start()
    caller.calls.put(lambda: context.run(call))


def idle_callers() -> int:
    """Return how many threads wait for calls, which can change nothing by themselves."""
    return len(_idle)


def _forget() -> None:
    """Forget threads that a forked process does not have, and a lock that nobody gives back."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
