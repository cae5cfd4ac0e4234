"""Wait queues: blocking kernels that wait for a resource without a thread, served one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, final

from headrace.runtime.concurrency.cancellation import Cancellation


@final
class Waiter:
    """A blocking kernel that waits. It is answered once: by the resource, or by its step's end.

    Attributes:
        cancellation: Of the step that waits, None where nothing ends it.
        served: Whether it is out of the line: its answer is on the way, or given.
        wanted: What it waits for, if the resource needs to know.
    """

    __slots__ = ("_done", "_key", "_line", "cancellation", "served", "wanted")

    def __init__(
        self,
        line: WaitingLine,
        done: Callable[[Any], None],
        cancellation: Cancellation | None,
        wanted: Any,
    ) -> None:
        self._line = line
        self._done = done
        self._key: int | None = None
        self.served = False
        self.cancellation = cancellation
        self.wanted = wanted

    def watch(self) -> None:
        """Let the end of the step end the waiting; to be called without the resource's lock."""
        if self.cancellation is None:
            return
        key = self.cancellation.add(self._cancel)
        with self._line.lock:
            self._key = key
            served = self.served
        if served:
            # By another thread, which did not know the key yet.
            self.cancellation.discard(key)

    def answer(self, result: Any) -> None:
        """Hand over outputs, or an exception; to be called without the resource's lock.

        Only who got the waiter from ``WaitingLine.pop`` or ``clear`` may answer it.
        """
        if self.cancellation is not None and self._key is not None:
            self.cancellation.discard(self._key)
        self._done(result)

    def _cancel(self, reason: BaseException) -> None:
        if self._line.leave(self):
            self._done(reason)


@final
class WaitingLine:
    """Blocking kernels that wait for a resource, in order of arrival.

    The methods that change the line are called with the resource's lock held, so that the line
    and the resource's state change together; those of ``Waiter`` are called without it, since
    they run what other threads and plugins gave.

    Attributes:
        lock: The resource's lock.
    """

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        """Make an empty line.

        Args:
            lock: The resource's lock, a ``threading.Lock`` or ``RLock``.
        """
        self.lock = lock
        self._waiters: deque[Waiter] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    def add(
        self, done: Callable[[Any], None], cancellation: Cancellation | None, wanted: Any = None
    ) -> Waiter:
        """Put a kernel at the end of the line, with the lock held; ``watch`` must follow.

        Args:
            done: What to call with the outputs or an exception.
            cancellation: ``step.cancellation`` of the kernel.
            wanted: Kept as ``Waiter.wanted``.
        """
        waiter = Waiter(self, done, cancellation, wanted)
        self._waiters.append(waiter)
        return waiter

    def first(self) -> Waiter | None:
        """Return who waits longest, and leave it in the line."""
        return self._waiters[0] if self._waiters else None

    def pop(self) -> Waiter | None:
        """Take who waits longest out of the line, with the lock held; ``answer`` must follow."""
        if not self._waiters:
            return None
        waiter = self._waiters.popleft()
        waiter.served = True
        return waiter

    def clear(self) -> list[Waiter]:
        """Take all out of the line, with the lock held; each is to be answered."""
        waiters = list(self._waiters)
        self._waiters.clear()
        for waiter in waiters:
            waiter.served = True
        return waiters

    def leave(self, waiter: Waiter) -> bool:
        """Take one out of the line, wherever it stands; False if it was served already."""
        with self.lock:
            if waiter.served:
                return False
            waiter.served = True
            self._waiters.remove(waiter)
            return True
