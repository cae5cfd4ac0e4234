"""Splitting a placed step into one graph per device.

An edge that crosses devices becomes one Send and one Recv per tensor and destination, shared by
all users there. Constants do not cross: every device that uses one gets a copy with its graph. A
control edge that crosses moves a token: an empty constant sent after the
operation has finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from headrace.device_name import DeviceName
from headrace.dtypes import uint8
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec, constant_spec
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import StepGraph


def partition(
    step: StepGraph, placement: Mapping[Operation, DeviceName], client: DeviceName
) -> dict[DeviceName, Graph]:
    """Return the graph of each device that takes part.

    Args:
        step: The step.
        placement: The device of each of its operations.
        client: The device on which fetches are handed back.
    """
    builder = _Partitioner(placement)
    for op in step.graph.operations:
        if not _is_free(op):
            builder.copy(op, placement[op])
    for i, tensor in enumerate(step.fetches):
        builder.add_fetch(tensor, i, client)
    return {device: part.graph for device, part in builder.parts.items()}


def _is_free(op: Operation) -> bool:
    """Whether it is a constant that may stand on any device, and on several."""
    return op.type == "Const" and not op.control_inputs


@dataclass
class _Part:
    graph: Graph = field(default_factory=Graph)
    tensors: dict[Tensor, Tensor] = field(default_factory=dict)
    operations: dict[Operation, Operation] = field(default_factory=dict)


class _Partitioner:
    def __init__(self, placement: Mapping[Operation, DeviceName]) -> None:
        self.placement = placement
        self.parts: dict[DeviceName, _Part] = {}
        self._tokens: dict[Operation, Tensor] = {}

    def part(self, device: DeviceName) -> _Part:
        return self.parts.setdefault(device, _Part())

    def copy(self, op: Operation, device: DeviceName) -> Operation:
        part = self.part(device)
        new = part.graph.add_operation(
            op.schema,
            name=op.name,
            inputs=[self.tensor_on(t, device) for t in op.inputs],
            arity=op.arity,
            attrs=op.attrs,
            specs=[t.spec for t in op.outputs],
            control_inputs=tuple(self.control_on(c, device) for c in op.control_inputs),
            device=device,
            site=op.site,
            origin=op.origin,
        )
        part.operations[op] = new
        part.tensors.update(zip(op.outputs, new.outputs, strict=True))
        return new

    def tensor_on(self, tensor: Tensor, device: DeviceName) -> Tensor:
        """Return a tensor's stand-in on a device, moving it there when first needed."""
        part = self.part(device)
        known = part.tensors.get(tensor)
        if known is None and _is_free(tensor.op):
            return self.copy(tensor.op, device).outputs[tensor.index]
        if known is None:
            source = self.placement[tensor.op]
            value = self.part(source).tensors[tensor]
            known = self._move(value, tensor.name, source, device)
            part.tensors[tensor] = known
        return known

    def control_on(self, op: Operation, device: DeviceName) -> Operation:
        """Return an operation of a device that has finished only after ``op`` has."""
        part = self.part(device)
        known = part.operations.get(op)
        if known is None and _is_free(op):
            return self.copy(op, device)
        if known is None:
            source = self.placement[op]
            token = self._token(op, source)
            known = self._move(token, f"^{op.name}", source, device).op
            part.operations[op] = known
        return known

    def _token(self, op: Operation, source: DeviceName) -> Tensor:
        token = self._tokens.get(op)
        if token is None:
            value = np.zeros((0,), np.uint8)
            value.flags.writeable = False
            part = self.part(source)
            # An Identity of the token, since a constant alone could be sent before op has run.
            const = part.graph.add_operation(
                OPS["Const"],
                name=f"_token/{op.name}/value",
                inputs=[],
                arity=(),
                attrs={"value": value},
                specs=[constant_spec(value, uint8)],
                device=source,
                site=op.site,
                origin="control edge",
            )
            token = part.graph.add_operation(
                OPS["Identity"],
                name=f"_token/{op.name}",
                inputs=[const.outputs[0]],
                arity=(1,),
                attrs={},
                specs=[const.outputs[0].spec],
                control_inputs=(part.operations[op],),
                device=source,
                site=op.site,
                origin="control edge",
            ).outputs[0]
            self._tokens[op] = token
        return token

    def _move(
        self, value: Tensor, edge: str, source: DeviceName, destination: DeviceName
    ) -> Tensor:
        ends = {"edge": edge, "source": str(source), "destination": str(destination)}
        op = value.op
        self.part(source).graph.add_operation(
            OPS["Send"],
            name=f"_send/{edge}/{destination}",
            inputs=[value],
            arity=(1,),
            attrs=ends,
            specs=[],
            device=source,
            site=op.site,
            origin="edge between devices",
        )
        recv = self.part(destination).graph.add_operation(
            OPS["Recv"],
            name=f"_recv/{edge}/{destination}",
            inputs=[],
            arity=(),
            attrs={"dtype": value.dtype, "shape": value.shape, **ends},
            specs=[TensorSpec(value.dtype, value.shape)],
            device=destination,
            site=op.site,
            origin="edge between devices",
        )
        return recv.outputs[0]

    def add_fetch(self, tensor: Tensor, index: int, client: DeviceName) -> None:
        value = self.tensor_on(tensor, client)
        self.part(client).graph.add_operation(
            OPS["Fetch"],
            name=f"_fetch/{index}",
            inputs=[value],
            arity=(1,),
            attrs={"index": index},
            specs=[],
            device=client,
            site=tensor.op.site,
            origin=f"fetch of {tensor.name}",
        )
