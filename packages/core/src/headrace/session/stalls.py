"""Telling of steps that wait for a queue, and of who could end that."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any, Protocol, final

from headrace.errors import FailedPreconditionError, HeadraceError, located
from headrace.graph.collections import GraphKeys
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.runtime.concurrency.callouts import idle_callers
from headrace.runtime.concurrency.exits import watches
from headrace.runtime.concurrency.stalls import Wait, describes

_MOST_LISTED = 3
# What can be done about a resource of which an operation waits to take something.
_UNFILLED = "no operation of the graph fills it: enqueue something, or close it"


class Waitable(Protocol):
    """What a resource says of itself that operations wait for.

    Attributes:
        name: Its name in its container.
    """

    name: str

    # It may have ``unfilled``, too: what to do where no operation of the graph fills it.

    def describe(self) -> str:
        """Return which it is and what is in it, as in "queue 'q', which holds 0 of 10 elements"."""


@final
class Stalls:
    """Tells of steps of a session that have waited for long to take something from a queue.

    It warns once for each queue. Where no other thread runs that could ever end the wait, the step
    ends with an error.

    Attributes:
        after: How many seconds a step waits before.
    """

    def __init__(self, session: Any, graph: Graph, after: float) -> None:
        """Take a session's name and graph.

        Args:
            session: The session, which is not kept alive.
            graph: Its graph.
            after: How many seconds a step waits before.
        """
        self.after = after
        self._session = weakref.ref(session)
        self._graph = graph
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def stalled(self, waits: Sequence[Wait]) -> BaseException | None:
        """Warn of a step, or return the error with which it ends; see ``StallWatch``."""
        known = [wait for wait in waits if describes(wait.resource)]
        if not known:
            return None
        takes = [wait for wait in known if _takes(wait.op)]
        others = threading.active_count() - 1 - idle_callers() - watches()
        if len(known) == len(waits) and not others:
            return self._error((takes or known)[0])
        for wait in takes:
            name = wait.resource.name
            with self._lock:
                new = name not in self._told
                self._told.add(name)
            if new:
                text, site = "\n".join([*self._lines(wait), *_where(wait.op)]), wait.op.site
                warnings.warn_explicit(text, RuntimeWarning, site.filename, site.line)
        return None

    def explained(self, waits: Sequence[Wait]) -> list[str]:
        """Return what a step waits for, and who could end that; see ``StallWatch``."""
        known = [wait for wait in waits if describes(wait.resource)]
        if not known:
            return []
        wait = next((wait for wait in known if _takes(wait.op)), known[0])
        first = f"it waits for {wait.resource.describe()}"
        return [first, *self._remedies(wait), *_where(wait.op)]

    def _error(self, wait: Wait) -> HeadraceError:
        first, *rest = self._lines(wait)
        lines = [f"{first}, and no other thread runs that could end this", *rest]
        return located(FailedPreconditionError, [*lines, *_where(wait.op)], wait.op)

    def _lines(self, wait: Wait) -> list[str]:
        first = f"a step has waited for {self.after:g} seconds for {wait.resource.describe()}"
        return [first, *self._remedies(wait)]

    def _remedies(self, wait: Wait) -> list[str]:
        """Return who could end a wait, and what to do for it."""
        if not _takes(wait.op):
            return ["  nothing takes elements out meanwhile"]
        session = self._session()
        runners = [
            runner
            for runner in self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
            if getattr(runner, "name", None) in self._handles(wait.resource.name)
        ]
        if any(not runner.started(session) for runner in runners):
            start = "call hr.train.start_queue_runners(session) before this step"
            return [f"  its queue runner was never started in this session: {start}"]
        fillers = self._fillers(wait.resource.name)
        if not fillers:
            return [f"  {getattr(wait.resource, 'unfilled', _UNFILLED)}"]
        names = ", ".join(f"{op.name!r} (line {op.site.line})" for op in fillers[:_MOST_LISTED])
        more = f" and {len(fillers) - _MOST_LISTED} more" if len(fillers) > _MOST_LISTED else ""
        by = "its queue runner's threads, which were started, run" if runners else "it is filled by"
        return [f"  {by} {names}{more}"]

    def _handles(self, name: str) -> set[str]:
        """Return the names of the operations that are handles of a queue."""
        ops = self._graph.operations
        return {op.name for op in ops if not op.inputs and op.attrs.get("shared_name") == name}

    def _fillers(self, name: str) -> list[Operation]:
        """Return the operations of the graph that may put something into a queue."""
        handles = self._handles(name)
        return [
            op
            for op in self._graph.operations
            if _fills(op) and any(t.op.name in handles for t in op.inputs)
        ]


def _takes(op: Operation) -> bool:
    """Whether an operation that waits does so to take something, not to put something in."""
    return bool(op.outputs)


def _fills(op: Operation) -> bool:
    """Whether an operation may put something into a resource: it yields nothing, and takes more."""
    return op.schema.changes and not op.outputs and len(op.inputs) > 1


def _where(op: Operation) -> list[str]:
    return [f"  in {op.type} {op.name!r}", f"  at {op.site}"]
