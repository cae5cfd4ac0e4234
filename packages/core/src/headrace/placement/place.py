"""Choosing a device for every operation of a step.

Operations that must share a device are joined into groups (state with all its users, and what
the program colocated). The devices that a group may use are those that satisfy every request in
it and have a kernel for every operation of it; of these the best is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from headrace.device_name import DeviceName
from headrace.dtypes import DType
from headrace.errors import NoDeviceError, NoKernelError, PlacementError, listing, shorten
from headrace.graph.function import functions_within
from headrace.graph.operation import Operation
from headrace.passes.evaluate import kernel_dtype as kernel_dtype
from headrace.passes.pipeline import Added, Pipeline
from headrace.passes.step_graph import StepGraph
from headrace.placement.colocation import Handles, groups, joint_request, title
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.placement.assignment import Assignment
    from headrace.placement.cost_placement import Costs


@dataclass(frozen=True, slots=True)
class Machine:
    """What placement chooses from.

    Attributes:
        devices: The full names of all devices.
        priorities: For each kind of device how much it is preferred.
        client: The device on which feeds and fetches live.
        kernels: What each kind of device can run.
        hints: Why kinds of devices that might be asked for are missing.
        dtypes: The dtypes that arrays of a kind of device can have, where not all.
        added: What plugins add to the passes.
        soft: Whether an operation runs elsewhere where the device that it asks for cannot run it.
        assignment: The placement policy of the session, as it applies to the program.
        compress: Whether float32 goes between tasks in half the bytes.
        virtual: The kinds whose devices are, within a task, names for one and the same thing.
        home: The device that is taken where only numbers tell devices apart; the first if None.
        costs: What operations and transfers cost, where devices are chosen by that.
    """

    devices: tuple[DeviceName, ...]
    priorities: Mapping[str, int]
    client: DeviceName
    kernels: KernelRegistry
    hints: Mapping[str, str] = field(default_factory=dict)
    dtypes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    added: Added = Added()
    soft: bool = False
    assignment: Assignment | None = None
    compress: bool = False
    virtual: frozenset[str] = frozenset()
    home: DeviceName | None = None
    costs: Costs | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The passes that rewrite steps."""
        return Pipeline(self.kernels, self.added)

    def part(self, device: DeviceName) -> DeviceName:
        """Return the device that stands for all to which values pass from it as they are."""
        if device.index and device.kind in self.virtual:
            return DeviceName(device.job, device.task, device.kind, 0)
        return device


# Above every priority that a plugin gives its devices: the device where a function runs.
HOME_PRIORITY = 1_000_000


def follows_input(op: Operation) -> bool:
    """Whether an operation is so little work that moving its inputs elsewhere would cost more."""
    return op.schema.view or op.type in ("Switch", "Merge")


def stands_anywhere(op: Operation) -> bool:
    """Whether it is a constant that may stand on any device, and on several."""
    return op.type == "Const" and not op.control_inputs


Placement = dict[Operation, DeviceName]


def place(
    step: StepGraph,
    machine: Machine,
    *,
    state_users: Mapping[str, Sequence[Operation]] | None = None,
    pinned: Mapping[str, DeviceName] | None = None,
    loose: Collection[Operation] = (),
) -> Placement:
    """Return the device of every operation.

    Args:
        step: The step, before partitioning.
        machine: The devices and kernels at hand.
        state_users: For each operation that yields a handle, by name, all operations of the
            program that use it, so that state lives where every user can run.
        pinned: Devices of handles that were placed by earlier steps.
        loose: Operations that need not be where their handles are: loops that are going to be
            spread, whose parts find the handles themselves.

    Raises:
        NoDeviceError: if a request names a device that is not there.
        NoKernelError: if no device that satisfies the requests has a kernel.
        PlacementError: if requests of operations that must share a device contradict each other.
    """
    users, pins = state_users or {}, pinned or {}
    together = groups(step.graph.operations, loose, Handles.of(machine, pins))
    placement: Placement = {}
    for feed in step.feeds:
        placement[feed.op] = machine.client
    chosen: dict[int, DeviceName] = {}
    # Most operations are by themselves, and there are many that ask for the same.
    alike: dict[Hashable, DeviceName] = {}
    for op in step.graph.operations:
        if op in placement:
            continue
        members = together[op]
        if len(members) == 1 and op.name not in users and op.name not in pins:
            key = _asked_of(op, machine, placement)
            device = alike.get(key)
            if device is None:
                device = alike[key] = _place_group(members, machine, placement, {}, {})
            placement[op] = device
            continue
        device = chosen.get(id(members))
        if device is None:
            device = chosen[id(members)] = _place_group(members, machine, placement, users, pins)
        placement[op] = device
    if machine.costs is not None:
        held = {op for op in placement if op in loose or op.type == "Feed"}
        groups_left = {id(members): members for op, members in together.items() if op not in held}
        choices = [
            (members, possible_devices(members, machine, users, pins, machine.costs.across_tasks))
            for members in groups_left.values()
        ]
        placement = machine.costs.place(step, choices, placement, machine)
    if any(device.kind != machine.client.kind for device in machine.devices):
        _move_feeds(step, machine.client, placement)
    return placement


