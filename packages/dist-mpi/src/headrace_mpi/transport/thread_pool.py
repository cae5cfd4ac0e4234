"""A thread pool with few daemon threads, and more while a job waits too long for one.

Jobs end where they would have to wait for others, so a few threads do for any number of steps. But
nothing can keep the code of a kernel from waiting for what another job does, and a pool with a
limit would then stand still. So another thread takes up a job when no job has ended for a while.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import final

Job = Callable[[], None]

IDLE_S = 30.0
PATIENCE_S = 0.25


@final
class ThreadPool:
    """Runs jobs on threads of its own.

    Attributes:
        size: How many threads it has where no job waits long.
    """

    def __init__(self, name: str, on_error: Callable[[BaseException], None], size: int = 2) -> None:
        """Make a pool without threads.

        Args:
            name: The start of its threads' names.
            on_error: Called with what a job raises, on the job's thread.
            size: How many threads it has where no job waits long.
        """
        self.size = size
        self._name = name
        self._on_error = on_error
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._queue: deque[Job] = deque()
        # When a job last ended, or began to wait for a thread where none did.
        self._moved = 0.0
        self._made = 0
        self._alive = 0

    def run(self, job: Job) -> None:
        """Run ``job`` on another thread, as soon as one is free; see ``relieve``."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
            if worker is None and self._alive >= self.size:
                if not self._queue:
                    self._moved = time.monotonic()
                self._queue.append(job)
                return
            number = self._count(worker)
        self._start(worker, number, job)

    def relieve(self) -> None:
        """Add a thread if jobs wait for one and none has ended for a while.

        Somebody has to call this now and then.
        """
        if not self._queue:
            return
        with self._lock:
            now = time.monotonic()
            if not self._queue or now - self._moved < PATIENCE_S:
                return
            self._moved = now
            job = self._queue.popleft()
            number = self._count(None)
        # No thread starts any more when the interpreter ends.
        with contextlib.suppress(RuntimeError):
            self._start(None, number, job)

    def _count(self, worker: _Worker | None) -> int:
        if worker is None:
            self._made += 1
            self._alive += 1
        return self._made

    def _start(self, worker: _Worker | None, number: int, job: Job) -> None:
        if worker is not None:
            worker.job = job
            worker.bell.release()
            return
        name = f"{self._name}-{number}"
        try:
            threading.Thread(target=self._work, args=(job,), name=name, daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._alive -= 1
            raise

    @property
    def idle(self) -> int:
        """Number of threads that wait for a job."""
        return len(self._idle)

    def _work(self, job: Job | None) -> None:
        worker = _Worker()
        while job is not None:
            try:
                job()
            except BaseException as error:
                self._on_error(error)
            # Nothing of the job may live on while the thread is idle.
            job = worker.job = None
            with self._lock:
                self._moved = time.monotonic()
                if self._queue:
                    job = self._queue.popleft()
                    continue
                if self._alive > self.size:
                    self._alive -= 1
                    return
                self._idle.append(worker)
            if not worker.bell.acquire(timeout=IDLE_S):
                with self._lock:
                    if worker in self._idle:
                        self._idle.remove(worker)
                        self._alive -= 1
                        return
                worker.bell.acquire()
            job = worker.job


class _Worker:
    """Where an idle thread is handed its next job."""

    __slots__ = ("bell", "job")

    def __init__(self) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.job: Job | None = None
