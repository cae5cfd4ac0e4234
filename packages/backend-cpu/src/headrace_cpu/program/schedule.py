"""The schedule: the order in which a program does its work.

Items follow the order of the graph, with two exceptions that keep little memory in use:

* What updates a variable runs as soon as everything is there and everybody has read the old value,
  so that gradients are not kept until the end of the step, and no reader forces a copy of the
  variable.
* What is the last to read at least as much as it makes runs as soon as everything is there: of a
  sum of many products, each product is added before the next one is made.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace import Operation, Tensor
from headrace_cpu.program.implementation import Implementation
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
    instruction: Implementation | None
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
    order = _sorted(items, [*edges, *_reads_before_updates(items, item_of)], matches)
    return order if order is not None else _required(_sorted(items, edges, matches))


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


def _sorted(items: Sequence[Item], edges: Sequence[Edge], matches: Matches) -> list[Item] | None:
    """Return items so that edges point forward; None where they form a circle."""
    missing = dict.fromkeys(items, 0)
    after: dict[Item, list[Item]] = {item: [] for item in items}
    for first, second in edges:
        missing[second] += 1
        after[first].append(second)
    uses = _Uses(items, matches)
    at = {item.place: item for item in items}
    # An item that turns out to be the last reader of something is in it once more.
    ready = [(uses.turn(item), item.place) for item in items if not missing[item]]
    heapq.heapify(ready)
    done: set[Item] = set()
    order: list[Item] = []
    while ready:
        item = at[heapq.heappop(ready)[1]]
        if item in done:
            continue
        done.add(item)
        order.append(item)
        for user in after[item]:
            missing[user] -= 1
        for other in dict.fromkeys((*after[item], *uses.end(item))):
            if not missing[other] and other not in done:
                heapq.heappush(ready, (uses.turn(other), other.place))
    return order if len(order) == len(items) else None


class _Uses:
    """Who has still to read which tensors that a program makes."""

    def __init__(self, items: Sequence[Item], matches: Matches) -> None:
        made = {t for item in items for op in item.ops for t in op.outputs if _size(t)}
        inside = [set(item.ops) for item in items]
        self._made: dict[Item, int] = {}
        self._reads: dict[Item, list[Tensor]] = {}
        self._readers: dict[Tensor, dict[Item, None]] = {}
        for item, ops in zip(items, inside, strict=True):
            outputs = [t for op in item.ops for t in op.outputs]
            self._made[item] = sum(_size(t) for t in outputs if matches.needed_outside(t, ops))
            read = dict.fromkeys(t for op in item.ops for t in op.inputs if t.op not in ops)
            self._reads[item] = [t for t in read if t in made and t not in matches.results]
            for tensor in self._reads[item]:
                self._readers.setdefault(tensor, {})[item] = None

    def turn(self, item: Item) -> int:
        """Return what puts updates first, then what takes at least as much away as it brings."""
        if any(map(_updates, item.ops)):
            return 0
        if any(op.schema.stateful for op in item.ops):
            return 2
        last = sum(_size(t) for t in self._reads[item] if len(self._readers[t]) == 1)
        return 1 if last and last >= self._made[item] else 2

    def end(self, item: Item) -> list[Item]:
        """Note that an item has run; return those that are the last to read something now."""
        last: list[Item] = []
        for tensor in self._reads[item]:
            readers = self._readers[tensor]
            del readers[item]
            if len(readers) == 1:
                last.extend(readers)
        return last


def _size(tensor: Tensor) -> int:
    """Return the bytes of a tensor, 0 where they are not known."""
    shape = tensor.spec.shape
    if tensor.dtype.kind in ("resource", "list", "string") or not shape.is_fully_defined():
        return 0
    return math.prod(shape.known) * tensor.dtype.numpy.itemsize
