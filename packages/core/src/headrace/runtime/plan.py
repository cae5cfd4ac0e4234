"""Plans: a step's nodes in an order in which they can run, with kernels and slots resolved.

Every value of a step has a slot, a number. A node knows the slots that it reads and writes, and
the call that computes it; nothing is looked up by name while a step runs.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from headrace.device_name import DeviceName
from headrace.errors import GraphError, NoKernelError
from headrace.graph.function import Function
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.placement.place import kernel_dtype
from headrace.plugins.registries import Kernel, KernelRegistry
from headrace.runtime import builtin
from headrace.runtime.device import Device
from headrace.runtime.frames import FRAMES
from headrace.runtime.state import KernelContext, SessionState


class Mode(IntEnum):
    """How a node's call is made."""

    PLAIN = 0  # call(*values)
    STEP = 1  # call(step, *values)
    BLOCKING = 2  # call(step, done, *values)
    SEND = 3  # call(step, value), also for a dead value
    MERGE = 4  # f(index) makes the second output; the first is the first living value
    FRAMES = 5  # call(*values) is a generator of runs of other plans


@dataclass(slots=True, eq=False)
class PlanNode:
    """One node of a plan.

    Attributes:
        op: The operation, for messages.
        mode: How ``call`` is made.
        call: What computes the node.
        inputs: Slots of its values.
        controls: Slots of operations that it waits for.
        outputs: Slots that it fills.
        control: The slot that tells others that it has run.
        single: Whether there is one output, whose value ``call`` may return without a sequence.
        frees: Slots that nothing reads after this node, in the order of the plan.
        users: Indices of the nodes that wait for this one.
        waits: How many nodes it waits for.
    """

    op: Operation
    mode: Mode
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    controls: tuple[int, ...]
    outputs: tuple[int, ...]
    control: int
    single: bool
    frees: tuple[int, ...] = ()
    users: list[int] = field(default_factory=list)
    waits: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What one process does in one step.

    Attributes:
        nodes: In an order in which each comes after what it waits for.
        slots: What the slots hold before the step: constants, handles, and None.
        fetches: How many values the step hands back.
        waits: Whether a node may wait for something outside.
        branches: Whether values may be dead.
        devices: The devices that run it.
        transfers: Whether values cross between its devices, also inside functions.
    """

    nodes: tuple[PlanNode, ...]
    slots: tuple[Any, ...]
    fetches: int
    waits: bool
    branches: bool
    devices: tuple[Device, ...]
    transfers: bool = False


def build_plan(
    partitions: Mapping[DeviceName, Graph],
    devices: Mapping[DeviceName, Device],
    kernels: KernelRegistry,
    state: SessionState,
    fetches: int,
    nest: Callable[[Function, tuple[str, ...], DeviceName], Plan],
) -> Plan:
    """Return the plan for the partitions that one process runs.

    Args:
        partitions: The graphs, by device.
        devices: The devices, open.
        kernels: All kernels.
        state: The session's state, to which handles are bound here, once.
        fetches: How many values the step hands back.
        nest: Plans a function that a node holds, with further results by name, for a device.

    Raises:
        NoKernelError: if a device has no kernel for one of its nodes.
    """
    order = _ordered([op for graph in partitions.values() for op in graph.operations])
    builder = _PlanBuilder(devices, kernels, state, nest)
    for op in order:
        builder.add(op)
    return builder.finish(fetches, tuple(devices[name] for name in partitions))


def _transfer_key(op: Operation) -> tuple[str, str, str]:
    return op.attrs["edge"], op.attrs["source"], op.attrs["destination"]


def _ordered(operations: Sequence[Operation]) -> list[Operation]:
    """Sort operations so that each follows what it waits for, a Recv also its local Send."""
    sends = {_transfer_key(op): op for op in operations if op.type == "Send"}
    waits: dict[Operation, int] = {}
    users: dict[Operation, list[Operation]] = {op: [] for op in operations}
    for op in operations:
        needed = {t.op for t in op.inputs} | set(op.control_inputs)
        if op.type == "Recv" and _transfer_key(op) in sends:
            needed.add(sends[_transfer_key(op)])
        waits[op] = len(needed)
        for other in needed:
            users[other].append(op)
    ready = [op for op in reversed(operations) if not waits[op]]
    order = []
    while ready:
        op = ready.pop()
        order.append(op)
        for user in users[op]:
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    if len(order) < len(operations):
        stuck = next(op for op in operations if waits[op])
        raise GraphError(f"{stuck!r} waits for itself: the graph has a cycle")
    return order


class _PlanBuilder:
    def __init__(
        self,
        devices: Mapping[DeviceName, Device],
        kernels: KernelRegistry,
        state: SessionState,
        nest: Callable[[Function, tuple[str, ...], DeviceName], Plan],
    ) -> None:
        self.devices = devices
        self.kernels = kernels
        self.state = state
        self.nest = nest
        self.slots: list[Any] = []
        self.nodes: list[PlanNode] = []
        self.slot_of: dict[Any, int] = {}
        self.producer: dict[int, int] = {}
        self.sends: dict[tuple[str, str, str], int] = {}
        self.waits = False
        self.branches = False
        self.transfers = False
        # The only device of a kind stays active for the whole step; of several, such as two GPUs,
        # each is activated for its own nodes.
        kinds = Counter(n.kind for n, device in devices.items() if device.activate() is not None)
        self.switched = {kind for kind, count in kinds.items() if count > 1}

    def add(self, op: Operation) -> None:
        device = self.devices[op.device_name]
        if op.type == "Const" and not op.control_inputs:
            self._preset(op, [builtin.const_value(op, device)])
            return
        mode, call = self._bind(op, device)
        if op.device_name.kind in self.switched and mode not in (Mode.MERGE, Mode.FRAMES):
            call = _activated(device, call)
        if self._is_handle(op):
            self._preset(op, [call()])
            return
        index = len(self.nodes)
        outputs = tuple(self._new_slot() for _ in op.outputs)
        control = self._new_slot()
        inputs = tuple(self.slot_of[t] for t in op.inputs)
        controls = tuple(self.slot_of[c] for c in op.control_inputs if c in self.slot_of)
        node = PlanNode(op, mode, call, inputs, controls, outputs, control, len(outputs) == 1)
        needed = {self.producer[s] for s in (*inputs, *controls) if s in self.producer}
        if op.type == "Send":
            self.sends[_transfer_key(op)] = index
        if op.type == "Recv":
            local = self.sends.get(_transfer_key(op))
            if local is not None:
                needed.add(local)
            else:
                self.waits = True
        elif mode is Mode.BLOCKING:
            self.waits = True
        self.branches = self.branches or op.type in ("Switch", "Merge", "Recv")
        for other in needed:
            self.nodes[other].users.append(index)
        node.waits = len(needed)
        self.slot_of.update(zip(op.outputs, outputs, strict=True))
        self.slot_of[op] = control
        self.producer.update(dict.fromkeys((*outputs, control), index))
        self.nodes.append(node)

    def finish(self, fetches: int, devices: tuple[Device, ...]) -> Plan:
        last: dict[int, int] = {}
        for index, node in enumerate(self.nodes):
            for slot in (*node.outputs, *node.inputs):
                if slot in self.producer:
                    last[slot] = index
        frees: dict[int, list[int]] = {}
        for slot, index in last.items():
            frees.setdefault(index, []).append(slot)
        for index, node in enumerate(self.nodes):
            node.frees = tuple(frees.get(index, ()))
        return Plan(
            tuple(self.nodes),
            tuple(self.slots),
            fetches,
            self.waits,
            self.branches,
            devices,
            self.transfers or any(node.op.type in ("Send", "Recv") for node in self.nodes),
        )

    def _new_slot(self, value: Any = None) -> int:
        self.slots.append(value)
        return len(self.slots) - 1

    def _preset(self, op: Operation, values: list[Any]) -> None:
        for tensor, value in zip(op.outputs, values, strict=True):
            self.slot_of[tensor] = self._new_slot(value)

    @staticmethod
    def _is_handle(op: Operation) -> bool:
        """Whether the op only finds a resource, which stays the same for all steps."""
        found = not op.inputs and bool(op.outputs) and op.outputs[0].dtype.kind == "resource"
        return found and op.type != "Parameter"

    def _bind(self, op: Operation, device: Device) -> tuple[Mode, Callable[..., Any]]:
        if op.type in _BUILTIN_CALLS:
            return _BUILTIN_CALLS[op.type](op, device)
        if op.type in FRAMES:
            home = op.device_name
            call, plans = FRAMES[op.type](op, device, lambda f, saves: self.nest(f, saves, home))
            self.waits = self.waits or any(plan.waits for plan in plans)
            self.transfers = self.transfers or any(plan.transfers for plan in plans)
            return Mode.FRAMES, call
        kind = op.device_name.kind or ""
        for kernel in self.kernels.candidates(op.type, kind, kernel_dtype(op)):
            bound = self._bind_kernel(kernel, op, device)
            if bound is not None:
                return bound
        raise NoKernelError(
            f"device {op.device_name} has no kernel for {op.type}({kernel_dtype(op)}), needed by "
            f"{op.name!r}\n  at {op.site}"
        )

    def _bind_kernel(
        self, kernel: Kernel, op: Operation, device: Device
    ) -> tuple[Mode, Callable[..., Any]] | None:
        attrs = dict(op.attrs)
        if kernel.style == "plain":
            function = functools.partial(kernel.function, device.xp, **attrs)
            return Mode.PLAIN, _grouped(op, function)
        context = KernelContext(device, self.state, op.name, op.attrs, [t.spec for t in op.inputs])
        if kernel.style == "stateful":
            return Mode.PLAIN, _grouped(op, functools.partial(kernel.function, context, **attrs))
        if kernel.style == "blocking":
            call = functools.partial(kernel.function, context, **attrs)
            return Mode.BLOCKING, _grouped(op, call, lead=2)
        special = kernel.function(NodeView(op, device, context))
        return None if special is None else (Mode.PLAIN, special)


@dataclass(frozen=True, slots=True)
class NodeView:
    """What the factory of a specialized kernel gets to see of a plan node.

    Attributes:
        op: The operation, with attributes and the specs of its inputs and outputs.
        device: The device.
        context: What stateful kernels get.
    """

    op: Operation
    device: Device
    context: KernelContext


def _grouped(op: Operation, call: Callable[..., Any], lead: int = 0) -> Callable[..., Any]:
    """Return ``call`` taking flat values where its op takes lists or leaves inputs out."""
    plain = all(not p.variadic for p in op.schema.inputs) and 0 not in op.arity
    if plain:
        return call
    group, arity = op.schema.group, op.arity

    def grouped(*values: Any) -> Any:
        return call(*values[:lead], *group(values[lead:], arity))

    return grouped


_BUILTIN_CALLS: dict[str, Callable[[Operation, Device], tuple[Mode, Callable[..., Any]]]] = {
    "NoOp": lambda op, device: (Mode.PLAIN, tuple),
    "Const": lambda op, device: (
        Mode.PLAIN,
        functools.partial(_itself, builtin.const_value(op, device)),
    ),
    "Feed": lambda op, device: (Mode.STEP, builtin.feed_call(op, device)),
    "Fetch": lambda op, device: (Mode.SEND, builtin.fetch_call(op, device)),
    "Parameter": lambda op, device: (Mode.STEP, builtin.parameter_call(op)),
    "Return": lambda op, device: (Mode.SEND, builtin.return_call(op)),
    "Send": lambda op, device: (Mode.SEND, builtin.send_call(op, device)),
    "Recv": lambda op, device: (Mode.BLOCKING, builtin.recv_call(op, device)),
    "Switch": lambda op, device: (Mode.PLAIN, builtin.switch),
    "Merge": lambda op, device: (Mode.MERGE, functools.partial(builtin.branch_index, device)),
}


def _activated(device: Device, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call`` running while ``device`` is active."""

    def activated(*values: Any) -> Any:
        context = device.activate()
        assert context is not None
        with context:
            return call(*values)

    return activated


def _itself(value: Any) -> Any:
    return value
