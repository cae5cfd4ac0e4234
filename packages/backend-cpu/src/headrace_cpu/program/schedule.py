"""The schedule: the order in which a program does its work.

Items follow the order of the graph, with one exception: what updates a variable runs as soon as
everything is there and everybody has read the old value, so that gradients are not kept until the
end of the step, and no reader forces a copy of the variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace import Operation, Tensor
from headrace.extend.graphs import CycleError, in_order
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matches import Matches


@dataclass(slots=True, eq=False)
class Item:
    """One step of a program: an instruction, or an operation by itself.

    Attributes:
        ops: What it computes.
        instruction: What computes it, None for an operation that runs by itself.
        place: The place of its last operation in the graph.
    """

    ops: tuple[Operation, ...]
    instruction: Instruction | None
    place: int

    @property
    def op(self) -> Operation:
        """The operation that stands for the item in messages."""
        return self.ops[-1]


def schedule(matches: Matches) -> list[Item]:
    """Return the items of a program in the order in which they run."""
    place = {op: i for i, op in enumerate(matches.operations)}
    items = [
        Item(instruction.ops, instruction, max(place[op] for op in instruction.ops))
        for instruction in matches.instructions
    ]
    matched = {op for item in items for op in item.ops}
    items += [Item((op,), None, place[op]) for op in matches.operations if op not in matched]
    item_of = {op: item for item in items for op in item.ops}
    edges = _edges(items, item_of)
    order = _sorted(items, [*edges, *_reads_before_updates(items, item_of)])
    return order if order is not None else _required(_sorted(items, edges))


def _required(order: list[Item] | None) -> list[Item]:
    assert order is not None, "instructions wait for each other"
    return order


def _updates(op: Operation) -> bool:
    """Whether an operation changes the variable that its first input stands for."""
    return op.schema.changes and bool(op.inputs) and op.inputs[0].spec.content is not None


Edge = tuple[Item, Item]


def _edges(items: Sequence[Item], item_of: Mapping[Operation, Item]) -> list[Edge]:
    """Return pairs (before, after) that the graph demands."""
    edges: dict[Edge, None] = {}
    for item in items:
        for op in item.ops:
            for other in (*(t.op for t in op.inputs), *op.control_inputs):
                before = item_of.get(other)
                if before is not None and before is not item:
                    edges[before, item] = None
    return list(edges)


def _reads_before_updates(items: Sequence[Item], item_of: Mapping[Operation, Item]) -> list[Edge]:
    """Return pairs (reader of an old value, update of the variable) that come in this order."""
    readers: dict[Tensor, list[Item]] = {}
    for item in items:
        for op in item.ops:
            for tensor in op.inputs:
                readers.setdefault(tensor, []).append(item)
    updates: dict[Tensor, list[Item]] = {}
    reads: dict[Tensor, list[Tensor]] = {}
    for item in items:
        for op in item.ops:
            if _updates(op):
                updates.setdefault(op.inputs[0], []).append(item)
            elif op.type == "ReadVariable":
                reads.setdefault(op.inputs[0], []).append(op.outputs[0])
    edges: list[Edge] = []
    for handle, changers in updates.items():
        for value in reads.get(handle, ()):
            users = [item_of[value.op], *readers.get(value, ())]
            for update in changers:
                edges.extend(
                    (user, update)
                    for user in dict.fromkeys(users)
                    if user is not update and user.place < update.place
                )
    return edges


def _sorted(items: Sequence[Item], edges: Sequence[Edge]) -> list[Item] | None:
    """Return items so that edges point forward; None where they form a circle."""
    before: dict[Item, list[Item]] = {item: [] for item in items}
    for first, second in edges:
        before[second].append(first)
    try:
        return in_order(items, before.__getitem__, key=_turn)
    except CycleError:
        return None


def _turn(item: Item) -> tuple[bool, int]:
    """Return what puts updates first, and others in the order of the graph."""
    return not any(map(_updates, item.ops)), item.place
