"""Running a plan in which one node waits, as a step does that takes a batch out of a queue.

Its nodes run one after the other, as in ``serial.py``: what the waiting node needs, then what does
not need it, which goes on while it waits, and then the rest. Nothing has to be counted or queued,
as it has where several nodes wait (``arrivals.py``).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, final

from headrace.errors import CancelledError
from headrace.records import dataclass
from headrace.runtime.plan import Mode, Plan, PlanNode
from headrace.runtime.serial import SEQUENCES, Execute, named, run_nodes
from headrace.runtime.stalls import Wait, describes
from headrace.runtime.step import Step


@dataclass(frozen=True, slots=True, eq=False)
class OneWait:
    """The nodes of a plan in which one waits, in the order in which they run.

    Attributes:
        before: What the node that waits needs.
        node: The node that waits.
        beside: What neither needs it nor is needed by it.
        after: What needs it.
    """

    before: tuple[PlanNode, ...]
    node: PlanNode
    beside: tuple[PlanNode, ...]
    after: tuple[PlanNode, ...]


def one_wait(nodes: Sequence[PlanNode], slots: Sequence[Any]) -> OneWait | None:
    """Return how a plan runs in which nothing is dead; None unless exactly one node waits.

    Args:
        nodes: Its nodes, each after those that it waits for.
        slots: What its slots hold before the step.
    """
    waiting = [i for i, node in enumerate(nodes) if _may_wait(node)]
    if len(waiting) != 1 or nodes[waiting[0]].mode is not Mode.BLOCKING:
        return None
    (place,) = waiting
    needed, needing = {place}, {place}
    for i in range(place - 1, -1, -1):
        if not needed.isdisjoint(nodes[i].users):
            needed.add(i)
    for i in range(place, len(nodes)):
        if i in needing:
            needing.update(nodes[i].users)
    before = [i for i in range(place) if i in needed]
    after = [i for i in range(place + 1, len(nodes)) if i in needing]
    beside = [i for i in range(len(nodes)) if i not in needed and i not in needing]
    # What nobody reads any more is let go in this order.
    last = {}
    order = [*before, place, *beside, *after]
    for i in order:
        for slot in (*nodes[i].outputs, *nodes[i].inputs):
            last[slot] = i
    frees: dict[int, list[int]] = {}
    for slot, i in last.items():
        if slots[slot] is None:
            frees.setdefault(i, []).append(slot)
    made = {i: replace(nodes[i], frees=tuple(frees.get(i, ()))) for i in order}

    def chosen(places: Sequence[int]) -> tuple[PlanNode, ...]:
        return tuple([made[i] for i in places])

    return OneWait(chosen(before), made[place], chosen(beside), chosen(after))


def _may_wait(node: PlanNode) -> bool:
    return node.mode in (Mode.BLOCKING, Mode.CALLS_OUT) or any(plan.waits for plan in node.inner)


@final
class OneWaitRun:
    """One run of a plan in which one node waits."""

    __slots__ = (
        *("_begun", "_come", "_execute", "_lock", "_nodes", "_parked", "_plan", "_slots"),
        *("_step", "_wake"),
    )

    def __init__(
        self,
        plan: Plan,
        nodes: OneWait,
        step: Step,
        wake: Callable[[], None],
        execute: Execute,
    ) -> None:
        """Begin a run.

        Args:
            plan: The plan.
            nodes: Its nodes.
            step: The step that it runs in.
            wake: Called once, by any thread, after ``advance`` has returned False, when it should
                be called again.
            execute: Runs the plans that nodes of it hold.
        """
        self._plan = plan
        self._nodes = nodes
        self._step = step
        self._wake = wake
        self._execute = execute
        self._slots = list(plan.slots)
        self._begun = False
        # What the node that waits has got, or why the step ends.
        self._come: deque[Any] = deque()
        self._lock = threading.Lock()
        self._parked = False

    def abort(self, reason: BaseException) -> None:
        """End the run where it waits: its step was cancelled."""
        self._put(reason)

    def _put(self, result: Any) -> None:
        """Note what has come; from any thread."""
        self._come.append(result)
        with self._lock:
            parked, self._parked = self._parked, False
        if parked:
            self._wake()

    def advance(self) -> bool:
        """Run until the end, or until something has to be waited for; return whether it ended.

        Raises:
            HeadraceError: what a node raised, with the node and the user's line.
        """
        nodes = self._nodes
        try:
            if not self._begun:
                self._begun = True
                self._run(nodes.before)
                self._begin(nodes.node)
                self._run(nodes.beside)
            if not self._come:
                with self._lock:
                    self._parked = not self._come
                    if self._parked:
                        return False
            self._fill(nodes.node, self._come[0])
            self._run(nodes.after)
        except Exception as error:
            self._end(error)
            raise
        return True

    def waits(self) -> list[Wait]:
        """Return what it waits for; for messages."""
        if not self._parked:
            return []
        node = self._nodes.node
        # A reader that waits does so for the queue that tells it what to read.
        given = [self._slots[i] for i in node.inputs]
        return [Wait(node.op, next((value for value in given if describes(value)), None))]

    def _run(self, nodes: Sequence[PlanNode]) -> None:
        if nodes:
            run_nodes(nodes, self._slots, self._step, self._plan, self._execute)

    def _begin(self, node: PlanNode) -> None:
        slots = self._slots
        values = [slots[i] for i in node.inputs]
        try:
            node.call(self._step, self._put, *values)
        except Exception as error:
            self._raise(error, node, values)

    def _fill(self, node: PlanNode, result: Any) -> None:
        slots = self._slots
        if isinstance(result, BaseException):
            self._raise(result, node, [slots[i] for i in node.inputs])
        if node.single:
            slots[node.outputs[0]] = result[0] if type(result) in SEQUENCES else result
        else:
            for slot, value in zip(node.outputs, result or (), strict=True):
                slots[slot] = value
        self._come.clear()
        for slot in node.frees:
            slots[slot] = None

    def _raise(self, error: BaseException, node: PlanNode, values: Sequence[Any]) -> None:
        """Raise what ended the node that waits, or the step."""
        if error is self._step.cancellation.reason:
            raise error
        said = named(error, node, values, self._plan)
        if said is error:
            raise said
        raise said from error

    def _end(self, error: Exception) -> None:
        """Let what still waits for the step go."""
        reason = CancelledError(f"the step ended: {error}".splitlines()[0])
        self._step.cancellation.cancel(reason)
        # What failed while others were told that the step is over.
        for note in getattr(reason, "__notes__", ()):
            error.add_note(note)
        self._step.rendezvous.close(self._step.id, reason)
