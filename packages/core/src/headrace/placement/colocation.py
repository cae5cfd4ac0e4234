"""Colocation: which operations must share a device, and what they ask for together.

Those are state with all its users, and what the program colocated. What uses state goes where the
state is, and what is colocated with something where that is, whatever it asks for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.device_name import DeviceName
from headrace.errors import PlacementError
from headrace.graph.operation import Operation

if TYPE_CHECKING:
    from headrace.placement.place import Machine


class Handles:
    """Where the handles of a step are, on a machine with virtual devices.

    Between those handles pass as values do: what takes handles of several is with the first.
    """

    def __init__(self, machine: Machine, pinned: Mapping[str, DeviceName]) -> None:
        """Begin.

        Args:
            machine: The devices.
            pinned: Devices of handles that were placed by earlier steps.
        """
        self._part = machine.part
        self._home = machine.client.task_name
        self._pinned = pinned

    @classmethod
    def of(cls, machine: Machine, pinned: Mapping[str, DeviceName]) -> Handles | None:
        """Return them; None where handles pass to no other device."""
        several = any(machine.part(device) != device for device in machine.devices)
        return cls(machine, pinned) if several else None

    def place(self, op: Operation) -> DeviceName:
        """Return the device on which an operation's handle is or asks to be, as far as it does."""
        known = self._pinned.get(op.name)
        if known is not None or op.device_name == DeviceName() or takes_handle(op):
            return known or DeviceName()
        return self._home.merged(op.device_name)

    def joint(self, one: DeviceName, other: DeviceName) -> DeviceName | None:
        """Return the device of handles on both; None where a handle passes between them."""
        both = one.intersected(other)
        return None if both is None and self._part(one) == self._part(other) else both or other


def groups(
    operations: Iterable[Operation], loose: Collection[Operation], handles: Handles | None = None
) -> dict[Operation, list[Operation]]:
    """Join operations that must share a device, by union-find; return each one's group.

    Args:
        operations: The operations.
        loose: Operations that need not be where their handles are.
        handles: Where handles are, if they may pass to other devices.
    """
    # Of those that share a device with another.
    parent: dict[Operation, Operation] = {}
    # Where the handles of a group are, by its root.
    known: dict[Operation, DeviceName] = {}

    def root(op: Operation) -> Operation:
        while parent[op] is not op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    operations = list(operations)
    for op in operations:
        # Lists of tensors stay on the device whose arrays they hold.
        kinds = ("list",) if op in loose else ("resource", "list")
        joined = [t.op for t in op.inputs if t.spec.dtype.kind in kinds]
        for other in (*joined, *op.colocated_with):
            parent.setdefault(other, other)
            parent.setdefault(op, op)
            mine, theirs = root(op), root(other)
            if handles is not None:
                one, two = (known[r] if r in known else handles.place(r) for r in (mine, theirs))
                joint = handles.joint(one, two)
                if joint is None and other not in op.colocated_with:
                    continue
                known[theirs] = joint or two
            parent[mine] = theirs
    members: dict[Operation, list[Operation]] = {}
    together: dict[Operation, list[Operation]] = {}
    for op in operations:
        if op in parent:
            together[op] = members.setdefault(root(op), [])
            together[op].append(op)
        else:
            together[op] = [op]
    return together


def joint_request(
    members: Sequence[Operation], soft: bool, home: DeviceName | None = None
) -> DeviceName:
    """Return what operations that share a device ask for together.

    Args:
        members: The operations.
        soft: Whether requests that contradict others do not count.
        home: Where the state is that they use, None for where it asks to be.

    Raises:
        PlacementError: if requests contradict each other.
    """
    request = leader = home or DeviceName()
    maker: Operation | None = None
    asking = [op for op in members if op.device_name != DeviceName()]
    for op in sorted(asking, key=_follows):
        joint = request.intersected(op.device_name)
        if not _follows(op):
            leader = joint or leader
        elif joint is None and leader.intersected(op.device_name) is None:
            continue
        if joint is None and soft:
            continue
        if joint is None:
            other = maker if maker is not None else op
            users = [op for op in members if op.type in ("If", "While")]
            holder = f"  {title(users[0])} at {users[0].site} uses both\n" if users else ""
            raise PlacementError(
                f"{title(op)} and {title(other)} must share a device, but "
                f"ask for {str(op.device_name)!r} and {str(other.device_name)!r}\n"
                f"  {op.name!r} at {op.site}\n  {other.name!r} at {other.site}\n{holder}"
                "  operations share a device with the state they use and with what colocate_with "
                "names"
            )
        request, maker = joint, op
    return request


def takes_handle(op: Operation) -> bool:
    """Whether an operation uses state."""
    return any(t.dtype.kind == "resource" for t in op.inputs)


def _follows(op: Operation) -> bool:
    return bool(op.colocated_with) or takes_handle(op)


def title(op: Operation) -> str:
    """Return an operation's type and name, and what it stands for where a pass made it."""
    origin = f" ({op.origin})" if op.origin else ""
    return f"{op.type} {op.name!r}{origin}"
