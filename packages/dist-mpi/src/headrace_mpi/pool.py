"""Threads for jobs that may wait on each other: never a limit, kept for reuse, daemons all.

A pool with a limit deadlocks as soon as the jobs that hold its threads wait for one that is still
queued, and a step on a parameter server does wait for other steps (a queue fills, a barrier
opens). So a job gets an idle thread, or a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import final

Job = Callable[[], None]

IDLE_S = 30.0


@final
class Pool:
    """Runs jobs, each at once on a thread of its own."""

    def __init__(self, name: str, on_error: Callable[[BaseException], None]) -> None:
        """Make a pool without threads.

        Args:
            name: The start of its threads' names.
            on_error: Called with what a job raises, on the job's thread.
        """
        self._name = name
        self._on_error = on_error
        self._lock = threading.Lock()
        self._idle: list[_Place] = []
        self._made = 0

    def run(self, job: Job) -> None:
        """Run ``job`` on another thread, now."""
        with self._lock:
            place = self._idle.pop() if self._idle else None
            if place is None:
                self._made += 1
        if place is None:
            name = f"{self._name}-{self._made}"
            threading.Thread(target=self._work, args=(job,), name=name, daemon=True).start()
        else:
            place.job = job
            place.bell.release()

    @property
    def idle(self) -> int:
        """Number of threads that wait for a job."""
        return len(self._idle)

    def _work(self, job: Job | None) -> None:
        place = _Place()
        while job is not None:
            try:
                job()
            except BaseException as error:
                self._on_error(error)
            # Nothing of the job may live on while the thread is idle.
            job = place.job = None
            with self._lock:
                self._idle.append(place)
            if not place.bell.acquire(timeout=IDLE_S):
                with self._lock:
                    if place in self._idle:
                        self._idle.remove(place)
                        return
                place.bell.acquire()
            job = place.job


class _Place:
    """Where an idle thread is handed its next job."""

    __slots__ = ("bell", "job")

    def __init__(self) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.job: Job | None = None
