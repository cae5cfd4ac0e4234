"""Building a plan: slots for values, nodes with their calls, and regions."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from headrace.device_name import DeviceName
from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.partition.communication_rounds import may_branch
from headrace.passes.evaluate import kernel_dtype
from headrace.passes.step_graph import StepGraph, with_fetches
from headrace.placement.place import Machine
from headrace.runtime import builtin
from headrace.runtime.control_flow.invocations import INVOCATIONS
from headrace.runtime.devices.capabilities import (
    CompilingDevice,
    holds_host_arrays,
    holds_loops,
    lets_outputs_go,
)
from headrace.runtime.devices.device import Device
from headrace.runtime.devices.options import Around
from headrace.runtime.execution.called_function import CalledFunction
from headrace.runtime.execution.executor import AloneProgram
from headrace.runtime.execution.plan import Mode, Plan, PlanNode
from headrace.runtime.options import Options
from headrace.runtime.planning.binding import Bound, activated, bind, bind_preferred, is_blocking
from headrace.runtime.planning.clustering import Role, Unit, cluster
from headrace.runtime.planning.finishing import at_once
from headrace.runtime.planning.numerics import checked
from headrace.runtime.planning.phases import Phases
from headrace.runtime.regions.region import Program, RegionCall, Surroundings, is_handle
from headrace.runtime.state.session_state import SessionState
from headrace.runtime.transfers.rendezvous import Edge
from headrace.runtime.transfers.send_receive import Receiver

if TYPE_CHECKING:
    from headrace.runtime.planning.overlap import OverlappedLoop

# These take no time.
_ENDS = builtin.ARGUMENTS + builtin.RESULTS


class Nest(Protocol):
    """Plans a function that a node holds, with further results by name, for a device."""

    def __call__(
        self,
        function: Function,
        saves: tuple[str, ...],
        home: DeviceName,
        options: Options = ...,
    ) -> Plan:
        """Return the plan, made with the options of the step where none are given."""


class PlanBuilder:
    """A plan in the making.

    Attributes:
        nodes: Its nodes, each after those that it waits for.
        slots: What its slots hold before the step.
        slot_of: The slot of a tensor's value, and of the end of an operation.
        producer: The node that fills a slot.
        waits: Whether a node may wait for something that the plan does not do.
        branches: Whether a node may be dead.
        transfers: Whether a plan that a node holds sends or receives.
        inner: The plans of the functions that operations hold.
        uses: What the plan does with resources, for messages.
        in_phases: Whether receives are waited for one phase after the other.
        early: Reads that wait without need, and the phases in which they could be.
    """

    def __init__(
        self,
        devices: Mapping[DeviceName, Device],
        machine: Machine,
        state: SessionState,
        nest: Nest,
        options: Options,
        around: tuple[Around, ...],
        build: Callable[..., Plan],
    ) -> None:
        """Begin with nothing; the arguments are those of ``build``, which plans what is split."""
        self._build = build
        self.options = options
        self.around = around
        self.devices = devices
        self.machine = machine
        self.kernels = machine.kernels
        self.state = state
        self.nest = nest
        self.slots: list[Any] = []
        self.nodes: list[PlanNode] = []
        self.slot_of: dict[Any, int] = {}
        self.producer: dict[int, int] = {}
        self.sends: dict[Edge, int] = {}
        # Of tensors that regions let go before they end, what takes them.
        self.outlets: dict[Tensor, list[Any]] = {}
        # What starts while the region that makes its inputs still runs.
        self.starting: Collection[Operation] = ()
        self.waits = False
        self.branches = False
        self.in_phases = False
        # Reads that wait without need, and the phases in which they could be.
        self.early: Mapping[Operation, int] = {}
        self.transfers = False
        self.uses: list[tuple[str, Any]] = []
        self.bound: dict[Operation, Bound] = {}
        # Which kernels wait, by what a kernel is chosen by.
        self.blocking: dict[Hashable, bool] = {}
        self.compiling = {n for n, d in devices.items() if isinstance(d, CompilingDevice)}
        self.inner: dict[Operation, tuple[Plan, ...]] = {}
        # What runs operations that hold functions, and the plans of these.
        self.held: dict[Hashable, tuple[Callable[..., Any], tuple[Plan, ...]]] = {}
        self.shared: set[Operation] = set()
        self.surroundings: dict[Device, Surroundings] = {}
        # The only device of a kind stays active for the whole step; of several, such as two GPUs,
        # each is activated for its own nodes.
        parts = {machine.part(n) for n, device in devices.items() if device.activate() is not None}
        kinds = Counter(part.kind for part in parts)
        self.switched = {kind for kind, count in kinds.items() if count > 1}
        # What compiles the nodes of each device, where one does for several.
        self.parts: dict[DeviceName, DeviceName] | None = None
        if any(machine.part(name) != name for name in devices):
            known = {name: name for name in map(machine.part, devices)}
            self.parts = {name: known[machine.part(name)] for name in devices}

    def may_wait(self, op: Operation) -> bool:
        """Whether an operation may wait for something that this plan does not do."""
        if op.type not in INVOCATIONS:
            key = (op.schema, op.device_name.kind, kernel_dtype(op))
            found = self.blocking.get(key)
            if found is None:
                found = self.blocking[key] = is_blocking(op, self.kernels)
            return found
        return any(plan.waits for plan in self.inner[op])

    def bind_holders(self, order: Sequence[Operation]) -> None:
        """Plan the functions that operations hold, before anything else.

        Functions within functions are planned within this call: few calls of Python lie between it
        and theirs, so that they may lie deep.
        """
        for op in order:
            if op.type in INVOCATIONS:
                nest = functools.partial(self._nested, op.device_name, False)
                repeat = functools.partial(self._nested, op.device_name, True)
                device = self.devices[op.device_name]
                call, plans = INVOCATIONS[op.type](op, device, nest, repeat, _overlap)
                self.inner[op] = tuple(plans)
                self.held[_held_as(op)] = call, self.inner[op]
                self.waits = self.waits or any(plan.waits for plan in plans)
                self.transfers = self.transfers or any(plan.transfers for plan in plans)
                self.bound[op] = Bound(Mode.INVOKES, call)

    def _nested(
        self,
        home: DeviceName,
        repeated: bool,
        function: Function,
        saves: tuple[str, ...],
        carried: int = 0,
    ) -> Plan:
        """Plan a function that an operation holds; the arguments are those of ``Options``, too."""
        if not repeated and not carried:
            return self.nest(function, saves, home)
        options = replace(self.options, repeated=repeated, carried=carried)
        return self.nest(function, saves, home, options)

    def add_units(
        self, order: Sequence[Operation], alone: Collection[Operation], phases: Phases
    ) -> None:
        """Add operations, as regions where their device can compile them."""
        may_die = any(map(may_branch, order))
        came = {Edge.of(op) for op in order if op.type == "Recv"}
        sends = {Edge.of(op): op for op in order if op.type == "Send"}
        late: Mapping[Operation, Hashable] = {}
        if self.options.carried and came == set(sends) and any(map(self.may_wait, order)):
            # lazy: few steps have loops
            from headrace.runtime.planning.late_operations import late_operations

            late = late_operations(order, self.options.carried, self.may_wait)

        def role(op: Operation) -> Role:
            if (
                (op in late and op.type in builtin.ARGUMENTS)
                or is_handle(op)
                or (op.type == "Const" and not op.control_inputs)
            ):
                return Role.SHARED
            if may_branch(op) or self.may_wait(op):
                return Role.SOURCE
            if op in alone or (op.type in INVOCATIONS and not self._goes_inside(op)):
                return Role.HOLDER
            ends = op.type == "Send" or (may_die and op.type in builtin.RESULTS)
            return Role.ALONE if ends or op.device_name not in self.compiling else Role.INSIDE

        def local_send(op: Operation) -> Iterable[Operation]:
            found = sends.get(Edge.of(op)) if op.type == "Recv" else None
            return () if found is None else (found,)

        def joint(op: Operation) -> Hashable | None:
            inside = roles[op] in (Role.INSIDE, Role.SHARED)
            return late[op] if inside and op in late else phases.source(op)

        roles = {op: role(op) for op in order}
        shared = [op for op in order if roles[op] is Role.SHARED]
        self.shared.update(shared)
        takes = (op for op in order if late and roles[op] is not Role.INSIDE)
        taken = {t.op for op in takes for t in op.inputs}
        for op in shared:
            if op not in late or op in taken:
                self.add(op)
        units = cluster(order, roles.__getitem__, local_send, joint, self.parts)
        units = phases.sorted_units(units)
        place = {op: unit for unit in units for op in unit.ops}
        # Of tensors that others read than the unit that makes them.
        readers: dict[Tensor, set[Unit]] = {}
        for op in order:
            unit = place.get(op)
            if unit is not None:
                for tensor in op.inputs:
                    if place.get(tensor.op) is not unit:
                        readers.setdefault(tensor, set()).add(unit)
        # What a region makes for other tasks only can be sent before the region has ended. A dead
        # value is nothing that a region makes.
        leaving: set[Tensor] = set()
        if not may_die and (sends or any(op.schema.concerted for op in order)):
            # lazy: most steps are of one task
            from headrace.runtime.planning.leaving import sent_early, starting_early

            leaving = sent_early(readers, came)
            self.starting = starting_early(order, place, readers)
            leaving.update(t for op in self.starting for t in op.inputs)
        for unit in units:
            if unit.region:
                self._add_region(unit, readers, leaving)
            else:
                self.add(unit.ops[0])

    def _add_region(
        self, unit: Unit, readers: Mapping[Tensor, set[Unit]], leaving: Collection[Tensor]
    ) -> None:
        """Add a node that runs a region."""

        def needed(tensor: Tensor) -> bool:
            if tensor.op.type in builtin.ARGUMENTS and tensor.op in self.shared:
                return False
            return tensor in readers and bool(readers[tensor] - {unit})

        name = unit.ops[0].device_name
        device: Any = self.devices[name if self.parts is None else self.parts[name]]
        used = dict.fromkeys(t.op for op in unit.ops for t in op.inputs)
        used.update(dict.fromkeys(c for op in unit.ops for c in op.control_inputs))
        own = [op for op in used if op in self.shared]
        around = self._surroundings(device)
        leaves = (leaving if lets_outputs_go(device) else ()).__contains__
        region = RegionCall([*own, *unit.ops], needed, device, around, leaves)
        for index, outlets in region.outlets.items():
            self.outlets[region.exports[index - len(region.fetches)]] = outlets
        index = len(self.nodes)
        inputs = tuple(self.slot_of[t] for t in region.inputs)
        inside = set(unit.ops)
        waited = dict.fromkeys(
            self.slot_of[c]
            for op in unit.ops
            for c in op.control_inputs
            if c not in inside and c in self.slot_of
        )
        outputs = tuple(self._new_slot() for _ in region.exports)
        control = self._new_slot()
        ends = region.feeds or region.fetches or region.outlets or region.holds
        mode, call = (Mode.STEP, region) if ends else (Mode.PLAIN, region.compute)
        single = len(outputs) == 1
        node = PlanNode(unit.ops[0], mode, call, inputs, tuple(waited), outputs, control, single)
        node.region = region
        self._link(node, index, ())
        self.slot_of.update(zip(region.exports, outputs, strict=True))
        self.slot_of.update(dict.fromkeys(unit.ops, control))

    def _surroundings(self, device: Any) -> Surroundings:
        found = self.surroundings.get(device)
        if found is not None:
            return found

        def own(op: Operation) -> Any:
            # One device may compile what is on others, too.
            return device if self.parts is None else self.devices.get(op.device_name, device)

        def call(op: Operation) -> Bound:
            if op.type in INVOCATIONS:
                # lazy: few steps have loops
                from headrace.runtime.control_flow.region_loops import run_held

                return Bound(Mode.PLAIN, functools.partial(run_held, self.held[_held_as(op)][0]))
            return bind(op, own(op), self.kernels, self.state, self.options, self.call)

        def preferred(op: Operation) -> Bound | None:
            return bind_preferred(op, own(op), self.kernels, self.state, self.options, self.call)

        def split(step: StepGraph, dependent: frozenset[Operation]) -> Program:
            # What only the region's readers take stays on the device.
            result = "Fetch" if holds_host_arrays(device) else "Return"
            graph, stands_for = with_fetches(step, device.name, result)
            plan = self._build(
                {device.name: graph},
                self.devices,
                self.machine,
                self.state,
                len(step.fetches),
                self.nest,
                self.options,
                {stands_for[op] for op in dependent},
                self.around,
            )
            return AloneProgram(plan)

        found = Surroundings(
            call,
            preferred,
            lambda op: call(op).call(),
            self.machine.pipeline,
            split,
            self.uses,
            self.options,
            self.state.background,
            at_once(device, self.options) > 1 and self.options.recorder is None,
            lambda op: self.held[_held_as(op)][1],
        )
        self.surroundings[device] = found
        return found

    def add(self, op: Operation) -> None:
        """Add an operation that runs by itself."""
        device = self.devices[op.device_name]
        if op.type == "Const" and not op.control_inputs:
            self._preset(op, [builtin.const_value(op, device)])
            return
        bound = self.bound.get(op) or self._bind(op, device)
        mode, call = bound.mode, self._watched(op, bound.mode, bound.call, device)
        if mode is Mode.CALLS_OUT:
            apart = device.activate() is not None  # other threads have not activated it
        else:
            apart = op.device_name.kind in self.switched
        if apart and isinstance(call, Receiver):
            call = call.activating(device)
        elif apart and mode not in (Mode.MERGE, Mode.INVOKES):
            call = activated(device, call)
        if is_handle(op):
            self._preset(op, [call()])
            return
        if op in self.starting and all(t in self.outlets for t in op.inputs):
            # lazy: most steps are of one task
            from headrace.runtime.execution.early_start import EarlyStart

            call = EarlyStart(call, len(op.inputs))
            for place, tensor in enumerate(op.inputs):
                self.outlets[tensor].append(call.outlet(place))
        index = len(self.nodes)
        outputs = tuple(self._new_slot() for _ in op.outputs)
        control = self._new_slot()
        inputs = tuple(self.slot_of[t] for t in op.inputs)
        controls = tuple(self.slot_of[c] for c in op.control_inputs if c in self.slot_of)
        node = PlanNode(op, mode, call, inputs, controls, outputs, control, len(outputs) == 1)
        node.inner = self.inner.get(op, ())
        node.provider = bound.provider
        also: tuple[int, ...] = ()
        if op.type == "Send":
            self.sends[Edge.of(op)] = index
            if op.inputs and op.inputs[0] in self.outlets:
                self.outlets[op.inputs[0]].append(call)
                node.call = builtin.unless_sent(call)
        if op.type == "Recv":
            local = self.sends.get(Edge.of(op))
            if local is not None:
                also = (local,)
            else:
                self.waits = True
        elif mode in (Mode.BLOCKING, Mode.CALLS_OUT):
            self.waits = True
        self.branches = self.branches or may_branch(op)
        self._link(node, index, also)
        self.slot_of.update(zip(op.outputs, outputs, strict=True))
        self.slot_of[op] = control

    def _watched(
        self, op: Operation, mode: Mode, call: Callable[..., Any], device: Device
    ) -> Callable[..., Any]:
        """Return the call of a node with what the session asks to be checked and measured."""
        if self.options.check_numerics and mode in (Mode.PLAIN, Mode.CALLS_OUT):
            call = checked(op, device, call)
        recorder = self.options.recorder
        if recorder is None or mode is Mode.MERGE or op.type in _ENDS or is_handle(op):
            return call
        waits = any(plan.waits for plan in self.inner.get(op, ()))
        # lazy: recording is for sessions that ask for it
        from headrace.runtime.profiling.trace import measured

        return measured(recorder, op, str(device.name), mode, call, waits)

    def _link(self, node: PlanNode, index: int, also: Iterable[int]) -> None:
        """Append a node, which waits for the producers of what it takes and for ``also``."""
        needed = {self.producer[s] for s in (*node.inputs, *node.controls) if s in self.producer}
        needed.update(also)
        for other in needed:
            self.nodes[other].users.append(index)
        node.waits = len(needed)
        self.producer.update(dict.fromkeys((*node.outputs, node.control), index))
        self.nodes.append(node)

    def _new_slot(self, value: Any = None) -> int:
        self.slots.append(value)
        return len(self.slots) - 1

    def _preset(self, op: Operation, values: list[Any]) -> None:
        for tensor, value in zip(op.outputs, values, strict=True):
            self.slot_of[tensor] = self._new_slot(value)

    def _goes_inside(self, op: Operation) -> bool:
        """Whether an operation that holds functions is part of a region."""
        if self.options.recorder is not None or op.device_name not in self.compiling:
            return False
        if not holds_loops(self.devices[op.device_name]):
            return False
        # lazy: few steps have loops
        from headrace.runtime.control_flow.region_loops import fits_into_region

        return fits_into_region(op, self.inner[op])

    def _bind(self, op: Operation, device: Device) -> Bound:
        return bind(op, device, self.kernels, self.state, self.options, self.call)

    def call(self, function: Function, home: DeviceName) -> CalledFunction:
        """Return what runs a function that the kernel of a node calls."""
        # The first calls compute what later ones do, to the bit.
        options = replace(self.options, compile_after=0, recorder=None, carried=0)

        def plan() -> Plan:
            return self.nest(function, (), home, options)

        return self.state.called(function, home, lambda: CalledFunction(plan))


def _overlap(
    op: Operation, cond: Plan, body: Plan, variables: int, *, counted: bool
) -> OverlappedLoop | None:
    """Return how the iterations of a loop overlap, None where one runs after the other."""
    if not body.waits:
        return None
    # lazy: few steps have loops in which something waits
    from headrace.runtime.planning.overlap import overlapped_loop

    return overlapped_loop(op, cond, body, variables, counted=counted)


def _held_as(op: Operation) -> Hashable:
    """Return what tells operations that hold functions apart, also after a region was rewritten."""
    return op.type, op.device_name, op.arity, tuple(sorted(op.attrs.items(), key=_name))


def _name(attr: tuple[str, Any]) -> str:
    return attr[0]
