"""Dataflow execution: a node runs when its inputs are there, and what waits holds no thread.

That is for plans in which something may be dead, or waits for what may come at any time.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.errors import CancelledError
from headrace.runtime.concurrency.callouts import call_out
from headrace.runtime.concurrency.cancellation import within_step
from headrace.runtime.concurrency.inbox import Inbox
from headrace.runtime.concurrency.stalls import Wait, describes
from headrace.runtime.control_flow.invocations import Invocations, LoopStart
from headrace.runtime.execution.plan import Mode, Plan, PlanNode
from headrace.runtime.execution.serial import SEQUENCES, Execute, named
from headrace.runtime.execution.step import Execution, Step, inner_step
from headrace.runtime.transfers.rendezvous import DEAD


@final
class DataflowRun:
    """One run of a plan whose nodes start as what they wait for arrives.

    Functions that nodes hold run in the same loop, each invocation with a state of its own, so that
    no thread waits for what they wait for.
    """

    def __init__(
        self,
        plan: Plan,
        step: Step,
        wake: Callable[[], None],
        execute: Execute,
        *,
        apart: bool,
    ) -> None:
        """Begin a run.

        Args:
            plan: The plan.
            step: The step that it runs in.
            wake: Called once, by any thread, after ``advance`` has returned False, when it should
                be called again.
            execute: Runs the plans of functions in which nothing waits.
            apart: Whether the program's own code always runs on a thread of its own.
        """
        self._step = step
        self._execute = execute
        self._apart = apart
        self._ready: deque[tuple[Execution, int]] = deque()
        # What calls the program's own code comes when nothing else can run.
        self._callouts: deque[tuple[Execution, int, list[Any]]] = deque()
        # How many such calls run on other threads now, and how many may.
        self._calling = 0
        self._most_calls = plan.most_calls
        # Nodes that have ended, with what they yielded; without a node, why the run is to end.
        self._completions = Inbox(wake)
        self._waiting: set[tuple[Execution, int]] = set()
        self._ended = False
        self._failure: BaseException | None = None
        # Whether an iteration has failed that is to end the run when those before have ended.
        self._fails_later = False
        self.enter(Execution(plan, step, self._end, None))

    def enter(self, execution: Execution) -> None:
        """Begin a run of a plan; ``done`` is called when all of it has run."""
        plan = execution.plan
        if execution.fills is None:
            self._ready.extend([(execution, i) for i in plan.first])
        else:
            missing = execution.missing
            self._ready.extend([(execution, i) for i in plan.first if not missing[i]])
        if not plan.nodes:
            execution.done()

    def ready(self, execution: Execution, index: int) -> None:
        """Run a node of an iteration, which waits for nothing any more, when it is its turn."""
        self._ready.append((execution, index))

    def run_inner(self, execution: Execution) -> None:
        """Run a plan, at once where nothing in it waits; ``done`` is called when it has ended."""
        plan, step = execution.plan, execution.step
        if plan.waits:
            self.enter(execution)
            return
        try:
            if plan.whole is not None:
                step.fetches = within_step(step.cancellation, plan.whole, step.feeds)
            else:
                self._execute(plan, step)
            execution.done()
        except Exception as error:
            self.fail(execution, error)

    def _end(self) -> None:
        self._ended = True

    def abort(self, reason: BaseException) -> None:
        """End the run where it waits: its step was cancelled."""
        self._completions.put((None, -1, reason))

    def advance(self) -> bool:
        """Run until the end, or until something has to be waited for; return whether it ended.

        Raises:
            HeadraceError: what a node raised, with the node and the user's line.
        """
        while not self._ended:
            if self._ready and self._failure is None:
                execution, index = self._ready.popleft()
                if not self._is_abandoned(execution):
                    self._start(execution, index)
            elif self._callouts and self._failure is None and self._may_call():
                execution, index, values = self._callouts.popleft()
                if not self._is_abandoned(execution):
                    self._call_out(execution, index, values)
            elif self._waiting:
                if self._completions.park():
                    return False
                self._take(*self._completions.take())
            else:
                break
        if self._failure is not None:
            raise self._failure
        return True

    def _take(self, execution: Execution | None, index: int, result: Any) -> None:
        """Go on with what has ended that was waited for."""
        if execution is None:
            self._fail(result)
            return
        if _calls_out(execution, index):
            self._calling -= 1
        self._waiting.discard((execution, index))
        if not self._is_abandoned(execution):
            self._finish(execution, index, result)

    def _is_abandoned(self, execution: Execution) -> bool:
        """Whether a run is part of what only waits for iterations before it to end."""
        return self._fails_later and execution.is_abandoned

    def waits(self) -> list[Wait]:
        """Return what it waits for; for messages."""
        return [_waits_for(execution, index) for execution, index in self._waiting]

    def _start(self, execution: Execution, index: int) -> None:
        node = execution.plan.nodes[index]
        slots = execution.slots
        values = [slots[i] for i in node.inputs]
        if node.mode is Mode.MERGE:
            self._finish(execution, index, _merged(node, values))
            return
        dead = execution.plan.branches and (
            any(slots[c] is DEAD for c in node.controls) or any(v is DEAD for v in values)
        )
        if node.mode is Mode.SEND and dead:
            values = [DEAD]
        elif dead:
            self._finish(execution, index, DEAD)
            return
        try:
            if node.mode is Mode.PLAIN:
                result = node.call(*values)
            elif node.mode is Mode.INVOKES:
                self._invoke(execution, index, node.call(*values), None)
                return
            elif node.mode is Mode.BLOCKING:
                self._waiting.add((execution, index))
                put = self._completions.put
                node.call(execution.step, lambda value: put((execution, index, value)), *values)
                return
            elif node.mode is Mode.CALLS_OUT:
                self._callouts.append((execution, index, values))
                return
            else:
                result = node.call(execution.step, *values)
        except Exception as error:
            if node.mode is Mode.BLOCKING:
                self._waiting.discard((execution, index))
            self.fail(execution, named(error, node, values, execution.plan), error)
            return
        self._finish(execution, index, result)

    def _may_call(self) -> bool:
        """Whether the program's own code may be called now."""
        return self._most_calls is None or self._calling < self._most_calls

    def _call_out(self, execution: Execution, index: int, values: list[Any]) -> None:
        """Call the program's own code: in this thread, unless that could hold anything up."""
        node = execution.plan.nodes[index]
        beside = self._most_calls != 1 and (self._callouts or self._waiting)
        if self._apart or beside:
            put = self._completions.put
            self._waiting.add((execution, index))
            self._calling += 1
            call_out(lambda: put((execution, index, _result_of(node.call, values))))
            return
        try:
            result = node.call(*values)
        except Exception as error:
            self.fail(execution, named(error, node, values, execution.plan), error)
            return
        self._finish(execution, index, result)

    def _invoke(
        self, execution: Execution, index: int, invocations: Invocations, results: Any
    ) -> None:
        """Go on with a node that holds functions until it needs a run that waits, or ends."""
        node = execution.plan.nodes[index]
        try:
            while True:
                run = next(invocations) if results is None else invocations.send(results)
                if type(run[1]) is LoopStart:
                    # lazy: few steps have loops
                    from headrace.runtime.execution.iterations import Iterations

                    goes_on = functools.partial(self._invoke, execution, index, invocations)
                    Iterations(run[1], execution, index, self, goes_on).advance()
                    return
                whole = run[0].whole
                if whole is not None:
                    if self._failure is not None:
                        return
                    results = within_step(execution.step.cancellation, whole, run[1])
                    continue
                inner = inner_step(node, execution.step, run)
                if run[0].waits:
                    after = functools.partial(self._after, execution, index, invocations, inner)
                    self.enter(Execution(run[0], inner, after, execution))
                    return
                self._execute(run[0], inner)
                results = inner.fetches
        except StopIteration as stop:
            self._finish(execution, index, stop.value)
        except Exception as error:
            values = [execution.slots[i] for i in node.inputs]
            self.fail(execution, named(error, node, values, execution.plan), error)

    def _after(
        self, execution: Execution, index: int, invocations: Invocations, inner: Step
    ) -> None:
        self._invoke(execution, index, invocations, inner.fetches)

    def _finish(self, execution: Execution, index: int, result: Any) -> None:
        node = execution.plan.nodes[index]
        slots = execution.slots
        if isinstance(result, BaseException):
            # What arrives after the failure is its consequence, not its cause.
            if self._failure is None:
                values = [slots[i] for i in node.inputs]
                self.fail(execution, named(result, node, values, execution.plan), result)
            return
        if result is DEAD:
            slots[node.control] = DEAD
            for slot in node.outputs:
                slots[slot] = DEAD
        elif node.single:
            slots[node.outputs[0]] = result[0] if type(result) in SEQUENCES else result
        else:
            for slot, value in zip(node.outputs, result or (), strict=True):
                slots[slot] = value
        for slot in node.inputs:
            execution.uses[slot] -= 1
            if not execution.uses[slot]:
                slots[slot] = None
        for user in node.users:
            execution.missing[user] -= 1
            if not execution.missing[user]:
                self._ready.append((execution, user))
        if execution.loop is not None:
            execution.loop.filled(execution, index)
        execution.left -= 1
        if not execution.left:
            execution.done()

    def fail(
        self, execution: Execution, error: BaseException, cause: BaseException | None = None
    ) -> None:
        """End with an error of a part, when all iterations have ended that come before it."""
        if cause is not None and cause is not error:
            error.__cause__ = cause
        at: Execution | None = execution
        while at is not None:
            if at.loop is not None and not at.loop.failed(at.number, error):
                self._fails_later = True
                return
            at = at.outer
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failure is not None:
            return
        self._failure = error
        # Nothing can stop the program's own code, and nobody waits for it any more.
        self._waiting = {
            (execution, index)
            for execution, index in self._waiting
            if not _calls_out(execution, index)
        }
        reason = CancelledError(f"the step ended: {error}".splitlines()[0])
        self._step.cancellation.cancel(reason)
        # What failed while others were told that the step is over.
        for note in getattr(reason, "__notes__", ()):
            error.add_note(note)
        self._step.rendezvous.close(self._step.id, reason)


def _calls_out(execution: Execution, index: int) -> bool:
    return execution.plan.nodes[index].mode is Mode.CALLS_OUT


def _result_of(call: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Return what a call returns, or what it raises: a thread of its own has nobody to catch it."""
    try:
        return call(*values)
    except BaseException as error:
        return error


def _waits_for(execution: Execution, index: int) -> Wait:
    node = execution.plan.nodes[index]
    # A reader that waits does so for the queue that tells it what to read.
    given = [execution.slots[i] for i in node.inputs]
    return Wait(node.op, next((value for value in given if describes(value)), None))


def _merged(node: PlanNode, values: list[Any]) -> Any:
    for i, value in enumerate(values):
        if value is not DEAD:
            return value, node.call(i)
    return DEAD
