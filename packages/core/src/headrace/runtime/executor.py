"""The plain executor: runs a plan node by node.

It is the debugger, the fallback and the oracle of faster executors. A plan in which nothing waits
and nothing is dead runs as one loop. Otherwise nodes run as their inputs arrive: the calling
thread runs what is ready, and nodes that wait hold no thread, they complete by a callback.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

from headrace.errors import CancelledError
from headrace.runtime.cancellation import Cancellation
from headrace.runtime.failures import located
from headrace.runtime.frames import Frames, Run
from headrace.runtime.plan import Mode, Plan, PlanNode
from headrace.runtime.rendezvous import DEAD, LocalRendezvous, Rendezvous


class Step:
    """One run of a plan.

    Attributes:
        id: Unique among all steps that share a rendezvous.
        feeds: The values handed in.
        fetches: The values to hand back, filled by Fetch nodes.
        rendezvous: Where transfers meet.
        cancellation: Tells waiting nodes that the step is over.
        tag: Tells runs of a function within a step apart, for transfers inside it.
    """

    __slots__ = ("cancellation", "feeds", "fetches", "id", "rendezvous", "tag")

    def __init__(
        self,
        step_id: int,
        feeds: Sequence[Any],
        fetches: int,
        rendezvous: Rendezvous,
        cancellation: Cancellation,
        tag: str = "",
    ) -> None:
        self.id = step_id
        self.feeds = feeds
        self.fetches: list[Any] = [None] * fetches
        self.rendezvous = rendezvous
        self.cancellation = cancellation
        self.tag = tag


def execute(plan: Plan, step: Step) -> None:
    """Run a plan once; the results are in ``step.fetches``.

    Raises:
        HeadraceError: what a node raised, with the node and the user's line.
    """
    contexts = [c for c in (device.activate() for device in plan.devices) if c is not None]
    if not contexts:
        _run(plan, step)
        return
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        _run(plan, step)


def run_alone(plan: Plan) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that runs a plan in which nothing waits, as a step of its own."""

    def run(feeds: Sequence[Any]) -> list[Any]:
        step = Step(0, feeds, plan.fetches, LocalRendezvous(), Cancellation())
        execute(plan, step)
        return step.fetches

    # For explanations.
    run.__dict__["plan"] = plan
    return run


def _run(plan: Plan, step: Step) -> None:
    if plan.waits or plan.branches:
        _run_by_arrival(plan, step)
    else:
        _run_in_order(plan, step)


def _run_in_order(plan: Plan, step: Step) -> None:
    slots = list(plan.slots)
    for node in plan.nodes:
        if step.cancellation.reason is not None:
            raise step.cancellation.reason
        values = [slots[i] for i in node.inputs]
        try:
            if node.mode is Mode.PLAIN:
                result = node.call(*values)
            elif node.mode is Mode.FRAMES:
                result = _run_frames(node, step, values)
            else:
                result = node.call(step, *values)
        except Exception as error:
            named = _named(error, node, values, plan)
            if named is error:
                raise
            raise named from error
        if node.single:
            slots[node.outputs[0]] = result[0] if type(result) in _SEQUENCES else result
        else:
            for slot, value in zip(node.outputs, result or (), strict=True):
                slots[slot] = value
        for slot in node.frees:
            slots[slot] = None


def _named(
    error: BaseException, node: PlanNode, values: Sequence[Any], plan: Plan
) -> BaseException:
    """Return an error that names the operation that failed; a segment has named it already."""
    return error if node.segment is not None else located(error, node.op, values, plan.state_uses)


def _run_frames(node: PlanNode, step: Step, values: Sequence[Any]) -> list[Any]:
    """Run what a node that holds functions asks for, one run after the other."""
    frames = node.call(*values)
    cancellation = step.cancellation
    try:
        run = next(frames)
        while True:
            if run[0].whole is not None:
                if cancellation.reason is not None:
                    raise cancellation.reason
                run = frames.send(run[0].whole(run[1]))
                continue
            inner = _inner_step(node, step, run)
            execute(run[0], inner)
            run = frames.send(inner.fetches)
    except StopIteration as stop:
        results: list[Any] = stop.value
        return results


def _inner_step(node: PlanNode, step: Step, run: Run) -> Step:
    plan, arguments, label = run
    tag = step.tag
    if plan.transfers:
        # The parts of one loop on several tasks are views of one run, and have one name here.
        tag = f"{tag}{node.op.attrs.get('run') or node.op.name}#{label}/"
    return Step(step.id, arguments, plan.fetches, step.rendezvous, step.cancellation, tag)


def _run_by_arrival(plan: Plan, step: Step) -> None:
    run = _Arrivals(plan, step)
    key = step.cancellation.add(run.abort)
    try:
        run.loop()
    except BaseException as error:
        # After an interrupt nothing may wait on: it would take from a queue what nobody gets.
        step.cancellation.cancel(CancelledError(f"the step was interrupted: {error!r}"))
        raise
    finally:
        step.cancellation.discard(key)


class _Frame:
    """One run of one plan: what its slots hold and what its nodes still wait for."""

    __slots__ = ("done", "left", "missing", "plan", "slots", "step", "uses")

    def __init__(self, plan: Plan, step: Step, done: Callable[[], None]) -> None:
        self.plan = plan
        self.step = step
        self.done = done
        self.slots = list(plan.slots)
        self.missing = [node.waits for node in plan.nodes]
        self.left = len(plan.nodes)
        self.uses = [0] * len(plan.slots)
        for node in plan.nodes:
            for slot in node.inputs:
                self.uses[slot] += 1
        # Presets stay: they belong to the plan.
        for slot, value in enumerate(plan.slots):
            if value is not None:
                self.uses[slot] = -1


