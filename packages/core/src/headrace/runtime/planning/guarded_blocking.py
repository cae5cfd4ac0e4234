"""Blocking kernels of other packages: one answer each, and an end when their step ends.

A blocking kernel answers from any thread, at any time, and may add functions to the cancellation of
its step. One that answers twice, whose function fails, or that does not hear of the cancellation
must not confuse or hold up the step: it gets a cancellation of its own, and its node is settled
with whatever comes first, its answer or the end of the step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.errors import PluginError
from headrace.plugins.kernel_checks import Guard, read_only
from headrace.runtime.concurrency.cancellation import Cancellation

if TYPE_CHECKING:
    from headrace.runtime.execution.step import Step

_NOTHING: Any = object()


class GuardedBlocking:
    """The call ``(step, done, *values)`` of a node with a blocking kernel of another package."""

    __slots__ = ("_call", "_guard")

    def __init__(self, guard: Guard, call: Callable[..., Any]) -> None:
        self._guard = guard
        self._call = call

    def __call__(self, step: Step, done: Callable[[Any], None], *values: Any) -> None:
        """Start the kernel; ``done`` gets its outputs or an error, once."""
        given = [read_only(value) for value in values]
        answer = _Answer(self._guard, step, done, given)
        try:
            self._call(answer.step, answer, *given)
        except Exception as error:
            answer.drop()
            self._guard.blame(error)
            raise
        answer.start()


class _Answer:
    """What a kernel calls with its outputs.

    Nothing is told before the kernel has returned, as it may still fail.
    """

    __slots__ = (
        "_done",
        "_given",
        "_guard",
        "_key",
        "_lock",
        "_started",
        "_told",
        "_value",
        "step",
    )

    def __init__(
        self, guard: Guard, step: Step, done: Callable[[Any], None], given: list[Any]
    ) -> None:
        self._guard = guard
        self._done = done
        self._given = given
        self._lock = threading.Lock()
        self._value = _NOTHING
        self._started = False
        self._told = False
        self.step = step.with_cancellation(Cancellation(guard.name))
        outer = step.cancellation
        inner = self.step.cancellation

        def end(reason: BaseException) -> None:
            inner.cancel(reason)
            self._settle(reason)

        self._key = outer, outer.add(end)

    def __call__(self, value: Any) -> None:
        """Take the answer of the kernel.

        Raises:
            PluginError: if it has answered before.
        """
        if not self._settle(value) and self.step.cancellation.reason is None:
            raise PluginError(
                f"{self._guard.name} answered twice for {self._guard.op.type} "
                f"{self._guard.op.name!r}; it must call done once"
            )

    def start(self) -> None:
        """Tell the answer, now or when it comes: the kernel has returned."""
        with self._lock:
            self._started = True
        self._tell()

    def drop(self) -> None:
        """Tell nothing any more: the kernel has failed."""
        with self._lock:
            self._told = True
        self._forget()

    def _settle(self, value: Any) -> bool:
        """Take a value, unless there is one; return whether it was taken."""
        with self._lock:
            if self._value is not _NOTHING:
                return False
            self._value = value
        self._tell()
        return True

    def _tell(self) -> None:
        with self._lock:
            ready = self._started and self._value is not _NOTHING and not self._told
            self._told = self._told or ready
        if ready:
            self._forget()
            self._done(self._checked(self._value))

    def _forget(self) -> None:
        cancellation, key = self._key
        cancellation.discard(key)

    def _checked(self, value: Any) -> Any:
        """Return the outputs, or the error, that the executor gets."""
        if isinstance(value, BaseException):
            if value is not self.step.cancellation.reason:
                self._guard.blame(value)
            return value
        try:
            return self._guard.accept(self._given, self._guard.listed(value))
        except PluginError as error:
            return error
