"""What a step moves between devices, found without running it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.device_name import DeviceName
from headrace.errors import HeadraceError
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.partition.compression import compressed
from headrace.passes.step_graph import StepGraph
from headrace.placement.place import Machine, Placement
from headrace.session.explanation import Transfer
from headrace.shapes import Shape


def transfers_of(
    step: StepGraph,
    placement: Placement,
    machine: Machine,
    sizes: Sequence[tuple[int, ...] | None],
) -> tuple[Transfer, ...]:
    """Return what a placed step moves between devices; not what moves in the rounds of its loops.

    Args:
        step: The step.
        placement: The device of each of its operations.
        machine: The devices.
        sizes: The shapes of the feeds, in order, None where they are not known.
    """
    if len(set(placement.values())) < 2:
        return ()
    if machine.compress:
        step, placement = compressed(step, placement)
    edges = [(t, placement[op]) for op in step.graph.operations for t in op.inputs]
    edges += [(t, machine.client) for t in step.fetches]
    specs = _specs(step, sizes)
    found = []
    for tensor, destination in dict.fromkeys(edges):
        source = placement[tensor.op]
        moves = machine.part(source) != machine.part(destination)
        if moves and not _is_free(tensor.op):
            found.append(_transfer(tensor, source, destination, specs[tensor]))
    return tuple(found)


def _is_free(op: Operation) -> bool:
    """Whether it is a constant, of which each device has a copy."""
    return op.type == "Const" and not op.control_inputs


def _transfer(
    tensor: Tensor, source: DeviceName, destination: DeviceName, spec: TensorSpec
) -> Transfer:
    count = spec.shape.num_elements() if spec.shape.is_fully_defined() else None
    known = count is not None and spec.dtype.kind not in ("string", "resource", "list")
    size = count * spec.dtype.numpy.itemsize if known and count is not None else None
    name = tensor.op.origin.rpartition("of ")[2] if tensor.op.type == "Feed" else tensor.name
    return Transfer(name, str(source), str(destination), str(spec.dtype), size)


def _specs(step: StepGraph, sizes: Sequence[tuple[int, ...] | None]) -> dict[Tensor, TensorSpec]:
    """Return the specs of all tensors, by the shapes of the feeds."""
    specs: dict[Tensor, TensorSpec] = {}
    for feed, size in zip(step.feeds, sizes, strict=False):
        if size is not None:
            specs[feed] = TensorSpec(feed.dtype, Shape(size), content=feed.spec.content)
    for op in step.graph.operations:
        given = [specs[t] for t in op.inputs]
        own = [t.spec for t in op.outputs]
        if any(new is not t.spec for new, t in zip(given, op.inputs, strict=True)):
            try:
                inferred, _ = op.schema.output_specs(given, op.arity, op.attrs)
                own = [
                    new.sharpened(t.spec.shape) for new, t in zip(inferred, op.outputs, strict=True)
                ]
            except HeadraceError:
                pass  # The step itself says what does not fit.
        for tensor, spec in zip(op.outputs, own, strict=True):
            specs.setdefault(tensor, spec)
    return specs
