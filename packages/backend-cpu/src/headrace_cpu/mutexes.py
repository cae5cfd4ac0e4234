"""Mutexes whose users wait without holding a thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, final

from headrace.errors import CancelledError, ResourceError
from headrace.runtime.cancellation import Cancellation


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
            raise ResourceError(f"the lock of mutex {self._mutex.name!r} was released before")

    def __del__(self) -> None:
        self._mutex.give_back(self)


class _Waiter:
    """Who waits for the lock.

    Attributes:
        answer: What to call with the lock, or with the exception that ended the waiting.
        cancellation: Of the step that waits.
        key: Of the callback there.
    """

    __slots__ = ("answer", "cancellation", "key")

    def __init__(self, answer: Callable[[Any], None], cancellation: Cancellation | None) -> None:
        self.answer = answer
        self.cancellation = cancellation
        self.key = 0


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
        self._waiting: deque[_Waiter] = deque()
        # Locks may be given back by their destructors, at any point of any thread.
        self._lock = threading.RLock()

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
        waiter = _Waiter(done, cancellation)
        with self._lock:
            if self._holder is None:
                lock = self._hand_to(waiter)
            else:
                lock = None
                self._waiting.append(waiter)
        if lock is not None:
            lock.watch()
            done(lock)
        elif cancellation is not None:
            key = cancellation.add(lambda reason: self._cancel(waiter, reason))
            with self._lock:
                waiter.key = key
                served = waiter not in self._waiting
            if served:
                # By another thread, which did not know the key yet.
                cancellation.discard(key)

    def give_back(self, lock: MutexLock) -> bool:
        """Pass the lock on to who waits longest; return whether it was in use."""
        with self._lock:
            if self._holder != id(lock):
                return False
            self._holder = None
            if not self._waiting:
                return True
            waiter = self._waiting.popleft()
            following = self._hand_to(waiter)
        if waiter.cancellation is not None:
            waiter.cancellation.discard(waiter.key)
        following.watch()
        waiter.answer(following)
        return True

    def reset(self) -> None:
        """Take the lock from who has it, and fail all that wait."""
        with self._lock:
            self._holder = None
            waiting = list(self._waiting)
            self._waiting.clear()
        for waiter in waiting:
            waiter.answer(CancelledError(f"mutex {self.name!r} was reset"))

    def _hand_to(self, waiter: _Waiter) -> MutexLock:
        lock = MutexLock(self, waiter.cancellation)
        self._holder = id(lock)
        return lock

    def _cancel(self, waiter: _Waiter, reason: BaseException) -> None:
        with self._lock:
            if waiter not in self._waiting:
                return
            self._waiting.remove(waiter)
        waiter.answer(reason)
