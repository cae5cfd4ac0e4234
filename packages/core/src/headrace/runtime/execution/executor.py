"""Executing plans: to their end, or started and taken up again where they had to wait.

A plan in which nothing waits and nothing is dead runs as one loop (``serial.py``), and so does one
that waits for other tasks in phases, or for one thing after the other (``chain.py``). In any other,
nodes run as their inputs arrive (``dataflow.py``). Whatever waits holds no thread: a run is left
there, and somebody is told when it can go on. ``execute`` waits for that, for a caller who has
nothing else to do; ``start`` leaves it to a scheduler that runs many steps on few threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import FrameType
from typing import Any, Protocol, final

from headrace.errors import CancelledError
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.concurrency.exits import Exits
from headrace.runtime.concurrency.stalls import Wait, describes
from headrace.runtime.concurrency.wakeup import Wakeup
from headrace.runtime.execution.chain import ChainRun
from headrace.runtime.execution.dataflow import DataflowRun
from headrace.runtime.execution.plan import Plan
from headrace.runtime.execution.serial import SerialRun, run_in_order
from headrace.runtime.execution.step import Step
from headrace.runtime.transfers.rendezvous import LocalRendezvous


class Waiting(Protocol):
    """What waits in a step."""

    def abort(self, reason: BaseException) -> None:
        """End the run where it waits: its step was cancelled."""

    def waits(self) -> list[Wait]:
        """Return what it waits for; for messages."""


class Run(Waiting, Protocol):
    """A run of a plan that can be left where it waits."""

    def advance(self) -> bool:
        """Run until the end, or until something has to be waited for; return whether it ended."""


def execute(plan: Plan, step: Step) -> None:
    """Run a plan once; the results are in ``step.fetches``.

    Raises:
        HeadraceError: what a node raised, with the node and the user's line.
    """
    contexts = plan.contexts
    context = None
    if contexts:
        # Mostly there is one, and for each step.
        context = contexts[0]() if len(contexts) == 1 else active(plan)
    if context is None:
        _run(plan, step)
        return
    with context:
        _run(plan, step)


def active(plan: Plan) -> AbstractContextManager[Any]:
    """Return the context in which the devices of a plan run kernels."""
    contexts = [c for c in (make() for make in plan.contexts) if c is not None]
    if len(contexts) == 1:
        return contexts[0]
    stack = ExitStack()
    for context in contexts:
        stack.enter_context(context)
    return stack


@final
class StartedRun:
    """A run of a plan that a scheduler takes up whenever it can go on.

    Attributes:
        step: The step that it runs in.
    """

    __slots__ = ("_key", "_plan", "_run", "step")

    def __init__(self, plan: Plan, step: Step, wake: Callable[[], None]) -> None:
        """Begin a run; nothing of it runs before ``advance``.

        Args:
            plan: The plan.
            step: The step that it runs in.
            wake: Called once, by any thread, after ``advance`` has returned False, when it should
                be called again. It must not wait.
        """
        self.step = step
        self._plan = plan
        self._run = _begin(plan, step, wake, apart=True)
        self._key = step.cancellation.add(self._run.abort)

    def advance(self) -> bool:
        """Run until the end, or until something has to be waited for; return whether it ended.

        Raises:
            HeadraceError: what a node raised, with the node and the user's line.
        """
        ended = True
        try:
            if self._plan.contexts:
                with active(self._plan):
                    ended = self._run.advance()
            else:
                ended = self._run.advance()
            return ended
        finally:
            if ended:
                self.drop()

    def drop(self) -> None:
        """Let go of the run, which has ended or never goes on: nothing is to end it any more."""
        self.step.cancellation.discard(self._key)


@final
class AloneProgram:
    """Runs a plan in which nothing waits, as a step of its own.

    Attributes:
        plan: The plan.
    """

    __slots__ = ("_rendezvous", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        # Nothing meets there.
        self._rendezvous = LocalRendezvous()

    def __call__(self, feeds: Sequence[Any], /) -> list[Any]:
        """Return what the plan hands back for values of its feeds."""
        step = Step(0, feeds, self.plan.fetches, self._rendezvous, Cancellation())
        execute(self.plan, step)
        return step.fetches


def _begin(plan: Plan, step: Step, wake: Callable[[], None], *, apart: bool) -> Run:
    if plan.chain is not None:
        return ChainRun(plan, plan.chain, step, wake, execute)
    if plan.branches or (plan.waits and not plan.in_turn):
        return DataflowRun(plan, step, wake, execute, apart=apart)
    return SerialRun(plan, step, wake, execute)


def _run(plan: Plan, step: Step) -> None:
    if not (plan.waits or plan.branches or plan.transfers):
        if plan.beside is None:
            run_in_order(plan, step, execute)
        else:
            plan.beside.run(plan, step, execute, active)
        return
    wakeup = Wakeup()
    run = _begin(plan, step, wakeup.wake, apart=False)
    key = step.cancellation.add(run.abort)
    try:
        while not run.advance():
            come_first()
            wait_for(run, step, wakeup)
    except BaseException as error:
        # After an interrupt nothing may wait on: it would take from a queue what nobody gets.
        step.cancellation.cancel(CancelledError(f"the step was interrupted: {error!r}"))
        raise
    finally:
        step.cancellation.discard(key)


def wait_for(run: Waiting, step: Step, wakeup: Wakeup) -> None:
    """Wait until a run can go on; let the watch know when that takes long."""
    wait, watch = step.wait, step.watch
    if watch is None:
        wait(wakeup, None)
        return
    step.waits = run.waits
    try:
        while not wait(wakeup, watch.after):
            error = watch.stalled(run.waits())
            if error is not None:
                run.abort(error)
    finally:
        # The run knows the step, and both are to be gone with the last who holds one.
        step.waits = None


def _stuck(frame: FrameType) -> Cancellation | None:
    """Return the flag of the step for which a frame of ``wait_for`` waits.

    None where it waits for more than queues and the like: another task, or the program's own code,
    may still be at work on it.
    """
    try:
        waits = frame.f_locals["run"].waits()
    except (KeyError, RuntimeError):
        # It begins or ends right now.
        return None
    step: Step = frame.f_locals["step"]
    return step.cancellation if all(describes(wait.resource) for wait in waits) else None


_EXITS = Exits(wait_for.__code__, _stuck)
come_first = _EXITS.come_first
