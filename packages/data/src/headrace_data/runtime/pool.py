"""Workers: threads that make calls for a pipeline."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any

from headrace.extend.state import Cancellation
from headrace_data.runtime.threads import start_thread

_WAITING: Any = object()
# A worker without work leaves after this long, in seconds, and is started again when needed.
_IDLE_S = 5.0


class Job:
    """A piece of work, and what came of it."""

    __slots__ = ("_done", "_error", "_result")

    def __init__(self) -> None:
        self._done = threading.Lock()
        self._done.acquire()
        self._result: Any = _WAITING
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether something came of it."""
        return not self._done.locked()

    def work(self) -> Any:
        """Do it."""
        raise NotImplementedError

    def run(self) -> None:
        """Do it, and keep what comes of it."""
        try:
            self._result = self.work()
        except BaseException as error:
            self._error = error
        self._done.release()

    def fail(self, reason: BaseException) -> None:
        """Give it up before it was begun."""
        self._error = reason
        self._done.release()

    def result(self, lifetime: Cancellation) -> Any:
        """Return what came of it, waiting for that.

        Raises:
            BaseException: what it raised.
            CancelledError: if the iterator ends before it was begun.
        """
        with self._done:
            pass
        if self._error is not None:
            if lifetime.reason is not None:
                raise lifetime.reason
            raise self._error
        return self._result


class Workers:
    """Threads that do jobs in the order in which they come.

    Attributes:
        size: How many there are at most.
    """

    def __init__(self, size: int, lifetime: Cancellation) -> None:
        self.size = size
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._reason: BaseException | None = None
        lifetime.add(self._end)

    def submit(self, job: Job) -> None:
        """Add a job."""
        with self._changed:
            if self._reason is not None:
                job.fail(self._reason)
                return
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._changed.notify()
            elif self._threads < self.size:
                self._threads += 1
                start_thread(self._work, "worker")

    def _end(self, reason: BaseException) -> None:
        with self._changed:
            self._reason = reason
            left = list(self._jobs)
            self._jobs.clear()
            self._changed.notify_all()
        for job in left:
            job.fail(reason)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs:
                    self._idle += 1
                    woken = self._reason is not None or self._changed.wait(_IDLE_S)
                    self._idle -= 1
                    if self._reason is not None or (not woken and not self._jobs):
                        self._threads -= 1
                        return
                job = self._jobs.popleft()
            job.run()


def workers_for(lifetime: Cancellation, calls: int) -> Workers:
    """Return workers for as many calls at once, for -1 one for each processor."""
    return Workers(calls if calls > 0 else len(os.sched_getaffinity(0)), lifetime)
