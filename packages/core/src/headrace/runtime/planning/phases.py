"""Phases: the order in which a plan can wait for what comes from other tasks.

Where only receives wait, and what they wait for allows it
(``partition/communication_rounds.py``), a plan runs its nodes one after the other: all that can
run before the first receives, then those receives, all that they make possible, and so on. Nothing
has to be counted or queued then.

So do plans without transfers in which each operation that waits needs the one before it, as steps
that take a batch out of a queue (``chain.py``): what follows each of those is a phase, too.

Variables are read as late as that allows: a value that waits for the next phase is one that an
update in that phase cannot change in place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import final

from headrace.graph.operation import Operation
from headrace.partition.communication_rounds import may_branch, phases
from headrace.passes.effects import has_effect
from headrace.runtime.control_flow.invocations import INVOCATIONS
from headrace.runtime.planning.clustering import Phase, Unit
from headrace.runtime.transfers.rendezvous import Edge

_TRANSFERS = ("Send", "Recv")


@final
class Phases:
    """The phases of a plan.

    Attributes:
        taken: Whether the plan waits in phases for other tasks; otherwise what is ready runs as it
            comes.
        early: The reads of variables that wait without need, and the phase of each if they did not.
    """

    def __init__(self, order: Sequence[Operation], may_wait: Callable[[Operation], bool]) -> None:
        """Find the phases of operations.

        Args:
            order: The operations, in an order in which they can run.
            may_wait: Whether one of them may wait for something that the plan does not do.
        """
        sent = {Edge.of(op) for op in order if op.type == "Send"}
        receives = [op for op in order if op.type == "Recv" and Edge.of(op) not in sent]
        self._names: dict[Operation, Hashable] = {
            op: (op.attrs["round"], op.attrs["sources"]) for op in receives if op.attrs["round"]
        }
        self._phase: dict[Operation, int] = {}
        self._late: dict[Operation, Phase] = {}
        self.early: dict[Operation, int] = {}
        numbers = phases(receives) if receives else None
        self.taken = numbers is not None and not any(
            may_branch(op) or (op.type != "Recv" and may_wait(op)) for op in order
        )
        if numbers is None or not self.taken:
            self._find_chain(order, may_wait)
            return
        self._names.update({op: Phase(phase) for op, phase in numbers.items()})
        sends = {Edge.of(op): op for op in order if op.type == "Send"}
        for op in order:
            needed = [*(t.op for t in op.inputs), *op.control_inputs]
            if op.type == "Recv" and op not in numbers:
                needed.append(sends[Edge.of(op)])
            before = max((self._phase.get(other, 0) for other in needed), default=0)
            self._phase[op] = max(before, numbers.get(op, 0))
        self._read_late(order)

    def _find_chain(
        self, order: Sequence[Operation], may_wait: Callable[[Operation], bool]
    ) -> None:
        """Find the phases of a plan in which each operation that waits needs the one before it."""
        waiting: list[Operation] = []
        phase: dict[Operation, int] = {}
        for op in order:
            if may_branch(op) or op.type in _TRANSFERS:
                return
            needed = (*(t.op for t in op.inputs), *op.control_inputs)
            phase[op] = max([phase.get(other, 0) for other in needed], default=0)
            if may_wait(op):
                if op.type in INVOCATIONS or phase[op] != len(waiting):
                    return
                waiting.append(op)
                phase[op] = len(waiting)
        self._phase = phase
        self._names = {op: Phase(phase[op]) for op in waiting}
        if waiting:
            self._read_late(order)

    def _read_late(self, order: Sequence[Operation]) -> None:
        """Move reads of variables to the first phase that needs them, but over no effect.

        Nothing orders a read with what it is moved over, but programs without any order have
        always got the one in which they were written. What waits changes no variables.
        """
        phase = self._phase
        first: dict[Operation, int] = {}
        effects = set()
        for op in order:
            if op.type not in _TRANSFERS and op not in self._names and has_effect(op):
                effects.add(phase[op])
            # What waits needs its inputs before its phase begins.
            here = phase[op] - (op in self._names)
            for needed in (*(t.op for t in op.inputs), *op.control_inputs):
                if needed.type == "ReadVariable":
                    first[needed] = min(first.get(needed, here), here)
        for op, needed_in in first.items():
            if effects.isdisjoint(range(phase[op], needed_in)) and phase[op] < needed_in:
                self.early[op] = phase[op]
                phase[op] = needed_in
                self._late[op] = Phase(needed_in)

    def source(self, op: Operation) -> Hashable | None:
        """Return what stands for all receives that are waited for together with an operation.

        None where that is not one of them, nor a read that waits for them without need.
        """
        name = self._names.get(op)
        return self._late.get(op) if name is None else name

    def sorted(self, order: Sequence[Operation]) -> Sequence[Operation]:
        """Return operations phase by phase, the receives of each first."""
        return sorted(order, key=self._place) if self.taken else order

    def sorted_units(self, units: list[Unit]) -> list[Unit]:
        """Return units phase by phase, the receives of each first."""
        return sorted(units, key=lambda unit: self._place(unit.ops[0])) if self.taken else units

    def _place(self, op: Operation) -> tuple[int, bool]:
        return self._phase[op], not isinstance(self._names.get(op), Phase)
