"""Running a plan in its order, also where it waits in turns for what other tasks send.

The run can be left where it waits, and be taken up again by any thread when what it waits for has
come: no thread has to wait with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.runtime.failures import located
from headrace.runtime.plan import Mode, Plan, PlanNode
from headrace.runtime.stalls import Wait
from headrace.runtime.step import Step, inner_step

# What kernels of ops with any number of outputs return, where there is but one.
SEQUENCES = (list, tuple)
# Runs a plan to its end.
Execute = Callable[[Plan, Step], None]


def run_in_order(plan: Plan, step: Step, execute: Execute) -> None:
    """Run a plan in which nothing waits and nothing is dead.

    Args:
        plan: The plan.
        step: The step that it runs in.
        execute: Runs the plans that nodes of it hold.
    """
    slots = list(plan.slots)
    for node in plan.nodes:
        if step.cancellation.reason is not None:
            raise step.cancellation.reason
        _run_node(node, slots, step, plan, execute)


def _run_node(node: PlanNode, slots: list[Any], step: Step, plan: Plan, execute: Execute) -> None:
    values = [slots[i] for i in node.inputs]
    try:
        if node.mode is Mode.PLAIN:
            result = node.call(*values)
        elif node.mode is Mode.INVOKES:
            result = _run_invocations(node, step, values, execute)
        else:
            result = node.call(step, *values)
    except Exception as error:
        said = named(error, node, values, plan)
        if said is error:
            raise
        raise said from error
    if node.single:
        slots[node.outputs[0]] = result[0] if type(result) in SEQUENCES else result
    else:
        for slot, value in zip(node.outputs, result or (), strict=True):
            slots[slot] = value
    for slot in node.frees:
        slots[slot] = None


def _run_invocations(
    node: PlanNode, step: Step, values: Sequence[Any], execute: Execute
) -> list[Any]:
    """Run what a node that holds functions asks for, one run after the other."""
    invocations = node.call(*values)
    cancellation = step.cancellation
    try:
        run = next(invocations)
        while True:
            if run[0].whole is not None:
                if cancellation.reason is not None:
                    raise cancellation.reason
                run = invocations.send(run[0].whole(run[1]))
                continue
            inner = inner_step(node, step, run)
            execute(run[0], inner)
            run = invocations.send(inner.fetches)
    except StopIteration as stop:
        results: list[Any] = stop.value
        return results


def named(error: BaseException, node: PlanNode, values: Sequence[Any], plan: Plan) -> BaseException:
    """Return an error that names the operation that failed; a region has named it already."""
    return error if node.region is not None else located(error, node.op, values, plan.state_uses)


@final
class SerialRun:
    """One run of a plan that waits in turns."""

    __slots__ = (
        *("_awaited", "_execute", "_failure", "_lock", "_missing", "_next", "_parked", "_plan"),
        *("_slots", "_step", "_wake"),
    )

    def __init__(self, plan: Plan, step: Step, wake: Callable[[], None], execute: Execute) -> None:
        """Begin a run.

        Args:
            plan: A plan in which nothing is dead, and that waits in turns or not at all.
            step: The step that it runs in.
            wake: Called once, by any thread, after ``advance`` has returned False, when it should
                be called again.
            execute: Runs the plans that nodes of it hold.
        """
        self._plan = plan
        self._step = step
        self._wake = wake
        self._execute = execute
        self._slots = list(plan.slots)
        self._next = 0
        self._awaited: list[PlanNode] = []
        self._lock = threading.Lock()
        # How many of the awaited values have not come, and whether nobody runs this meanwhile.
        self._missing = 0
        self._parked = False
        self._failure: BaseException | None = None

    def advance(self) -> bool:
        """Run until the end, or until something has to be waited for; return whether it ended.

        Raises:
            HeadraceError: what a node raised, with the node and the user's line.
        """
        plan, slots, step, execute = self._plan, self._slots, self._step, self._execute
        nodes = plan.nodes
        end = len(nodes)
        while True:
            if self._failure is not None:
                raise self._failure
            if self._awaited:
                self._take()
            if self._next == end:
                return True
            node = nodes[self._next]
            if step.cancellation.reason is not None:
                raise step.cancellation.reason
            if node.mode is not Mode.BLOCKING:
                _run_node(node, slots, step, plan, execute)
                self._next += 1
            elif not self._receive():
                return False

    def abort(self, reason: BaseException) -> None:
        """End the run where it waits: its step was cancelled."""
        self._arrived(reason)

    def waits(self) -> list[Wait]:
        """Return what it waits for; for messages."""
        return [Wait(node.op, None) for node in self._awaited]

    def _receive(self) -> bool:
        """Begin to wait for all receives that come next; return whether all are there."""
        nodes, at = self._plan.nodes, self._next
        while at < len(nodes) and nodes[at].mode is Mode.BLOCKING:
            at += 1
        self._awaited = list(nodes[self._next : at])
        self._missing = len(self._awaited)
        for node in self._awaited:
            try:
                node.call(self._step, self._receiver(node))
            except Exception as error:
                raise named(error, node, (), self._plan) from error
        with self._lock:
            self._parked = bool(self._missing) and self._failure is None
            return not self._parked

    def _receiver(self, node: PlanNode) -> Callable[[Any], None]:
        def receive(value: Any) -> None:
            if isinstance(value, BaseException):
                said = named(value, node, (), self._plan)
                if said is not value:
                    said.__cause__ = value
                self._arrived(said)
                return
            self._slots[node.outputs[0]] = value
            self._arrived(None)

        return receive

    def _arrived(self, failure: BaseException | None) -> None:
        with self._lock:
            if failure is None:
                self._missing -= 1
            elif self._failure is None:
                self._failure = failure
            wakes = self._parked and (not self._missing or self._failure is not None)
            if wakes:
                self._parked = False
        if wakes:
            self._wake()

    def _take(self) -> None:
        for node in self._awaited:
            for slot in node.frees:
                self._slots[slot] = None
        self._next += len(self._awaited)
        self._awaited = []
