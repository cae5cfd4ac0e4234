"""The queue of one signature: requests that wait, and the steps that answer them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from headrace_serve.batching.batch import (
    Result,
    agree,
    key_of,
    rows_of,
    run_alone,
    run_each,
    run_joined,
)
from headrace_serve.batching.threads import StepThreads
from headrace_serve.errors import UNAVAILABLE, RequestError
from headrace_serve.limits import Batching
from headrace_serve.models.signature import Array, Signature

_LOG = logging.getLogger("headrace.serve")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits for a step.

    Attributes:
        inputs: Its arrays.
        rows: How many rows they have.
        since: The time of the event loop when it came.
        answer: Gets what becomes of it.
    """

    inputs: dict[str, Array]
    rows: int
    since: float
    answer: asyncio.Future[dict[str, Array]]


class Batcher:
    """Answers the requests for one signature, several by one step where it can.

    Requests are joined whose arrays differ in the first axis only, in the order in which they
    came; among groups of different shapes the one goes first whose first request has waited
    longest. All methods belong to one event loop; steps run in threads.

    Attributes:
        waiting: How many requests wait for a step.
        joins: Whether requests are joined; turned off where a check shows that they must not be.
    """

    def __init__(
        self,
        signature: Signature,
        settings: Batching,
        *,
        name: str,
        on_step: Callable[[int, int], None] = lambda requests, rows: None,
    ) -> None:
        """Make one.

        Args:
            signature: What it answers for.
            settings: How it batches.
            name: What messages and threads call it.
            on_step: ``on_step(requests, rows)`` is told of each step that starts.
        """
        self.waiting = 0
        self.joins = settings.max_batch_size > 1 and signature.takes_batches
        self._signature = signature
        self._settings = settings
        self._name = name
        self._on_step = on_step
        self._unchecked = settings.check
        self._groups: dict[Hashable, deque[_Waiting]] = {}
        self._threads = StepThreads(settings.steps, f"headrace-serve-{name}")
        self._running = 0
        self._steps: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Return the outputs for a request.

        Raises:
            RequestError: with status 503, if too many requests wait already.
            Exception: whatever its step raises.
        """
        if self.waiting >= self._settings.max_queue:
            raise RequestError(
                UNAVAILABLE,
                f"{self.waiting} requests wait for {self._name} already, and no more may",
                retry_after="1",
            )
        loop = asyncio.get_running_loop()
        rows = rows_of(inputs) if self.joins else None
        request = _Waiting(inputs, rows or 0, loop.time(), loop.create_future())
        # One that cannot be joined is a group of its own.
        key: Hashable = request if rows is None else key_of(inputs)
        self._groups.setdefault(key, deque()).append(request)
        self.waiting += 1
        self._start_steps()
        try:
            return await request.answer
        finally:
            self._forget(key, request)

    async def close(self, timeout: float | None = None) -> bool:
        """Wait for the steps that run, and let the threads end.

        Args:
            timeout: The most seconds to wait, None for any number.

        Returns:
            Whether no step runs any more.
        """
        if self._steps:
            await asyncio.wait(self._steps, timeout=timeout)
        self._threads.close()
        return not self._steps

    def _forget(self, key: Hashable, request: _Waiting) -> None:
        """Take a request out of the queue that is no longer waited for."""
        group = self._groups.get(key)
        if group is not None and request in group:
            group.remove(request)
            self.waiting -= 1
            if not group:
                del self._groups[key]

    # -- which steps start when

    def _start_steps(self) -> None:
        """Start the steps that may start now, and see to it that others start when they may."""
        now = asyncio.get_running_loop().time()
        while self._running < self._settings.steps and (key := self._due(now)) is not None:
            batch = self._take(key)
            self._running += 1
            step = asyncio.create_task(self._step(batch))
            self._steps.add(step)
            step.add_done_callback(self._steps.discard)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._groups and self._running < self._settings.steps:
            first = min(group[0].since for group in self._groups.values())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(first + self._settings.max_delay, self._start_steps)

    def _due(self, now: float) -> Hashable | None:
        """Return the group that a step should take from, None where all may still wait."""
        due = [
            (group[0].since, index, key)
            for index, (key, group) in enumerate(self._groups.items())
            if isinstance(key, _Waiting)
            or now >= group[0].since + self._settings.max_delay
            or sum(request.rows for request in group) >= self._settings.max_batch_size
        ]
        return min(due, key=lambda item: item[:2])[2] if due else None

    def _take(self, key: Hashable) -> list[_Waiting]:
        """Take the requests of one step out of a group: the first, and what fits beside it."""
        group = self._groups[key]
        batch = [group.popleft()]
        rows = batch[0].rows
        while group and self.joins and rows + group[0].rows <= self._settings.max_batch_size:
            batch.append(group.popleft())
            rows += batch[-1].rows
        if not group:
            del self._groups[key]
        self.waiting -= len(batch)
        return batch

    # -- steps

    async def _step(self, batch: list[_Waiting]) -> None:
        self._on_step(len(batch), sum(request.rows for request in batch))
        try:
            requests = [request.inputs for request in batch]
            results: list[Result] = await self._threads.run(lambda: self._answers(requests))
        except Exception as error:
            results = [error] * len(batch)
        finally:
            self._running -= 1
        for request, result in zip(batch, results, strict=True):
            if request.answer.done():
                continue
            if isinstance(result, Exception):
                request.answer.set_exception(result)
            else:
                request.answer.set_result(result)
        self._start_steps()

    def _answers(self, requests: list[dict[str, Array]]) -> list[Result]:
        """Answer requests, in a thread; a request that fails does not fail its neighbours."""
        if len(requests) == 1:
            return [run_alone(self._signature, requests[0])]
        pad_to = self._settings.max_batch_size if self._settings.pad else 0
        joined = run_joined(self._signature, requests, pad_to=pad_to)
        if joined is not None and not self._unchecked:
            return [*joined]
        alone = run_each(self._signature, requests)
        if joined is None and not any(isinstance(result, Exception) for result in alone):
            self._stop_joining("a step of several requests fails that they do not fail alone")
        elif joined is not None:
            if not agree(joined, alone):
                self._stop_joining("requests get other answers together than one by one")
            self._unchecked = False
        return alone

    def _stop_joining(self, why: str) -> None:
        self.joins = False
        _LOG.warning("%s: %s; from now on each is answered by a step of its own", self._name, why)
