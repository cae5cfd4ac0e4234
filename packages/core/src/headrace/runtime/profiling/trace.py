"""Recording what steps do: how long each kernel and operation took, on which device and thread.

The recorder measures; what it found is written as a trace or added up as a profile. It exists only
where a session asks for one: plans and programs are then made with calls of it inside, and
otherwise know nothing of it.

References:
    Trace Event Format, Google, 2016: the JSON that Chrome (about:tracing) and Perfetto show.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.graph.operation import Operation
from headrace.regular_files import is_device
from headrace.runtime.profiling.profile import LimitsOf, Profile, Totals
from headrace.runtime.profiling.report import Work, clock, plain_work
from headrace.runtime.transfers.send_receive import Receiver

if TYPE_CHECKING:
    from headrace.runtime.profiling.trace_traffic import Flow, Span

# A trace of more is slow to show; a step of a large network has a thousand.
MAX_EVENTS = 200_000
# Until then the file is written after each step, later whenever it has grown by a half.
_SMALL = 1000

# A piece of work, the thread that did it, begin and end in nanoseconds, whether it waited, and the
# bytes that it moved.
Event = tuple[Work, int, int, int, bool, int]


class Recorder:
    """Records the work of the steps of a session, from any thread.

    Attributes:
        path: The file of the trace, None where only a profile is wanted.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        # Appending to it and taking from it is atomic.
        self._new: deque[Event] = deque()
        self._kept: list[Event] = []
        self._dropped = 0
        self._written = 0
        self._totals = Totals()
        self._threads: dict[int, str] = {}
        self._flows: list[Flow] = []
        self._spans: list[Span] = []
        self._start = clock()
        self._lock = threading.Lock()
        self._steps = itertools.count(1)

    # -- measuring

    def note(self, work: Work, began: int) -> None:
        """Note that a piece of work, which began at ``clock()`` = ``began``, is done."""
        self._new.append((work, threading.get_ident(), began, clock(), False, work.bytes))

    def noter(self, work: Work) -> Callable[[int], None]:
        """Return ``note`` for one piece of work."""
        return functools.partial(self.note, work)

    def waiter(self, work: Work) -> Callable[[int], None]:
        """Return what notes that something was waited for, since a time, by the one who calls."""

        def waited(began: int) -> None:
            self._new.append((work, threading.get_ident(), began, clock(), True, work.bytes))

        return waited

    def timed(self, work: Work, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``call``, measured, with the bytes of what it is given and returns."""
        # Reading a variable yields the array that it holds.
        moves = all(op.type != "ReadVariable" for op in work.ops)

        def run(*values: Any) -> Any:
            began = clock()
            result = call(*values)
            ended = clock()
            outputs = result if type(result) in (list, tuple) else (result,)
            moved = sum(getattr(v, "nbytes", 0) for v in (*values, *outputs)) if moves else 0
            self._new.append((work, threading.get_ident(), began, ended, False, moved))
            return result

        return run

    def timed_wait(self, work: Work, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a blocking ``call(step, done, *values)``, measured until it answers."""

        def run(step: Any, done: Callable[[Any], None], *values: Any) -> Any:
            began, thread = clock(), threading.get_ident()

            def answered(value: Any) -> None:
                self._new.append((work, thread, began, clock(), True, work.bytes))
                done(value)

            return call(step, answered, *values)

        return run

    def timed_frames(
        self, work: Work, call: Callable[..., Generator[Any, Any, Any]], waits: bool
    ) -> Callable[..., Generator[Any, Any, Any]]:
        """Return what runs functions, measured from its first run to its last."""

        def run(*values: Any) -> Generator[Any, Any, Any]:
            began, thread = clock(), threading.get_ident()
            try:
                return (yield from call(*values))
            finally:
                self._new.append((work, thread, began, clock(), waits, 0))

        return run

    def step(self, run: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
        """Return the function that runs a step, measured; the file is brought up to date."""

        def recorded(feeds: Any) -> Any:
            work = Work(f"step {next(self._steps)}: {name}", (), "")
            began = clock()
            try:
                return run(feeds)
            finally:
                self.note(work, began)
                self.settle()

        return recorded

    def take_in(
        self,
        events: Iterable[Event],
        threads: Mapping[int, str],
        flows: Iterable[Flow] = (),
        spans: Iterable[Span] = (),
    ) -> None:
        """Take in what was recorded of a step in another process, and what travelled.

        Args:
            events: What ran there, in the time of this process.
            threads: The names of the threads of ``events``.
            flows: What travelled between processes.
            spans: When parts of the step waited to run.
        """
        with self._lock:
            self._threads.update(threads)
            room = MAX_EVENTS - len(self._flows)
            self._flows += itertools.islice(flows, room)
            self._spans += spans
        self._new.extend(events)

    # -- what was found

    def settle(self, *, end: bool = False) -> None:
        """Add up what was noted, and write the file where it is time to.

        Args:
            end: Whether nothing more may follow, so that everything is written now.

        Raises:
            OSError: if the file cannot be written, at the end only: a step does not fail for it.
        """
        with self._lock:
            new = self.take()
            for event in new:
                self._totals.add(event[0], event[3] - event[2], event[5], waited=event[4])
            if self.path is None:
                return
            self._name_threads(new)
            room = MAX_EVENTS - len(self._kept)
            self._kept += new[:room]
            self._dropped += max(0, len(new) - room)
            count = len(self._kept)
            grown = count > self._written and (count < _SMALL or count > 1.5 * self._written)
            if not end and not grown:
                return
            try:
                self._write(self.path)
            except OSError:
                if end:
                    raise
            self._written = count

    def profile(self, limits: LimitsOf) -> Profile:
        """Return where the time of the steps so far went, beside what devices can do."""
        self.settle()
        with self._lock:
            return self._totals.profile(limits)

    def take(self) -> list[Event]:
        """Return what was noted since the last time, and forget it."""
        return [self._new.popleft() for _ in range(len(self._new))]

    def _name_threads(self, events: list[Event]) -> None:
        names = {t.ident: t.name for t in threading.enumerate()}
        for event in events:
            self._threads.setdefault(event[1], names.get(event[1], "ended thread"))

    def _write(self, path: Path) -> None:
        """Write the file anew beside the old one, and put it in its place."""
        document = {"traceEvents": self._events(), "displayTimeUnit": "ms"}
        if self._dropped:
            document["headrace"] = f"{self._dropped} later events were left out"
        # A device is written to; it must not be replaced.
        beside = path if is_device(path) else path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with beside.open("w", encoding="utf-8") as file:
                json.dump(document, file, separators=(",", ":"))
            if beside != path:
                beside.replace(path)
        finally:
            if beside != path:
                beside.unlink(missing_ok=True)

    def _events(self) -> list[dict[str, Any]]:
        """Return the events of the file: names of the tracks, and what ran on them."""
        processes: dict[str, int] = {}
        tracks: dict[tuple[int, int], int] = {}
        numbers = {ident: number for number, ident in enumerate(self._threads)}
        found: list[dict[str, Any]] = []
        for serial, event in enumerate(self._kept):
            work, ident, began, ended, waited, moved = event
            process = processes.setdefault(work.device, len(processes))
            thread = tracks.setdefault((process, ident), numbers[ident])
            place = {"name": work.name, "cat": _category(work), "pid": process, "tid": thread}
            begin, end = (began - self._start) / 1000, (ended - self._start) / 1000
            if waited:
                # What waits overlaps with other work of its thread.
                first = {
                    **place,
                    "ph": "b",
                    "id": serial,
                    "ts": begin,
                    "args": _arguments(work, moved),
                }
                found += [first, {**place, "ph": "e", "id": serial, "ts": end}]
            else:
                whole = {**place, "ph": "X", "ts": begin, "dur": max(end - begin, 0.0)}
                found.append({**whole, "args": _arguments(work, moved)})
        if self._flows or self._spans:
            # lazy: steps of one process send nothing
            from headrace.runtime.profiling.trace_traffic import traffic_events

            found += traffic_events(self._flows, self._spans, self._start, len(processes))
        for device, process in processes.items():
            found.append(_name("process", process, 0, device or "session"))
        for (process, ident), thread in tracks.items():
            found.append(_name("thread", process, thread, self._threads[ident]))
        return found


def _category(work: Work) -> str:
    if not work.ops:
        return "step"
    return "kernel" if work.fused else "operation"


def _arguments(work: Work, moved: int) -> dict[str, Any]:
    if not work.ops:
        return {}
    arguments: dict[str, Any] = {
        "computes": work.types,
        "operations": [op.name for op in work.ops],
        "line": work.line,
        "bytes": moved,
    }
    if work.flops is not None:
        arguments["flops"] = work.flops
    return arguments


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    place = {"ph": "M", "pid": process, "tid": thread}
    return {**place, "name": f"{what}_name", "args": {"name": name}}


def measured(
    recorder: Recorder,
    op: Operation,
    device: str,
    mode: Any,
    call: Callable[..., Any],
    waits: bool,
) -> Callable[..., Any]:
    """Return the call of a plan's node, measured.

    Args:
        recorder: The recorder.
        op: The operation.
        device: The name of its device.
        mode: How the call is made.
        call: What computes the node.
        waits: Whether a function that it holds may wait.
    """
    work = plain_work(op, device)
    if isinstance(call, Receiver):
        call.note = recorder.waiter(work)
        return call
    if mode.name == "BLOCKING":
        return recorder.timed_wait(work, call)
    if mode.name == "INVOKES":
        return recorder.timed_frames(work, call, waits)
    return recorder.timed(work, call)
