"""Running a plan in its order, also where it waits in phases for what other tasks send.

The run can be left where it waits, and be taken up again by any thread when what it waits for has
come: no thread has to wait with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns as clock
from typing import Any, final

import numpy as np

from headrace.runtime.concurrency.cancellation import CURRENT
from headrace.runtime.concurrency.stalls import Wait
from headrace.runtime.execution.plan import Departure, Mode, Plan, PlanNode, Stretch
from headrace.runtime.execution.step import Step, inner_step
from headrace.runtime.failures import located

_PLAIN, _INVOKES = Mode.PLAIN, Mode.INVOKES
# What kernels of ops with any number of outputs return, where there is but one.
SEQUENCES = (list, tuple)
# Guards whether runs are parked; it is held for moments.
_lock = threading.Lock()
# Runs a plan to its end.
Execute = Callable[[Plan, Step], None]


def run_in_order(plan: Plan, step: Step, execute: Execute) -> None:
    """Run a plan in which nothing waits and nothing is dead.

    Args:
        plan: The plan.
        step: The step that it runs in.
        execute: Runs the plans that nodes of it hold.
    """
    run_nodes(plan.nodes, list(plan.slots), step, plan, execute)


def run_nodes(
    nodes: Sequence[PlanNode], slots: list[Any], step: Step, plan: Plan, execute: Execute
) -> None:
    """Run some nodes of a plan, in their order.

    Args:
        nodes: The nodes.
        slots: The values of the plan's slots, which they read and fill.
        step: The step that they run in.
        plan: The plan.
        execute: Runs the plans that nodes of it hold.

    Raises:
        HeadraceError: what a node raised, with the node and the user's line.
    """
    cancellation = step.cancellation
    node, values = None, []
    try:
        for node in nodes:
            values = [slots[i] for i in node.inputs]
            if cancellation.reason is not None:
                node = None
                raise cancellation.reason
            mode = node.mode
            if mode is _PLAIN:
                result = node.call(*values)
            elif mode is _INVOKES:
                result = _run_invocations(node, step, values, execute)
            else:
                result = node.call(step, *values)
            if node.single:
                slots[node.outputs[0]] = result[0] if type(result) in SEQUENCES else result
            elif result or node.outputs:
                for slot, value in zip(node.outputs, result or (), strict=True):
                    slots[slot] = value
            for slot in node.frees:
                slots[slot] = None
    except Exception as error:
        if node is None:
            raise
        said = named(error, node, values, plan)
        if said is error:
            raise
        raise said from error


def _run_invocations(
    node: PlanNode, step: Step, values: Sequence[Any], execute: Execute
) -> list[Any]:
    """Run what a node that holds functions asks for, one run after the other."""
    invocations = node.call(*values)
    cancellation = step.cancellation
    before, CURRENT.cancellation = CURRENT.cancellation, cancellation
    try:
        run = next(invocations)
        send = invocations.send
        while True:
            whole = run[0].whole
            if whole is not None:
                if cancellation.reason is not None:
                    raise cancellation.reason
                run = send(whole(run[1]))
                continue
            inner = inner_step(node, step, run)
            execute(run[0], inner)
            run = send(inner.fetches)
    except StopIteration as stop:
        results: list[Any] = stop.value
        return results
    finally:
        CURRENT.cancellation = before


def named(error: BaseException, node: PlanNode, values: Sequence[Any], plan: Plan) -> BaseException:
    """Return an error that names the operation that failed; a region has named it already."""
    return error if node.region is not None else located(error, node.op, values, plan.state_uses)


def _are_arrays(values: Sequence[Any]) -> bool:
    # A loop: it runs for every step, and takes half as long as a generator does.
    for value in values:  # noqa: SIM110
        if type(value) is not np.ndarray:
            return False
    return True


@final
class SerialRun:
    """One run of a plan that waits in phases."""

    __slots__ = (
        *("_at", "_began", "_come", "_execute", "_failure", "_parked", "_plan", "_slots"),
        *("_step", "_wake"),
    )

    def __init__(self, plan: Plan, step: Step, wake: Callable[[], None], execute: Execute) -> None:
        """Begin a run.

        Args:
            plan: A plan in which nothing is dead, and that waits in phases or not at all.
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
        # The stretch that runs, or that waits for what it receives.
        self._at = 0
        # When it was first asked for what it receives, where somebody wants to know.
        self._began = 0
        # Whether what is waited for has come, and whether nobody runs this meanwhile.
        self._come = self._parked = False
        self._failure: BaseException | None = None

    def advance(self) -> bool:
        """Run until the end, or until something has to be waited for; return whether it ended.

        Raises:
            HeadraceError: what a node raised, with the node and the user's line.
        """
        plan, slots, step = self._plan, self._slots, self._step
        stretches = plan.stretches
        while self._at < len(stretches):
            stretch = stretches[self._at]
            if stretch.edges:
                values = self._collected(stretch)
                if values is None:
                    return False
                if stretch.stays and not self._began:
                    for slot, value in zip(stretch.slots, values, strict=True):
                        if slot >= 0:
                            slots[slot] = value
                else:
                    self._take(stretch, values)
            run_nodes(stretch.nodes, slots, step, plan, self._execute)
            if stretch.departure is not None:
                self._depart(stretch.departure)
            self._at += 1
        return True

    def abort(self, reason: BaseException) -> None:
        """End the run where it waits: its step was cancelled."""
        self._failure = reason
        self._arrived()

    def waits(self) -> list[Wait]:
        """Return what it waits for; for messages."""
        stretch = self._plan.stretches[self._at] if self._parked else None
        return [Wait(node.op, None) for node in stretch.waiting] if stretch is not None else []

    def _collected(self, stretch: Stretch) -> list[Any] | None:
        """Return what a stretch receives; None where the run was left until it is there."""
        step = self._step
        if not self._began and stretch.receivers[0].note is not None:
            self._began = clock()
        while True:
            if self._failure is not None:
                raise self._failure
            self._come = False
            try:
                values = step.rendezvous.collect(step, stretch, self._arrived)
            except Exception as error:
                said = named(error, stretch.waiting[0], (), self._plan)
                if said is error:
                    raise
                raise said from error
            if values is not None:
                return values
            with _lock:
                if not self._come:
                    self._parked = True
                    return None

    def _take(self, stretch: Stretch, values: Sequence[Any]) -> None:
        """Move what a stretch has received to where it is read."""
        given = zip(stretch.slots, stretch.receivers, values, strict=True)
        for slot, receiver, value in given:
            if receiver.note is not None:
                receiver.note(self._began)
            if slot >= 0:
                self._slots[slot] = receiver.moved(value)
        self._began = 0

    def _depart(self, departure: Departure) -> None:
        """Send values, which nothing holds here any more then."""
        step, slots = self._step, self._slots
        if step.cancellation.reason is not None:
            raise step.cancellation.reason
        values = [slots[slot] for slot in departure.slots]
        try:
            if not (departure.stays and _are_arrays(values)):
                sent = zip(departure.senders, values, strict=True)
                values = [sender.moved(value) for sender, value in sent]
            step.rendezvous.send_together(step, departure, values)
        except Exception as error:
            said = named(error, departure.nodes[0], (), self._plan)
            if said is error:
                raise
            raise said from error
        for slot in departure.frees:
            slots[slot] = None

    def _arrived(self) -> None:
        with _lock:
            self._come = True
            parked, self._parked = self._parked, False
        if parked:
            self._wake()
