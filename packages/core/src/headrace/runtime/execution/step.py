"""A run of a plan: what it is handed and hands back, where its transfers meet, and its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.concurrency.stalls import StallWatch, Wait
from headrace.runtime.concurrency.wakeup import Wakeup
from headrace.runtime.control_flow.invocations import Invocation
from headrace.runtime.execution.plan import Plan, PlanNode
from headrace.runtime.transfers.rendezvous import Rendezvous


class Step:
    """One run of a plan.

    Attributes:
        id: Unique among all steps that share a rendezvous.
        feeds: The values handed in.
        fetches: The values to hand back, filled by Fetch nodes.
        rendezvous: Where transfers meet.
        cancellation: Tells waiting nodes that the step is over.
        invocation: Tells runs of a function within a step apart, for transfers inside it.
        watch: Is told when nothing has happened for long; None where nobody is.
        wait: How the thread that runs the step waits to be woken: the ``wait`` of the rendezvous,
            unless a blocking kernel puts another one there. It does where what it waits for goes
            on only when somebody calls it.
        waits: Returns what its operations wait for, while it waits.
        borrowed: Whether the thread that is at work for it right now has something else to do,
            for which others may wait: kernels do not keep it for long.
    """

    __slots__ = (
        *("borrowed", "cancellation", "feeds", "fetches", "id", "invocation", "rendezvous"),
        *("wait", "waits", "watch"),
    )

    def __init__(
        self,
        step_id: int,
        feeds: Sequence[Any],
        fetches: int,
        rendezvous: Rendezvous,
        cancellation: Cancellation,
        invocation: str = "",
        watch: StallWatch | None = None,
    ) -> None:
        self.id = step_id
        self.feeds = feeds
        self.fetches: list[Any] = [None] * fetches
        self.rendezvous = rendezvous
        self.cancellation = cancellation
        self.invocation = invocation
        self.watch = watch
        self.waits: Callable[[], Sequence[Wait]] | None = None
        self.borrowed = False
        self.wait: Callable[[Wakeup, float | None], bool] = rendezvous.wait

    def explained(self) -> list[str]:
        """Return lines of text on what it waits for right now; none where that is not known."""
        waits, watch = self.waits, self.watch
        if waits is None or watch is None:
            return []
        try:
            return watch.explained(waits())
        except (KeyError, RuntimeError):
            # It goes on right now.
            return []

    def with_cancellation(self, cancellation: Cancellation) -> Step:
        """Return the same run as a kernel sees it that is cancelled through another flag."""
        made = Step(self.id, (), 0, self.rendezvous, cancellation, self.invocation)
        made.borrowed = self.borrowed
        return made


def inner_step(node: PlanNode, step: Step, run: Invocation) -> Step:
    """Return the step of a run that a node which holds functions asks for."""
    plan, arguments, label = run
    invocation = step.invocation
    if plan.transfers:
        # The parts of one loop on several tasks are views of one run, and have one name here.
        invocation = f"{invocation}{node.op.attrs.get('run') or node.op.name}#{label}/"
    return Step(step.id, arguments, plan.fetches, step.rendezvous, step.cancellation, invocation)


class Loop(Protocol):
    """A run of a loop whose iterations overlap."""

    def filled(self, execution: Execution, index: int) -> None:
        """Take over what a node of an iteration has filled."""

    def failed(self, number: int, error: BaseException) -> bool:
        """Note that an iteration has failed; return whether that ends the loop now."""

    def abandons(self, number: int) -> bool:
        """Whether an iteration has failed, or follows one that has."""


class Execution:
    """What the slots of a plan hold in a run, and what its nodes still wait for.

    Attributes:
        plan: The plan.
        step: The step that it runs in.
        done: Is called when all of it has run.
        outer: The run of the plan with the node that this is part of; None for the step itself.
        slots: The slots' values.
        missing: For how many others each node still waits.
        left: How many nodes have not run.
        uses: How many inputs still take the value of each slot.
        loop: The loop of which it is an iteration, or the condition before one; None for others.
        number: The number of that iteration.
        fills: The loop's variables that each node fills; None where it is no iteration.
    """

    __slots__ = (
        *("done", "fills", "left", "loop", "missing", "number", "outer", "plan", "slots"),
        *("step", "uses"),
    )

    def __init__(
        self, plan: Plan, step: Step, done: Callable[[], None], outer: Execution | None
    ) -> None:
        self.plan = plan
        self.step = step
        self.done = done
        self.outer = outer
        self.slots = list(plan.slots)
        self.missing = list(plan.missing)
        self.left = len(plan.nodes)
        self.uses = list(plan.readers)
        self.loop: Loop | None = None
        self.number = 0
        self.fills: tuple[tuple[int, ...], ...] | None = None

    @property
    def is_abandoned(self) -> bool:
        """Whether it is part of an iteration that has failed, or that follows one that has."""
        at: Execution | None = self
        while at is not None:
            if at.loop is not None and at.loop.abandons(at.number):
                return True
            at = at.outer
        return False
