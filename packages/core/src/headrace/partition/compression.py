"""Sending float32 between tasks in half the bytes, as bfloat16.

The sender keeps the upper half of the bits of each element, and the receiver fills the lower half
with zeros: the error of an element is less than 2^-7 of it. What is fed and fetched stays as it is,
and so do values that move between the devices of one task, or within a loop on several tasks.

References:
    M. Abadi et al., TensorFlow: large-scale machine learning on heterogeneous distributed systems,
    2015, section 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.device_name import DeviceName
from headrace.dtypes import bfloat16, float32
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.placement.place import Placement
from headrace.shapes import Shape

_ORIGIN = "sent as bfloat16"


def compressed(step: StepGraph, placement: Placement) -> tuple[StepGraph, Placement]:
    """Return a placed step in which float32 goes between tasks as bfloat16.

    Args:
        step: The step, before partitioning.
        placement: The device of each of its operations.
    """
    work = _Compression(placement)
    for op in step.graph.operations:
        work.copy(op)
    return (work.rewriter.finish(step), work.placement) if work.restored else (step, placement)


class _Compression:
    """One step on its way.

    Attributes:
        rewriter: Makes the new step.
        placement: The devices of its operations.
        restored: What stands on a task for a tensor of another one.
    """

    def __init__(self, placement: Placement) -> None:
        self.rewriter = Rewriter("compression")
        self.placement: Placement = {}
        self.restored: dict[tuple[Tensor, DeviceName], Tensor] = {}
        self._before = placement
        self._halves: dict[Tensor, Tensor] = {}

    def copy(self, op: Operation) -> None:
        """Copy an operation, with what it takes from other tasks restored."""
        device = self._before[op]
        moved = {t: self._restore(t, device) for t in op.inputs if self._crosses(t, device)}
        new = self.rewriter.copy(op) if not moved else self._copy_with(op, moved)
        self.placement[new] = device

    def _crosses(self, tensor: Tensor, device: DeviceName) -> bool:
        source = tensor.op
        if tensor.dtype != float32 or source.type in ("Feed", "Const"):
            return False
        return self._before[source].task_name != device.task_name

    def _copy_with(self, op: Operation, moved: dict[Tensor, Tensor]) -> Operation:
        inputs = [moved[t] if t in moved else self.rewriter.tensor(t) for t in op.inputs]
        new = self.rewriter.copy_with(op, inputs=inputs)
        self.rewriter.stand_for(op, new)
        return new

    def _restore(self, tensor: Tensor, device: DeviceName) -> Tensor:
        key = (tensor, device.task_name)
        if key not in self.restored:
            half = self._half(tensor)
            name = f"_restored/{tensor.name}{device.task_name}"
            spec = TensorSpec(float32, tensor.spec.shape)
            attrs = {"dtype": float32}
            self.restored[key] = self._add("Cast", name, half, attrs, [spec], tensor, device)[0]
        return self.restored[key]

    def _half(self, tensor: Tensor) -> Tensor:
        """Return the upper halves of the elements, where they are made."""
        if tensor not in self._halves:
            device = self._before[tensor.op]
            value = self.rewriter.tensor(tensor)
            dims = tensor.spec.shape.dims
            pairs = TensorSpec(bfloat16, Shape(None if dims is None else [*dims, 2]))
            name = f"_halves/{tensor.name}"
            (both,) = self._add(
                "Bitcast", f"{name}/both", value, {"type": bfloat16}, [pairs], tensor, device
            )
            parts = [TensorSpec(bfloat16, tensor.spec.shape)] * 2
            attrs = {"num": 2, "axis": -1}
            # Little-endian: the upper half comes second.
            self._halves[tensor] = self._add("Unstack", name, both, attrs, parts, tensor, device)[1]
        return self._halves[tensor]

    def _add(
        self,
        type_name: str,
        name: str,
        value: Tensor,
        attrs: Mapping[str, object],
        specs: list[TensorSpec],
        tensor: Tensor,
        device: DeviceName,
    ) -> tuple[Tensor, ...]:
        op = self.rewriter.graph.add_operation(
            OPS[type_name],
            name=name,
            inputs=[value],
            arity=(1,),
            attrs=attrs,
            specs=specs,
            device=device,
            site=tensor.op.site,
            origin=_ORIGIN,
        )
        self.placement[op] = device
        return op.outputs