class _Arrivals:
    """One run of a plan whose nodes start as what they wait for arrives.

    Functions that nodes hold run as frames of their own in the same loop, so that no thread waits
    for what they wait for.
    """

    def __init__(self, plan: Plan, step: Step) -> None:
        self.step = step
        self.ready: deque[tuple[_Frame, int]] = deque()
        self.completions: SimpleQueue[tuple[_Frame | None, int, Any]] = SimpleQueue()
        self.waiting = 0
        self.ended = False
        self.failure: BaseException | None = None
        self.enter(plan, step, self.end)

    def enter(self, plan: Plan, step: Step, done: Callable[[], None]) -> None:
        """Begin a run of a plan; ``done`` is called when all of it has run."""
        frame = _Frame(plan, step, done)
        self.ready.extend((frame, i) for i, node in enumerate(plan.nodes) if not node.waits)
        if not plan.nodes:
            done()

    def end(self) -> None:
        self.ended = True

    def abort(self, reason: BaseException) -> None:
        """Wake the loop: the step was cancelled from outside."""
        self.completions.put((None, -1, reason))

    def loop(self) -> None:
        while not self.ended:
            if self.ready and self.failure is None:
                self.start(*self.ready.popleft())
            elif self.waiting:
                frame, index, result = self.step.rendezvous.wait(self.completions)
                if frame is None:
                    self.fail(result)
                else:
                    self.waiting -= 1
                    self.finish(frame, index, result)
            else:
                break
        if self.failure is not None:
            raise self.failure

    def start(self, frame: _Frame, index: int) -> None:
        node = frame.plan.nodes[index]
        slots = frame.slots
        values = [slots[i] for i in node.inputs]
        if node.mode is Mode.MERGE:
            self.finish(frame, index, _merged(node, values))
            return
        dead = any(slots[c] is DEAD for c in node.controls) or any(v is DEAD for v in values)
        if node.mode is Mode.SEND and dead:
            values = [DEAD]
        elif dead:
            self.finish(frame, index, DEAD)
            return
        try:
            if node.mode is Mode.PLAIN:
                result = node.call(*values)
            elif node.mode is Mode.FRAMES:
                self.advance(frame, index, node.call(*values), None)
                return
            elif node.mode is Mode.BLOCKING:
                self.waiting += 1
                put = self.completions.put
                node.call(frame.step, lambda value: put((frame, index, value)), *values)
                return
            else:
                result = node.call(frame.step, *values)
        except Exception as error:
            if node.mode is Mode.BLOCKING:
                self.waiting -= 1
            self.fail(_named(error, node, values, frame.plan), error)
            return
        self.finish(frame, index, result)

    def advance(self, frame: _Frame, index: int, frames: Frames, results: Any) -> None:
        """Go on with a node that holds functions until it needs a run that waits, or ends."""
        node = frame.plan.nodes[index]
        try:
            while True:
                run = next(frames) if results is None else frames.send(results)
                if run[0].whole is not None:
                    if self.failure is not None:
                        return
                    results = run[0].whole(run[1])
                    continue
                inner = _inner_step(node, frame.step, run)
                if run[0].waits:
                    after = functools.partial(self.after, frame, index, frames, inner)
                    self.enter(run[0], inner, after)
                    return
                execute(run[0], inner)
                results = inner.fetches
        except StopIteration as stop:
            self.finish(frame, index, stop.value)
        except Exception as error:
            values = [frame.slots[i] for i in node.inputs]
            self.fail(_named(error, node, values, frame.plan), error)

    def after(self, frame: _Frame, index: int, frames: Frames, inner: Step) -> None:
        self.advance(frame, index, frames, inner.fetches)

    def finish(self, frame: _Frame, index: int, result: Any) -> None:
        node = frame.plan.nodes[index]
        slots = frame.slots
        if isinstance(result, BaseException):
            # What arrives after the failure is its consequence, not its cause.
            if self.failure is None:
                values = [slots[i] for i in node.inputs]
                self.fail(_named(result, node, values, frame.plan), result)
            return
        if result is DEAD:
            slots[node.control] = DEAD
            for slot in node.outputs:
                slots[slot] = DEAD
        elif node.single:
            slots[node.outputs[0]] = result[0] if type(result) in _SEQUENCES else result
        else:
            for slot, value in zip(node.outputs, result or (), strict=True):
                slots[slot] = value
        for slot in node.inputs:
            frame.uses[slot] -= 1
            if not frame.uses[slot]:
                slots[slot] = None
        for user in node.users:
            frame.missing[user] -= 1
            if not frame.missing[user]:
                self.ready.append((frame, user))
        frame.left -= 1
        if not frame.left:
            frame.done()

    def fail(self, error: BaseException, cause: BaseException | None = None) -> None:
        if self.failure is not None:
            return
        if cause is not None and cause is not error:
            error.__cause__ = cause
        self.failure = error
        reason = CancelledError(f"the step ended: {error}".splitlines()[0])
        self.step.cancellation.cancel(reason)
        self.step.rendezvous.close(self.step.id, reason)


# What kernels of ops with any number of outputs return, where there is but one.
_SEQUENCES = (list, tuple)


def _merged(node: PlanNode, values: list[Any]) -> Any:
    for i, value in enumerate(values):
        if value is not DEAD:
            return value, node.call(i)
    return DEAD