def _move_feeds(step: StepGraph, client: DeviceName, placement: Placement) -> None:
    """Have values come in on the one device of the client's task that takes them, such as a GPU.

    A feed by itself on the host would be one more thing for which the device's work waits.
    """
    feeds = {feed.op for feed in step.feeds if feed.op.type == "Feed"}
    takers: dict[Operation, set[DeviceName]] = {op: set() for op in feeds}
    for op in step.graph.operations:
        for tensor in op.inputs:
            if tensor.op in feeds:
                takers[tensor.op].add(placement[op])
    wanted = {tensor.op for tensor in step.fetches}
    for op, devices in takers.items():
        device, *others = devices or (client,)
        if not others and op not in wanted and is_beside(device, client):
            placement[op] = device


def is_beside(device: DeviceName, client: DeviceName) -> bool:
    """Whether a device of another kind belongs to the client's task: a GPU of its own."""
    return device.kind != client.kind and device.task_name == client.task_name


def _asked_of(op: Operation, machine: Machine, placement: Placement) -> Hashable:
    """Return all that decides where an operation goes which shares its device with no other."""
    held: Hashable = None
    if machine.dtypes:
        specs = [t.spec for t in (*op.inputs, *op.outputs)]
        held = tuple([(s.dtype, None if s.content is None else s.content.dtype) for s in specs])
    near: Hashable = None
    if len(machine.devices) > 1:
        near = tuple([placement.get(t.op) for t in op.inputs])
    return (op.schema, op.device_name, kernel_dtype(op), held, near)


def _place_group(
    members: list[Operation],
    machine: Machine,
    placement: Placement,
    state_users: Mapping[str, Sequence[Operation]],
    pinned: Mapping[str, DeviceName],
) -> DeviceName:
    able = possible_devices(members, machine, state_users, pinned)
    return able[0] if len(able) == 1 else _best(members, able, machine, placement)


def possible_devices(
    members: list[Operation],
    machine: Machine,
    state_users: Mapping[str, Sequence[Operation]],
    pinned: Mapping[str, DeviceName],
    across_tasks: bool = False,
) -> list[DeviceName]:
    """Return the devices on which operations can be that must share one.

    Args:
        members: The operations.
        machine: The devices.
        state_users: As for ``place``.
        pinned: As for ``place``.
        across_tasks: Whether other tasks are among them for what asks for none, and does nothing
            but compute.
    """
    own = [pinned[op.name] for op in members if op.type == "Parameter" and op.name in pinned]
    request = joint_request(members, machine.soft, own[0] if own else None)
    for op in members:
        pin = pinned.get(op.name)
        if pin is not None and op.schema.inputs == ():
            if request.intersected(pin) is None and not machine.soft:
                raise PlacementError(
                    f"{op.name!r} lives on {pin} since an earlier step; it cannot move to {request}"
                )
            return [pin]
    users = [user for op in members for user in state_users.get(op.name, ())]
    try:
        if across_tasks and request.job is None and request.task is None and _computes(members):
            matching = [d for d in machine.devices if request.matches(d)]
        else:
            matching = []
        matching = matching or _matching(members[0], request, machine)
    except NoDeviceError:
        if not machine.soft:
            raise
        matching = []
    able = [d for d in matching if not lacking([*members, *users], d, machine)]
    if not able and machine.soft:
        # In the task that it asks for, else in this one, else wherever it can.
        for task in (machine.client.task_name.merged(request.task_name), DeviceName()):
            there = [d for d in machine.devices if task.matches(d)]
            able = [d for d in there if not lacking([*members, *users], d, machine)]
            if able:
                break
    if not able:
        raise _no_kernel([*members, *users], request, matching, machine)
    return able


