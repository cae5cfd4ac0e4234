"""Grouping the items of a program: instructions with nothing in between become one graph.

Reads of variables take no time, and go before the graph in which they lie. Where the graph updates
the variable afterwards, nobody may hold the value that was read, or the update would have to copy
it: then the graph reads the variable itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from headrace import Operation, Tensor
from headrace_cpu.for_backends import Item, Values
from headrace_cuda.program.graph import GraphInstruction, Part
from headrace_cuda.program.instruction import CudaInstruction
from headrace_cuda.program.platform import Platform


def grouped(
    items: Sequence[Item],
    values: Values,
    platform: Platform,
    outputs: Sequence[Tensor],
    *,
    single: bool = False,
) -> list[Item]:
    """Return the items of a program with graphs in the place of what follows one another.

    Args:
        items: The items, in order.
        values: Where their tensors are.
        platform: The GPU.
        outputs: What the program hands out.
        single: Whether each instruction is a graph by itself.
    """
    return _Grouping(items, values, platform, outputs, single).run()


class _Grouping:
    def __init__(
        self,
        items: Sequence[Item],
        values: Values,
        platform: Platform,
        outputs: Sequence[Tensor],
        single: bool,
    ) -> None:
        self.single = single
        self.items = items
        self.values = values
        self.platform = platform
        self.out: list[Item] = []
        self.run_of: list[Item] = []
        self.reads: list[Item] = []
        self.views: list[Item] = []
        # The index of the last item that reads each root.
        self.last: dict[Tensor, int] = {}
        for index, item in enumerate(items):
            if values.is_view(item):
                continue
            for tensor in _taken(item):
                self.last[values.root(tensor)] = index
        for tensor in outputs:
            self.last[values.root(tensor)] = len(items)
        self.place = {item: index for index, item in enumerate(items)}

    def run(self) -> list[Item]:
        for item in self.items:
            if self.values.is_view(item):
                self.views.append(item)
            elif _is_graphed(item):
                self.run_of.append(item)
                if self.single:
                    self._flush()
            elif item.op.type == "ReadVariable" and not self._changed(item):
                self.reads.append(item)
            else:
                self._flush()
                self.out.append(item)
        self._flush()
        return self.out

    def _changed(self, read: Item) -> bool:
        """Whether the run so far changes the variable that an item reads."""
        handle = read.op.inputs[0]
        return any(handle in _instruction(item).updates for item in self.run_of)

    def _flush(self) -> None:
        """End the run: reads and views come before it, as they cost nothing."""
        updated: dict[Tensor, int] = {}
        for item in self.run_of:
            for handle in _instruction(item).updates:
                updated[handle] = self.place[item]
        inside: dict[Tensor, Tensor] = {}
        absorbed: list[Operation] = []
        for read in self.reads:
            handle, value = read.op.inputs[0], read.op.outputs[0]
            changed = updated.get(handle)
            # Those that read after the update want the old value, which must be kept for them.
            if changed is not None and self.last.get(value, -1) <= changed:
                inside[value] = handle
                absorbed.append(read.op)
            else:
                self.out.append(read)
        before = self.views if not self.run_of else []
        self.out += before
        if self.run_of:
            parts = [self._part(item, inside) for item in self.run_of]
            graph = GraphInstruction(parts, absorbed, self.platform)
            last = self.run_of[-1]
            self.out.append(Item(graph.ops, graph, last.place))
            self.out += self.views
        self.run_of, self.reads, self.views = [], [], []

    def _part(self, item: Item, inside: dict[Tensor, Tensor]) -> Part:
        instruction = _instruction(item)
        used = (*instruction.reads, *instruction.writes)
        places = {}
        for tensor in used:
            root = self.values.root(tensor)
            places[tensor] = inside.get(root, root)
        places.update({handle: handle for handle in instruction.updates})
        return Part(instruction, places)


def _is_graphed(item: Item) -> bool:
    """Whether an item can be part of a graph."""
    return isinstance(item.instruction, CudaInstruction)


def _instruction(item: Item) -> CudaInstruction:
    return cast("CudaInstruction", item.instruction)


def _taken(item: Item) -> Sequence[Tensor]:
    """Return what an item reads."""
    if item.instruction is None:
        return item.op.inputs
    return (*item.instruction.reads, *item.instruction.updates)
