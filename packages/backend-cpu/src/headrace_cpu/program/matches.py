"""Matches: which instruction computes which operations of a region.

Instructions that compute several operations at once must not wait for themselves by way of
others. A match is refused when it would close such a circle.

An instruction computes operations of one device, so that what is told of it is true: where a region
has operations of several, what goes from one to another counts as a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from headrace import Operation, Tensor
from headrace_cpu.program.implementation import Implementation


def crosses(op: Operation, other: Operation) -> bool:
    """Whether operations are of several devices."""
    return op.device_name is not other.device_name and op.device_name != other.device_name


class Matches:
    """The operations of a region, and the instructions that compute them.

    Attributes:
        operations: All of them, in an order in which they can run.
        results: Tensors that are wanted outside the region, or on another of its devices: some
            instruction must write them.
        several: Whether its operations are of several devices.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        results: Iterable[Tensor],
        closed: Iterable[Operation] = (),
    ) -> None:
        """Begin with nothing matched.

        Args:
            operations: All of them, in an order in which they can run.
            results: Tensors that are wanted outside.
            closed: Operations that no instruction can compute, such as those of unknown shapes.
        """
        self.operations = tuple(operations)
        self.several = len({op.device_name for op in self.operations}) > 1
        self.results = frozenset(results)
        self.instructions: list[Implementation] = []
        self._place = {op: i for i, op in enumerate(self.operations)}
        self._group: dict[Operation, int] = {op: i for i, op in enumerate(self.operations)}
        self._members: dict[int, list[Operation]] = {
            i: [op] for i, op in enumerate(self.operations)
        }
        self._closed = frozenset(closed)
        self._matched: set[Operation] = set(self._closed)
        self._users: dict[Tensor, list[Operation]] = {}
        self._waiters: dict[Operation, list[Operation]] = {}
        if self.several:
            read = ((t, op) for op in self.operations for t in op.inputs if t.op in self._place)
            self.results |= {tensor for tensor, op in read if crosses(tensor.op, op)}
        for op in self.operations:
            for tensor in dict.fromkeys(op.inputs):
                self._users.setdefault(tensor, []).append(op)
            for other in dict.fromkeys([*[t.op for t in op.inputs], *op.control_inputs]):
                self._waiters.setdefault(other, []).append(op)

    def __contains__(self, op: Operation) -> bool:
        """Whether an operation belongs to the region."""
        return op in self._place

    def free(self, op: Operation) -> bool:
        """Whether an operation of the region is not matched yet."""
        return op in self._place and op not in self._matched

    def taken(self, op: Operation) -> bool:
        """Whether an instruction computes an operation."""
        return op in self._matched and op not in self._closed

    def users(self, tensor: Tensor) -> list[Operation]:
        """Return the operations of the region that read a tensor."""
        return self._users.get(tensor, [])

    def needed_outside(self, tensor: Tensor, ops: Iterable[Operation]) -> bool:
        """Whether a tensor is read by others than ``ops``, or wanted as a result."""
        if tensor in self.results:
            return True
        inside = ops if isinstance(ops, AbstractSet) else set(ops)
        return any(user not in inside for user in self._users.get(tensor, ()))

    def can_join(self, ops: Iterable[Operation]) -> bool:
        """Whether operations that nobody took can run at once without waiting for themselves."""
        wanted = set(ops)
        if self.several and any(crosses(op, next(iter(wanted))) for op in wanted):
            return False
        return all(map(self.free, wanted)) and not self._circle(wanted)

    def add(self, instruction: Implementation) -> bool:
        """Let an instruction compute its operations; False where it cannot."""
        if not self.can_join(instruction.ops):
            return False
        first = self._group[instruction.ops[0]]
        members = [member for op in instruction.ops for member in self._members[self._group[op]]]
        for op in members:
            self._group[op] = first
        self._members[first] = list(dict.fromkeys(members))
        self._matched.update(instruction.ops)
        self.instructions.append(instruction)
        return True

    def _circle(self, wanted: set[Operation]) -> bool:
        """Whether a path leads from ``wanted`` through other operations back into it."""
        if len(wanted) < 2:
            return False
        last = max(self._place[op] for op in wanted)
        stack = [user for op in wanted for user in self._waiters.get(op, ()) if user not in wanted]
        seen: set[int] = set()
        while stack:
            op = stack.pop()
            group = self._group[op]
            if group in seen:
                continue
            seen.add(group)
            for member in self._members[group]:
                for user in self._waiters.get(member, ()):
                    if user in wanted:
                        return True
                    # Groups may reach back, so that only groups of one are cut off by place.
                    if self._place[user] <= last or len(self._members[self._group[user]]) > 1:
                        stack.append(user)
        return False
