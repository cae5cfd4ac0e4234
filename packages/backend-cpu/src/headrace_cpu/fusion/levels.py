"""Levels of operations: what can be fused with what without waiting for itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod

from headrace import Operation, Tensor
from headrace_cpu.fusion.build import same_but_ones
from headrace_cpu.fusion.fusion_group import fusible, is_view, reduces
from headrace_cpu.fusion.interpret import data_inputs
from headrace_cpu.fusion.nodes import shape_of
from headrace_cpu.fusion.parts import PART_RULES
from headrace_cpu.fusion.viewing import UPDATE_RULES
from headrace_cpu.native_loops.transpose import turns_squares
from headrace_cpu.program.matches import Matches, crosses


class Levels:
    """The levels of a region's operations."""

    def __init__(self, matches: Matches, *, turns: bool = False) -> None:
        """Find them.

        Args:
            matches: The operations of the region.
            turns: Whether a large transposition of what is in memory stays by itself.
        """
        self.matches = matches
        self._turns = turns
        self.fusible = {op for op in matches.operations if matches.free(op) and fusible(op)}
        self.fusible -= {op for op in self.fusible if self._must_copy(op)}
        self.level: dict[Operation, int] = {}
        self._waiters: dict[Operation, list[Operation]] = {}
        for op in matches.operations:
            for other in op.control_inputs:
                self._waiters.setdefault(other, []).append(op)
        self._rise()
        self._sink()

    def fused(self) -> list[list[Operation]]:
        """Return the operations that can be fused, level by level, in the order of the graph.

        Of each level, those of one device.
        """
        found: dict[int, dict[Hashable, list[Operation]]] = {}
        for op in self.matches.operations:
            if op in self.fusible:
                device = op.device_name if self.matches.several else None
                found.setdefault(self.level[op], {}).setdefault(device, []).append(op)
        return [ops for level in sorted(found) for ops in found[level].values()]

    def _must_copy(self, op: Operation) -> bool:
        """Whether an operation rearranges memory for a reshape, which kernels do not follow.

        By itself it is a copy, as it must be, and keeps nothing else from being fused.
        """
        if op.type not in ("Transpose", "BroadcastTo") and op.type not in PART_RULES:
            return False
        source = op.inputs[0]
        while is_view(source.op):
            source = source.op.inputs[0]
        if self._turns and source.op not in self.fusible and turns_squares(op):
            return True
        users = [user for tensor in op.outputs for user in self.matches.users(tensor)]
        return source.op not in self.fusible and any(
            user.type == "Reshape" and not same_but_ones(shape_of(t), shape_of(user.outputs[0]))
            for user in users
            for t in op.outputs
            if user in self.fusible
        )

    def _rise(self) -> None:
        """Give each operation the lowest level; those of one instruction share theirs."""
        matches = self.matches
        if not matches.instructions and not matches.several:
            self._rise_one_by_one()
            return
        unit: dict[Operation, tuple[Operation, ...]] = {op: (op,) for op in matches.operations}
        for instruction in matches.instructions:
            unit.update(dict.fromkeys(instruction.ops, instruction.ops))
        for op in _by_unit(matches.operations, unit):
            members = unit[op]
            if members[0] is not op:
                continue
            level = 0
            for member in members:
                for other in {t.op for t in member.inputs} | set(member.control_inputs):
                    if other not in self.level or unit.get(other) is members:
                        continue
                    both = op in self.fusible and other in self.fusible
                    both = both and not (matches.several and crosses(op, other))
                    step = 0 if both and other not in member.control_inputs else 1
                    level = max(level, self.level[other] + step)
            for member in members:
                self.level[member] = level

    def _rise_one_by_one(self) -> None:
        """Do the same where no instruction has taken anything yet: each is by itself."""
        levels, fusible = self.level, self.fusible
        for op in self.matches.operations:
            level, mine = 0, op in fusible
            for tensor in op.inputs:
                other = tensor.op
                known = levels.get(other)
                if known is not None:
                    step = known if mine and other in fusible else known + 1
                    if step > level:
                        level = step
            for other in op.control_inputs:
                known = levels.get(other)
                if known is not None and known + 1 > level:
                    level = known + 1
            levels[op] = level

    def _sink(self) -> None:
        """Move operations up to those that use their results, where less is stored so."""
        for op in reversed(self.matches.operations):
            if op not in self.fusible or reduces(op) or op.type in UPDATE_RULES:
                continue
            if any(t in self.matches.results for t in op.outputs):
                continue
            users = [user for t in op.outputs for user in self.matches.users(t)]
            if not users:
                continue
            target = min([self.level[u] - (u not in self.fusible) for u in users])
            for waiter in self._waiters.get(op, ()):
                target = min(target, self.level[waiter] - 1)
            if target > self.level[op] and self._stores_less(op):
                self.level[op] = target

    def _stores_less(self, op: Operation) -> bool:
        extra = sum(_size(t) for t in set(data_inputs(op)) if not self._stored(t))
        return extra <= sum(_size(t) for t in op.outputs)

    def _stored(self, tensor: Tensor) -> bool:
        """Whether a tensor is in memory for others in any case."""
        maker = tensor.op
        if maker not in self.fusible or tensor in self.matches.results:
            return True
        level = self.level[maker]
        return any(
            user not in self.fusible or self.level[user] > level
            for user in self.matches.users(tensor)
        )


def _size(tensor: Tensor) -> int:
    return prod(tensor.shape.known) * tensor.dtype.numpy.itemsize


def _by_unit(
    ops: Sequence[Operation], unit: dict[Operation, tuple[Operation, ...]]
) -> list[Operation]:
    """Return operations so that all that a unit waits for comes before its first member."""
    order: list[Operation] = []
    done: set[Operation] = set()
    for start in ops:
        stack = [(start, False)]
        while stack:
            op, ready = stack.pop()
            first = unit[op][0]
            if ready:
                order.append(first)
                continue
            if first in done:
                continue
            done.add(first)
            stack.append((first, True))
            for member in unit[op]:
                others = (*(t.op for t in member.inputs), *member.control_inputs)
                stack.extend((o, False) for o in others if o in unit and unit[o][0] not in done)
    return order
