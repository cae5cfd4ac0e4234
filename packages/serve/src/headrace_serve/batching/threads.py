"""Threads that run steps, for an event loop that waits for them."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

_Job: TypeAlias = "tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]"


class StepThreads:
    """A number of threads, started on first use.

    They are daemons: a step that never ends does not keep the process from ending, as the threads
    of ``concurrent.futures`` would.
    """

    def __init__(self, count: int, name: str) -> None:
        """Make them, not started."""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{index}", daemon=True)
            for index in range(count)
        ]
        self._started = False

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Call a function in one of the threads; for the running event loop."""
        if not self._started:
            self._started = True
            for thread in self._threads:
                thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((loop, future, function))
        return future

    def close(self) -> None:
        """Let the threads end when they are done with what they were asked."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, function = job
            try:
                result, error = function(), None
            except BaseException as raised:
                result, error = None, raised
            try:
                loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:
                # The loop is closed: nobody waits any more.
                return
            del job, future, function, result, error


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        failure = error if isinstance(error, Exception) else RuntimeError(repr(error))
        future.set_exception(failure)
