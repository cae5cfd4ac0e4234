"""Splitting a placed step into one graph per device.

Devices that are names for one and the same thing, as the CPUs of a process are, share a graph.
An edge that crosses devices becomes one Send and one Recv per tensor and destination, shared by
all users there. Constants do not cross: every device that uses one gets a copy with its graph. A
control edge that crosses moves a token: an empty constant sent after the
operation has finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from headrace.device_name import DeviceName
from headrace.dtypes import uint8
from headrace.errors import PlacementError
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS, OpSchema
from headrace.graph.spec import TensorSpec, constant_spec
from headrace.graph.tensor import Tensor
from headrace.partition.communication_rounds import Crossing, Readiness, crossing, readiness
from headrace.passes.step_graph import StepGraph, append_copy
from headrace.placement.place import is_beside, stands_anywhere


def partition(
    step: StepGraph,
    placement: Mapping[Operation, DeviceName],
    client: DeviceName,
    result: str = "Fetch",
    waits: Callable[[Operation], bool] = lambda op: False,
    of: Callable[[DeviceName], DeviceName] = lambda device: device,
) -> dict[DeviceName, Graph]:
    """Return the graph of each device that takes part.

    Args:
        step: The step.
        placement: The device of each of its operations.
        client: The device on which fetches of other tasks, and constants, are handed back.
        result: The op that hands them back.
        waits: Whether an operation may wait for something outside the step.
        of: Returns the device whose graph has the operations of a device: of those between which
            values pass as they are, one.
    """
    alone = all(of(device) == client for device in dict.fromkeys(placement.values()))
    # When operations can run counts where values cross.
    ready = {} if alone else readiness(step.graph.operations, placement, waits)
    builder = Partitioner(placement, ready, of=of)
    builder.copy_all(step)
    for i, tensor in enumerate(step.fetches):
        device = placement.get(tensor.op, client)
        # A GPU hands its values to the session itself; a function's results stay together.
        itself = result == "Fetch" and is_beside(device, client)
        here = (itself or of(device) == of(client)) and not stands_anywhere(tensor.op)
        builder.add_fetch(tensor, i, device if here else client, OPS[result])
    return {device: part.graph for device, part in builder.parts.items()}


@dataclass
class Part:
    """What one device, or one task, runs of a step.

    Attributes:
        graph: The graph.
        tensors: What stands in it for tensors of the step.
        operations: What stands in it for operations of the step.
    """

    graph: Graph = field(default_factory=Graph)
    tensors: dict[Tensor, Tensor] = field(default_factory=dict)
    operations: dict[Operation, Operation] = field(default_factory=dict)


class Partitioner:
    """Splits a step, by device or by task.

    Attributes:
        placement: The device of each operation.
        parts: What was split off so far, by device or task.
        sends: The operations that send from each part.
    """

    def __init__(
        self,
        placement: Mapping[Operation, DeviceName],
        ready: Mapping[Operation, Readiness],
        *,
        of: Callable[[DeviceName], DeviceName] = lambda device: device,
        make: Callable[[], Graph] = Graph,
        prefix: str = "",
    ) -> None:
        """Begin to split.

        Args:
            placement: The device of each operation.
            ready: When each of them can run.
            of: Returns what names the part to which a device belongs.
            make: Makes the graph of a part.
            prefix: Tells the edges of this step from those of others that run within it.
        """
        self.placement = placement
        self.parts: dict[DeviceName, Part] = {}
        self._of = of
        self._make = make
        self._prefix = prefix
        self._tokens: dict[Operation, Tensor] = {}
        self.sends: dict[DeviceName, list[Operation]] = {}
        self._ready = ready

    def part(self, name: DeviceName) -> Part:
        """Return the part of a device or task."""
        found = self.parts.get(name)
        if found is None:
            found = self.parts[name] = Part(self._make())
        return found

    def copy_all(self, step: StepGraph) -> None:
        """Copy all operations, each to the part of its device."""
        for op in step.graph.operations:
            if not stands_anywhere(op):
                self.copy(op, self._of(self.placement[op]))

    def copy(self, op: Operation, name: DeviceName) -> Operation:
        """Copy an operation to a part, unless it was put there already."""
        part = self.part(name)
        known = part.operations.get(op)
        if known is not None:
            return known
        device = self.placement[op]
        if device is not name and self._of(device) != name:
            device = name
        tensors = part.tensors
        new = append_copy(
            part.graph,
            op,
            tuple([tensors[t] if t in tensors else self.tensor_on(t, name) for t in op.inputs]),
            tuple([self.control_on(c, name) for c in op.control_inputs]),
            (),
            device=device,
        )
        part.operations[op] = new
        for before, after in zip(op.outputs, new.outputs, strict=True):
            tensors[before] = after
        return new

    def tensor_on(self, tensor: Tensor, name: DeviceName) -> Tensor:
        """Return a tensor's stand-in in a part, moving it there when first needed."""
        part = self.part(name)
        known = part.tensors.get(tensor)
        if known is None and stands_anywhere(tensor.op):
            return self.copy(tensor.op, name).outputs[tensor.index]
        if known is None:
            source = self._of(self.placement[tensor.op])
            value = self.part(source).tensors[tensor]
            when = crossing(self._ready[tensor.op], source, name)
            known = self._move(value, tensor.name, source, name, when)
            part.tensors[tensor] = known
        return known

    def control_on(self, op: Operation, name: DeviceName) -> Operation:
        """Return an operation of a part that has finished only after ``op`` has."""
        part = self.part(name)
        known = part.operations.get(op)
        if known is None and stands_anywhere(op):
            return self.copy(op, name)
        if known is None:
            source = self._of(self.placement[op])
            token = self._token(op, source)
            when = crossing(self._ready[op], source, name)
            known = self._move(token, f"^{op.name}", source, name, when).op
            part.operations[op] = known
        return known

    def _token(self, op: Operation, source: DeviceName) -> Tensor:
        token = self._tokens.get(op)
        if token is None:
            value = np.zeros((0,), np.uint8)
            value.flags.writeable = False
            part = self.part(source)
            device = self.placement[op]
            name = f"_token/{self._prefix}{op.name}"
            # An Identity of the token, since a constant alone could be sent before op has run.
            const = part.graph.add_operation(
                OPS["Const"],
                name=f"{name}/value",
                inputs=[],
                arity=(),
                attrs={"value": value},
                specs=[constant_spec(value, uint8)],
                device=device,
                site=op.site,
                origin="control edge",
            )
            token = part.graph.add_operation(
                OPS["Identity"],
                name=name,
                inputs=[const.outputs[0]],
                arity=(1,),
                attrs={},
                specs=[const.outputs[0].spec],
                control_inputs=(part.operations[op],),
                device=device,
                site=op.site,
                origin="control edge",
            ).outputs[0]
            self._tokens[op] = token
        return token

    def _move(
        self,
        value: Tensor,
        edge: str,
        source: DeviceName,
        destination: DeviceName,
        when: Crossing,
    ) -> Tensor:
        edge = f"{self._prefix}{edge}"
        ends = {
            "edge": edge,
            "source": str(source),
            "destination": str(destination),
            "round": when.round,
            "sources": when.sources,
        }
        op = value.op
        if value.dtype.kind in ("list", "resource") and source.task_name != destination.task_name:
            raise PlacementError(
                f"{value.name!r} is a {value.dtype.kind}, which cannot go from {source} to "
                f"{destination}: build what makes it and what uses it for the same task\n"
                f"  at {op.site}"
            )
        sender = self.part(source).graph.add_operation(
            OPS["Send"],
            name=f"_send/{edge}/{destination}",
            inputs=[value],
            arity=(1,),
            attrs=ends,
            specs=[],
            device=op.device_name,
            site=op.site,
            origin="edge between devices",
        )
        self.sends.setdefault(source, []).append(sender)
        recv = self.part(destination).graph.add_operation(
            OPS["Recv"],
            name=f"_recv/{edge}/{destination}",
            inputs=[],
            arity=(),
            attrs={
                "dtype": value.dtype,
                "shape": value.spec.shape,
                **ends,
                "may_be_dead": when.may_be_dead,
            },
            specs=[TensorSpec(value.dtype, value.spec.shape, content=value.spec.content)],
            device=destination,
            site=op.site,
            origin="edge between devices",
        )
        return recv.outputs[0]

    def add_fetch(self, tensor: Tensor, index: int, device: DeviceName, schema: OpSchema) -> None:
        """Hand a tensor back from a device."""
        part = self._of(device)
        value = self.tensor_on(tensor, part)
        self.part(part).graph.add_operation(
            schema,
            name=f"_fetch/{index}",
            inputs=[value],
            arity=(1,),
            attrs={"index": index},
            specs=[],
            device=device,
            site=tensor.op.site,
            origin=f"fetch of {tensor.name}",
        )
