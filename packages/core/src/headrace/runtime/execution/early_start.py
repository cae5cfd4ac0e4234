"""Blocking kernels that start while the region which makes their inputs still runs.

A region computes the gradients of all layers, the last layer's first, and hands them over when it
ends. What sends them to other tasks can do so as soon as each is there, and the others' answers
come while the region goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, final

from headrace.runtime.execution.step import Step

Done = Callable[[Any], None]


@final
class EarlyStart:
    """The call ``(step, done, *values)`` of a node whose kernel starts as soon as it can.

    A region hands the inputs over one by one; where it does not, as before its kernels are
    compiled, the kernel starts with the node.
    """

    def __init__(self, call: Callable[..., None], inputs: int) -> None:
        """Start nothing.

        Args:
            call: The kernel's call.
            inputs: How many inputs it has.
        """
        self._call = call
        self._inputs = inputs
        self._runs: dict[Step, _Run] = {}

    @property
    def started(self) -> int:
        """In how many steps it has taken inputs, and its node has not run; for tests."""
        return len(self._runs)

    def outlet(self, place: int) -> Callable[[Step, Any], Any]:
        """Return what takes an input in a step, while the region that makes it runs."""

        def take(step: Step, value: Any) -> Any:
            run = self._runs.get(step)
            if run is None:
                run = self._runs[step] = _Run()
                # A step that fails in the region never comes to the node.
                run.key = step.cancellation.add(lambda reason: self._forget(step))
            run.values[place] = value
            if len(run.values) == self._inputs:
                run.start(self._call, step, [run.values[i] for i in range(self._inputs)])
            return value

        return take

    def _forget(self, step: Step) -> None:
        self._runs.pop(step, None)

    def __call__(self, step: Step, done: Done, *values: Any) -> None:
        """Start the kernel unless it has started; ``done`` gets its outputs or an error, once.

        Raises:
            Exception: what the kernel raised when it started.
        """
        run = self._runs.pop(step, None)
        if run is not None:
            step.cancellation.discard(run.key)
        if run is not None and run.started:
            run.hand(done)
        else:
            self._call(step, done, *values)


class _Run:
    """A start in one step, until the node takes it over."""

    __slots__ = ("_answer", "_done", "_error", "_lock", "key", "started", "values")

    def __init__(self) -> None:
        self.key = 0
        self.values: dict[int, Any] = {}
        self.started = False
        self._error: Exception | None = None
        self._answer: list[Any] = []
        self._done: Done | None = None
        self._lock = threading.Lock()

    def start(self, call: Callable[..., None], step: Step, values: list[Any]) -> None:
        self.started = True
        try:
            call(step, self._answered, *values)
        except Exception as error:
            # It is the node's and not that of whatever the region computes now.
            self._error = error

    def _answered(self, value: Any) -> None:
        with self._lock:
            if self._done is None:
                self._answer.append(value)
                return
        self._done(value)

    def hand(self, done: Done) -> None:
        """Let a function have the answer, now or when it comes."""
        if self._error is not None:
            raise self._error
        with self._lock:
            self._done = done
            answer = self._answer
        for value in answer:
            done(value)
