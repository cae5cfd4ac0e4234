"""The end of planning: what a plan's nodes let go, and in which ways the plan can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.graph.operation import Operation
from headrace.runtime.devices.capabilities import (
    CompilingDevice,
    ThreadedDevice,
)
from headrace.runtime.devices.device import Device
from headrace.runtime.execution.chain import Chain, chain
from headrace.runtime.execution.parallel import ParallelRuns
from headrace.runtime.execution.plan import Plan, PlanNode, readers, stretches
from headrace.runtime.options import Options
from headrace.runtime.state.containers import VariableCell

if TYPE_CHECKING:
    from headrace.runtime.planning.plan_builder import PlanBuilder

_TRANSFERS = ("Send", "Recv")


def finished(
    builder: PlanBuilder, order: Sequence[Operation], fetches: int, devices: tuple[Device, ...]
) -> Plan:
    """Return the plan that a builder has made.

    Args:
        builder: Has the nodes of all operations.
        order: The operations.
        fetches: How many values the step hands back.
        devices: Those that the plan is for, which stay active while it runs.
    """
    last: dict[int, int] = {}
    for index, node in enumerate(builder.nodes):
        for slot in (*node.outputs, *node.inputs):
            if slot in builder.producer:
                last[slot] = index
    frees: dict[int, list[int]] = {}
    for slot, index in last.items():
        frees.setdefault(index, []).append(slot)
    for index, node in enumerate(builder.nodes):
        node.frees = tuple(frees.get(index, ()))
    for op in order:
        if op.inputs and op.inputs[0].dtype.kind == "resource":
            # A function's argument is inside a region, or not known yet.
            known = builder.slot_of.get(op.inputs[0])
            if known is not None and builder.slots[known] is not None:
                builder.uses.append((op.type, builder.slots[known]))
    only = builder.nodes[0].region if len(builder.nodes) == 1 else None
    # A device that compiles regions sees to its own context while they run.
    part = builder.machine.part
    bare = {part(n.op.device_name) for n in builder.nodes if not _sees_to_itself(builder, n)}
    own = tuple(device.activate for device in devices if part(device.name) in bare)
    return Plan(
        tuple(builder.nodes),
        tuple(builder.slots),
        fetches,
        builder.waits,
        builder.branches,
        (*own, *builder.around),
        builder.transfers or any(node.op.type in _TRANSFERS for node in builder.nodes),
        builder.uses,
        only.whole(fetches) if only is not None and not builder.around else None,
        builder.in_phases,
        stretches(builder.nodes),
        builder.options.inter_op_threads,
        _parallel(builder) if len(builder.nodes) > 1 else None,
        tuple(i for i, node in enumerate(builder.nodes) if not node.waits),
        tuple(node.waits for node in builder.nodes),
        readers(builder.nodes, builder.slots),
        _chain(builder),
        any(node.region is not None and node.region.holds for node in builder.nodes),
    )


def at_once(device: Device, options: Options) -> int:
    """Return how many nodes of a device may run at one time."""
    if options.deterministic or not isinstance(device, ThreadedDevice):
        return 1
    return options.inter_op_threads or device.threads(options)


def _parallel(builder: PlanBuilder) -> ParallelRuns | None:
    """Return what runs nodes in parallel, None where that cannot be."""
    if builder.waits or builder.branches or builder.transfers:
        return None
    able = {name: at_once(device, builder.options) for name, device in builder.devices.items()}
    most = max((able[node.op.device_name] for node in builder.nodes), default=1)
    return ParallelRuns(most, lambda node: able[node.op.device_name] > 1) if most > 1 else None


def _chain(builder: PlanBuilder) -> Chain | None:
    """Return how the plan runs where its nodes wait one after the other, else None."""
    if not builder.waits or builder.branches or builder.in_phases:
        return None
    late = []
    for op, phase in builder.early.items():
        known = builder.slot_of.get(op.inputs[0])
        cell = None if known is None else builder.slots[known]
        if isinstance(cell, VariableCell):
            late.append((phase, op, cell))
    return chain(builder.nodes, builder.slots, late)


def _sees_to_itself(builder: PlanBuilder, node: PlanNode) -> bool:
    """Whether a node needs no context of its device around it."""
    device = builder.devices[node.op.device_name]
    if node.region is not None:
        return True
    if not isinstance(device, CompilingDevice):
        return False
    inner = builder.inner.get(node.op)
    if inner is not None:
        return not any(plan.contexts for plan in inner)
    return node.op.type in _TRANSFERS
