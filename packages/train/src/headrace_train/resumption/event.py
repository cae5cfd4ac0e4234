"""The event of a model that is ready, for processes that wait for the one that prepares it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, final

import headrace as hr
from headrace import Graph, Operation, Tensor
from headrace.extend.devices import DeviceName
from headrace.extend.state import Cancellation, WaitingLine, call_after
from headrace_train.resumption.readiness import (
    model_event,
    model_event_count,
    model_event_signal,
    model_event_wait,
)

_COLLECTION = "model_ready_event"


class ReadyEvent(NamedTuple):
    """The operations of the event in a graph.

    Attributes:
        signal: Tells that the model is ready.
        times: How often that was told.
        seen: To be fed: how often it had been told before.
        timeout_secs: To be fed: how long to wait.
        wait: Waits until it is told again.
    """

    signal: Operation
    times: Tensor
    seen: Tensor
    timeout_secs: Tensor
    wait: Tensor

    def told(self, session: Any) -> int:
        """Return how often processes were told that the model is ready."""
        return int(session.run(self.times))

    def await_next(self, session: Any, seen: int, timeout_secs: float) -> None:
        """Wait until they are told once more, or some time is over.

        Args:
            session: The session.
            seen: How often they had been told.
            timeout_secs: For how long.
        """
        session.run(self.wait, {self.seen: seen, self.timeout_secs: timeout_secs})


def ready_event(graph: Graph) -> ReadyEvent | None:
    """Return the event of a graph, None where other processes cannot share it."""
    found = graph.get_collection(_COLLECTION)
    return found[0] if found else None


def add_ready_event(graph: Graph) -> None:
    """Add the event to a graph whose variables other processes may share.

    It is where the first variable is, in the same container: whoever shares that shares the event.

    Args:
        graph: The graph, not finalized.
    """
    variables = graph.get_collection(hr.GraphKeys.GLOBAL_VARIABLES)
    if not variables or ready_event(graph) is not None or graph.finalized:
        return
    first = variables[0].handle.op
    place, container = first.device_name, first.attrs["container"]
    if place.job is None and not container:
        return
    with (
        graph.as_default(),
        hr.control_dependencies(None),
        hr.device(None),
        hr.device(str(DeviceName(place.job, place.task))),
        hr.name_scope("model_ready/"),
    ):
        handle = model_event(container=container, shared_name=_COLLECTION, name="event")
        seen = hr.placeholder(hr.int64, [], name="seen")
        timeout = hr.placeholder(hr.float64, [], name="timeout_secs")
        signal: Any = model_event_signal(handle, name="signal")
        made = ReadyEvent(
            signal,
            model_event_count(handle, name="count"),
            seen,
            timeout,
            model_event_wait(handle, seen, timeout, name="wait"),
        )
    graph.add_to_collection(_COLLECTION, made)


@final
class ModelEvent:
    """An event that may happen again; the resource behind ``ModelEvent``."""

    def __init__(self, name: str) -> None:
        """Start as one that has not happened."""
        self.name = name
        self.count = 0
        self._lock = threading.Lock()
        self._line = WaitingLine(self._lock)

    def signal(self) -> None:
        """Let it happen: all that wait go on."""
        with self._lock:
            self.count += 1
            waiters = self._line.clear()
        for waiter in waiters:
            waiter.answer(self.count)

    def wait(
        self,
        seen: int,
        timeout_secs: float,
        done: Callable[[Any], None],
        cancellation: Cancellation | None,
    ) -> None:
        """Wait until it has happened more often than was seen, or some time is over.

        Args:
            seen: How often it had happened.
            timeout_secs: For how long.
            done: Called once: with the number of times, or an exception.
            cancellation: Ends the waiting.
        """
        with self._lock:
            count = self.count
            if count <= seen and timeout_secs > 0:
                waiter = self._line.add(done, cancellation)

                def late() -> None:
                    if self._line.leave(waiter):
                        waiter.answer(self.count)

                # A timer that comes too late finds that the waiter has gone.
                call_after(timeout_secs, late)
                count = -1
        if count >= 0:
            done(count)
        else:
            waiter.watch()

    def reset(self) -> None:
        """Forget that it has happened; who waits goes on waiting."""
        with self._lock:
            self.count = 0

    def close(self, reason: BaseException) -> None:
        """Fail all that wait, with ``reason``."""
        with self._lock:
            waiters = self._line.clear()
        for waiter in waiters:
            waiter.answer(reason)
