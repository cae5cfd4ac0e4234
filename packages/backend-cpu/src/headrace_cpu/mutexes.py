"""Mutexes whose users wait without holding a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, final

from headrace.errors import CancelledError, ResourceStateError
from headrace.extend.state import Cancellation, WaitingLine, apart


@final
class MutexLock:
    """The lock of a mutex, in the hands of one node.

    It is given back once: by ``release``, when its step is cancelled, or when nothing refers to it
    any more.
    """

    __slots__ = ("_cancellation", "_key", "_mutex", "_reason")

    def __init__(self, mutex: Mutex, cancellation: Cancellation | None) -> None:
        self._mutex = mutex
        self._cancellation = cancellation
        self._key = 0
        self._reason: BaseException | None = None

    def watch(self) -> None:
        """Give the lock back if its step fails."""
        if self._cancellation is not None:
            self._key = self._cancellation.add(self._lost)

    def _lost(self, reason: BaseException) -> None:
        self._reason = reason
        self._mutex.give_back(self)

    def release(self) -> None:
        """Give the lock back.

        Raises:
            ResourceError: if that was done before.
            BaseException: the reason for which its step is being ended, if it is.
        """
        if self._cancellation is not None:
            self._cancellation.discard(self._key)
        if not self._mutex.give_back(self):
            if self._reason is not None:
                raise self._reason
            raise ResourceStateError(f"the lock of mutex {self._mutex.name!r} was released before")

    def __del__(self) -> None:
        apart(self._mutex.give_back, self)


@final
class Mutex:
    """A mutex, whose lock passes on in the order of arrival.

    Attributes:
        name: The name in its container.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        # The id of the lock in use: a reference would keep a forgotten one.
        self._holder: int | None = None
        # Locks may be given back by their destructors, at any point of any thread.
        self._lock = threading.RLock()
        self._waiting = WaitingLine(self._lock)

    @property
    def unfilled(self) -> str:
        """What to do where nobody gives the lock back, for reports."""
        return "whoever has its lock has not given it back: release it, or let its step end"

    def describe(self) -> str:
        """Return which mutex this is, for reports of those that wait."""
        return f"mutex {self.name!r}, whose lock {'is in use' if self.is_held else 'is free'}"

    @property
    def is_held(self) -> bool:
        """Whether a lock is in use."""
        return self._holder is not None

    def acquire(
        self, done: Callable[[Any], None], cancellation: Cancellation | None = None
    ) -> None:
        """Take the lock when it is free.

        Args:
            done: Called once: with the lock, or with an exception.
            cancellation: Ends the waiting, or gives the lock back.
        """
        with self._lock:
            if self._holder is None:
                waiter, lock = None, self._hand_to(cancellation)
            else:
                waiter, lock = self._waiting.add(done, cancellation), None
        if waiter is not None:
            waiter.watch()
        elif lock is not None:
            lock.watch()
            done(lock)

    def give_back(self, lock: MutexLock) -> bool:
        """Pass the lock on to who waits longest; return whether it was in use."""
        with self._lock:
            if self._holder != id(lock):
                return False
            self._holder = None
            waiter = self._waiting.pop()
            if waiter is None:
                return True
            following = self._hand_to(waiter.cancellation)
        following.watch()
        waiter.answer(following)
        return True

    def reset(self) -> None:
        """Take the lock from who has it, and fail all that wait."""
        with self._lock:
            self._holder = None
            waiting = self._waiting.clear()
        for waiter in waiting:
            waiter.answer(CancelledError(f"mutex {self.name!r} was reset"))

    def _hand_to(self, cancellation: Cancellation | None) -> MutexLock:
        lock = MutexLock(self, cancellation)
        self._holder = id(lock)
        return lock
