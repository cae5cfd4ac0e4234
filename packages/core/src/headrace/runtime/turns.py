"""Turns: the order in which a plan can wait for what comes from other tasks.

Where only receives wait, and what they wait for allows it (``partition/rounds.py``), a plan runs
its nodes one after the other: all that can run before the first receives, then those receives,
all that they make possible, and so on. Nothing has to be counted or queued then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import final

from headrace.graph.operation import Operation
from headrace.partition.rounds import may_branch, turns
from headrace.runtime.cut import Turn, Unit
from headrace.runtime.rendezvous import Edge


@final
class Turns:
    """The turns of a plan.

    Attributes:
        taken: Whether the plan waits in turns; otherwise what is ready runs as it comes.
    """

    def __init__(self, order: Sequence[Operation], may_wait: Callable[[Operation], bool]) -> None:
        """Find the turns of operations.

        Args:
            order: The operations, in an order in which they can run.
            may_wait: Whether one of them may wait for something that the plan does not do.
        """
        sent = {Edge.of(op) for op in order if op.type == "Send"}
        receives = [op for op in order if op.type == "Recv" and Edge.of(op) not in sent]
        self._names: dict[Operation, Hashable] = {
            op: (op.attrs["round"], op.attrs["sources"]) for op in receives if op.attrs["round"]
        }
        self._turn: dict[Operation, int] = {}
        numbers = turns(receives) if receives else None
        self.taken = numbers is not None and not any(
            may_branch(op) or (op.type != "Recv" and may_wait(op)) for op in order
        )
        if numbers is None or not self.taken:
            return
        self._names.update({op: Turn(turn) for op, turn in numbers.items()})
        sends = {Edge.of(op): op for op in order if op.type == "Send"}
        for op in order:
            needed = [*(t.op for t in op.inputs), *op.control_inputs]
            if op.type == "Recv" and op not in numbers:
                needed.append(sends[Edge.of(op)])
            before = max((self._turn.get(other, 0) for other in needed), default=0)
            self._turn[op] = max(before, numbers.get(op, 0))

    def source(self, op: Operation) -> Hashable | None:
        """Return what stands for all receives that are waited for together with one of them."""
        return self._names.get(op)

    def sorted(self, order: Sequence[Operation]) -> Sequence[Operation]:
        """Return operations turn by turn, the receives of each first."""
        return sorted(order, key=self._place) if self.taken else order

    def sorted_units(self, units: list[Unit]) -> list[Unit]:
        """Return units turn by turn, the receives of each first."""
        return sorted(units, key=lambda unit: self._place(unit.ops[0])) if self.taken else units

    def _place(self, op: Operation) -> tuple[int, bool]:
        return self._turn[op], not isinstance(self._names.get(op), Turn)
