"""Planning: making the plan of what one process does in a step.

Operations are sorted, cut into units, and given slots for their values and the calls that compute
them (``plan_builder.py``); at the end it shows how the plan can run (``finishing.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headrace.device_name import DeviceName
from headrace.errors import GraphError
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.placement.place import Machine
from headrace.runtime.devices.device import Device
from headrace.runtime.devices.options import Around, within
from headrace.runtime.execution.plan import Plan
from headrace.runtime.options import DEFAULT_OPTIONS, Options
from headrace.runtime.planning.determinism import refuse_chance, refuse_races
from headrace.runtime.planning.finishing import finished
from headrace.runtime.planning.phases import Phases
from headrace.runtime.planning.plan_builder import Nest, PlanBuilder
from headrace.runtime.state.session_state import SessionState
from headrace.runtime.transfers.rendezvous import Edge
from headrace.topological_sort import CycleError, in_order


def devices_in(partitions: Mapping[DeviceName, Graph], machine: Machine) -> set[DeviceName]:
    """Return the devices of the operations of partitions."""
    found = set(partitions)
    if any(machine.part(device) != device for device in machine.devices):
        found.update(op.device_name for graph in partitions.values() for op in graph.operations)
    return found


def build_plan(
    partitions: Mapping[DeviceName, Graph],
    devices: Mapping[DeviceName, Device],
    machine: Machine,
    state: SessionState,
    fetches: int,
    nest: Nest,
    options: Options = DEFAULT_OPTIONS,
    alone: Collection[Operation] = (),
    around: tuple[Around, ...] = (),
) -> Plan:
    """Return the plan for the partitions that one process runs.

    Args:
        partitions: The graphs, by device.
        devices: The devices, open.
        machine: All kernels, and the passes that rewrite regions.
        state: The session's state, to which handles are bound here, once.
        fetches: How many values the step hands back.
        nest: Plans a function that a node holds, with further results by name, for a device.
        options: How to plan.
        alone: Operations that run by themselves, since the shapes behind them depend on data.
        around: What makes the contexts that options of devices ask for.

    Raises:
        NoKernelError: if a device has no kernel for one of its nodes.
        DeterminismError: if equal bits are asked for, and a node cannot give them.
    """
    # What is computed ahead comes out as it would in the step.
    with within(around):
        return _planned(partitions, devices, machine, state, fetches, nest, options, alone, around)


def _planned(
    partitions: Mapping[DeviceName, Graph],
    devices: Mapping[DeviceName, Device],
    machine: Machine,
    state: SessionState,
    fetches: int,
    nest: Nest,
    options: Options,
    alone: Collection[Operation],
    around: tuple[Around, ...],
) -> Plan:
    order = _ordered([op for graph in partitions.values() for op in graph.operations])
    if options.deterministic:
        refuse_chance(order, devices)
    builder = PlanBuilder(devices, machine, state, nest, options, around, build_plan)
    builder.bind_holders(order)
    phases = Phases(order, builder.may_wait)
    builder.in_phases, builder.early = phases.taken, phases.early
    if options.compiled:
        builder.add_units(order, alone, phases)
    else:
        for op in phases.sorted(order):
            builder.add(op)
    if options.deterministic and builder.waits:
        refuse_races(order)
    return finished(builder, order, fetches, tuple(devices[name] for name in partitions))


def _ordered(operations: Sequence[Operation]) -> list[Operation]:
    """Sort operations so that each follows what it waits for, a Recv also its local Send."""
    sends = {Edge.of(op): op for op in operations if op.type == "Send"}

    def needs(op: Operation) -> list[Operation]:
        needed = [*(t.op for t in op.inputs), *op.control_inputs]
        send = sends.get(Edge.of(op)) if op.type == "Recv" else None
        return needed if send is None else [*needed, send]

    try:
        return in_order(operations, needs)
    except CycleError as error:
        raise GraphError(f"{error}: the graph has a cycle") from None