def _computes(members: Iterable[Operation]) -> bool:
    """Whether operations do nothing but compute, so that any task may do it for another."""
    for op in members:
        inside = [other for function in functions_within(op) for other in function.operations]
        for each in (op, *inside):
            schema = each.schema
            if schema.effects or schema.blocking or schema.calls_out or schema.reaches:
                return False
        if any(t.dtype.kind in ("resource", "list") for t in (*op.inputs, *op.outputs)):
            return False
    return True


def _matching(op: Operation, request: DeviceName, machine: Machine) -> list[DeviceName]:
    # A request without a job means this task, unless it names a device that only others have.
    local = request
    if request.job is None and request.task is None:
        local = machine.client.task_name.merged(request)
    matching = [d for d in machine.devices if local.matches(d)]
    if not matching and local != request:
        matching = [d for d in machine.devices if request.matches(d)]
    if not matching:
        lines = [
            f"{title(op)} asks for device {str(request)!r}, which is not there",
            f"  devices: {listing(map(str, machine.devices))}",
            "  name one of them, or let Config(allow_soft_placement=True) choose one",
            f"  at {op.site}",
        ]
        hint = machine.hints.get(request.kind or "")
        there = DeviceName(request.job, request.task, request.kind)
        if request.kind in machine.virtual and any(map(there.matches, machine.devices)):
            count = (request.index or 0) + 1
            hint = f'Config(device_count={{"{request.kind}": {count}}}) lets the session have it'
        if hint:
            lines.insert(1, f"  {hint}")
        raise NoDeviceError(shorten(lines))
    return matching


def lacking(members: Iterable[Operation], device: DeviceName, machine: Machine) -> list[Operation]:
    """Return the operations that a device cannot run."""
    kind = device.kind or ""
    return [
        op
        for op in members
        if _unheld(op, kind, machine)
        or (not op.schema.builtin and not machine.kernels.covers(op.type, kind, kernel_dtype(op)))
    ]


def _unheld(op: Operation, kind: str, machine: Machine) -> DType | None:
    """Return a dtype that the operation takes or yields and arrays of the device cannot have."""
    held = machine.dtypes.get(kind)
    if held is None:
        return None
    for tensor in (*op.inputs, *op.outputs):
        content = tensor.spec.content
        dtype = tensor.dtype if content is None else content.dtype
        if dtype.kind not in ("resource", "list") and dtype.name not in held:
            return dtype
    return None


def _no_kernel(
    members: list[Operation],
    request: DeviceName,
    tried: list[DeviceName],
    machine: Machine,
) -> NoKernelError:
    op = next(op for device in reversed(tried) for op in lacking(members, device, machine))
    dtype = kernel_dtype(op)
    kinds = machine.kernels.devices_of(op.type)
    have = [f"{kind} ({', '.join(machine.kernels.dtypes_of(op.type, kind))})" for kind in kinds]
    if op.schema.builtin:
        have = ["every device"]
    lines = [
        f"no device has a kernel for {op.type}({dtype}), needed by {op.name!r}",
        f"  tried: {listing(map(str, tried))}"
        + (f" (asked for {str(request)!r})" if request != DeviceName() else ""),
        *_unheld_lines(op, tried, machine),
        f"  kernels exist for: {', '.join(have) if have else 'no device'}",
        f"  at {op.site}",
        "  cast the inputs, place it elsewhere with hr.device, or install a package with a kernel"
        + (" (pip install headrace-backend-cpu)" if not have else ""),
    ]
    extra = machine.hints.get("")
    return NoKernelError(shorten([*lines, extra] if extra else lines))


def _unheld_lines(op: Operation, tried: list[DeviceName], machine: Machine) -> list[str]:
    kinds = dict.fromkeys(device.kind or "" for device in tried)
    unheld = {kind: _unheld(op, kind, machine) for kind in kinds}
    return [f"  {kind} devices cannot hold {dtype}" for kind, dtype in unheld.items() if dtype]


def _best(
    members: list[Operation],
    able: list[DeviceName],
    machine: Machine,
    placement: Placement,
) -> DeviceName:
    """Prefer where the inputs are for cheap work, then the client's task, then fast devices."""
    inputs = Counter(placement[t.op] for op in members for t in op.inputs if t.op in placement)
    if all(map(follows_input, members)):
        for device, _ in inputs.most_common():
            if device in able:
                return device
    home = machine.client.task_name

    def rank(device: DeviceName) -> tuple[bool, int, bool, bool, DeviceName]:
        away = device.task_name != home
        priority = machine.priorities.get(device.kind or "", 0)
        return (away, -priority, device not in inputs, device != machine.home, device)

    # Among equals the lowest index wins, unless inputs are already elsewhere.
    return min(able, key=rank)
