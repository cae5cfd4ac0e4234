"""Running a plan in which nodes wait one after the other: each needs the one before.

So does a step that takes a batch out of a queue, or reads records and puts them into one. The nodes
run in an order, as in ``serial.py``: what the first that waits needs, then what does not need it,
which goes on while it waits, and so on. Nothing has to be counted or queued, as it has where
several nodes wait at a time (``dataflow.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, final

from headrace.errors import CancelledError, UninitializedError
from headrace.graph.operation import Operation
from headrace.records import dataclass
from headrace.runtime.concurrency.inbox import Inbox
from headrace.runtime.concurrency.stalls import Wait, describes
from headrace.runtime.execution.plan import Mode, Plan, PlanNode
from headrace.runtime.execution.serial import SEQUENCES, Execute, named, run_nodes
from headrace.runtime.execution.step import Step
from headrace.runtime.failures import located
from headrace.runtime.state.containers import VariableCell


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A node that waits, and what runs around it.

    Attributes:
        before: What it needs, and those before it do not.
        node: The node.
        beside: What can run as soon as ``before`` can, and is not needed here.
    """

    before: tuple[PlanNode, ...]
    node: PlanNode
    beside: tuple[PlanNode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The nodes of a plan in which each that waits needs the one before, as they run.

    Attributes:
        links: Those that wait, one at least.
        after: What needs the last of them.
        late: Reads of variables that wait without need: how many of the links each must wait for,
            the operation, and the variable.
    """

    links: tuple[Link, ...]
    after: tuple[PlanNode, ...]
    late: tuple[tuple[int, Operation, VariableCell], ...] = ()


def chain(
    nodes: Sequence[PlanNode],
    slots: Sequence[Any],
    late: Sequence[tuple[int, Operation, VariableCell]] = (),
) -> Chain | None:
    """Return how a plan runs in which nothing is dead; None unless its waits are a chain.

    Args:
        nodes: Its nodes, each after those that it waits for.
        slots: What its slots hold before the step.
        late: As in ``Chain``.
    """
    waiting = [i for i, node in enumerate(nodes) if _may_wait(node)]
    if not waiting or any(nodes[i].mode is not Mode.BLOCKING for i in waiting):
        return None
    # After how many of those that wait a node can run.
    ready = [0] * len(nodes)
    for i, node in enumerate(nodes):
        own = ready[i] + (i in waiting)
        for user in node.users:
            ready[user] = max(ready[user], own)
    if [ready[i] for i in waiting] != list(range(len(waiting))):
        return None
    # The first of those that wait for which a node is needed.
    needed = [len(waiting)] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        mine = [waiting.index(i)] if i in waiting else []
        needed[i] = min([*mine, *(needed[user] for user in nodes[i].users)], default=len(waiting))
    rest = [i for i in range(len(nodes)) if i not in waiting]
    parts = []
    for number, place in enumerate(waiting):
        here = [i for i in rest if ready[i] == number]
        before = [i for i in here if needed[i] == number]
        parts.append((before, place, [i for i in here if needed[i] > number]))
    after = [i for i in rest if ready[i] == len(waiting)]
    order = [i for before, place, beside in parts for i in (*before, place, *beside)] + after
    made = _freeing(nodes, slots, order)

    def chosen(places: Sequence[int]) -> tuple[PlanNode, ...]:
        return tuple([made[i] for i in places])

    links = [Link(chosen(a), made[i], chosen(b)) for a, i, b in parts]
    return Chain(tuple(links), chosen(after), tuple(late))


def _freeing(
    nodes: Sequence[PlanNode], slots: Sequence[Any], order: Sequence[int]
) -> dict[int, PlanNode]:
    """Return nodes, by their places, that let go what nobody reads after them in an order."""
    last = {}
    for i in order:
        for slot in (*nodes[i].outputs, *nodes[i].inputs):
            last[slot] = i
    frees: dict[int, list[int]] = {}
    for slot, i in last.items():
        if slots[slot] is None:
            frees.setdefault(i, []).append(slot)
    return {i: replace(nodes[i], frees=tuple(frees.get(i, ()))) for i in order}


def _may_wait(node: PlanNode) -> bool:
    return node.mode in (Mode.BLOCKING, Mode.CALLS_OUT) or any(plan.waits for plan in node.inner)


@final
class ChainRun:
    """One run of a plan whose nodes wait one after the other."""

    __slots__ = ("_at", "_begun", "_chain", "_come", "_execute", "_plan", "_slots", "_step")

    def __init__(
        self,
        plan: Plan,
        chain: Chain,
        step: Step,
        wake: Callable[[], None],
        execute: Execute,
    ) -> None:
        """Begin a run.

        Args:
            plan: The plan.
            chain: Its nodes.
            step: The step that it runs in.
            wake: Called once, by any thread, after ``advance`` has returned False, when it should
                be called again.
            execute: Runs the plans that nodes of it hold.
        """
        self._plan = plan
        self._chain = chain
        self._step = step
        self._execute = execute
        self._slots = list(plan.slots)
        # Which of those that wait is next, and whether it waits.
        self._at = 0
        self._begun = False
        # What it has got, or why the step ends.
        self._come = Inbox(wake)

    def abort(self, reason: BaseException) -> None:
        """End the run where it waits: its step was cancelled."""
        self._come.put(reason)

    def advance(self) -> bool:
        """Run until the end, or until something has to be waited for; return whether it ended.

        Raises:
            HeadraceError: what a node raised, with the node and the user's line.
        """
        links = self._chain.links
        try:
            while self._at < len(links):
                link = links[self._at]
                if not self._begun:
                    self._begun = True
                    self._run(link.before)
                    self._begin(link.node)
                    self._run(link.beside)
                if self._come.park():
                    self._look_ahead()
                    return False
                self._fill(link.node, self._come.take())
                self._at += 1
                self._begun = False
            self._run(self._chain.after)
        except Exception as error:
            self._end(error)
            raise
        return True

    @property
    def at_last(self) -> bool:
        """Whether it waits for the last thing, if it waits."""
        return self._at == len(self._chain.links) - 1

    def waits(self) -> list[Wait]:
        """Return what it waits for; for messages."""
        at = self._at
        if not self._come.parked or at == len(self._chain.links):
            return []
        node = self._chain.links[at].node
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
            node.call(self._step, self._come.put, *values)
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
        for slot in node.frees:
            slots[slot] = None

    def _look_ahead(self) -> None:
        """Tell of variables without a value before something is waited for, not after that."""
        for phase, op, cell in self._chain.late:
            if phase <= self._at and not cell.initialized:
                try:
                    cell.read()
                except UninitializedError as error:
                    raise located(error, op, [cell], self._plan.state_uses) from error

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
