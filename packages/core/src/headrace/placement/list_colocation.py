"""Colocation of lists of tensors, and all that uses them, on one device."""

from __future__ import annotations

from headrace.device_name import DeviceName
from headrace.graph.operation import Operation
from headrace.passes.step_graph import Rewriter, StepGraph


def lists_together(step: StepGraph, device: DeviceName | None = None) -> StepGraph:
    """Return the step with operations that share lists asking for one device.

    Lists do not move. Where operations that are joined by lists ask for several devices, as those
    of a gradient may, all of them go where the first one asks to be.

    Args:
        step: The step.
        device: Where all lists are, whatever is asked for; None to go by what is asked for.
    """
    users = [op for op in step.graph.operations if _of_lists(op)]
    if not users:
        return step
    chosen = dict.fromkeys(users, device) if device is not None else _settled(users)
    if all(op.device_name == name for op, name in chosen.items()):
        return step
    rewriter = Rewriter("lists")
    for op in step.graph.operations:
        rewriter.copy(op, chosen.get(op))
    return rewriter.finish(step)


def _of_lists(op: Operation) -> bool:
    return any(t.dtype.kind == "list" for t in (*op.inputs, *op.outputs))


def _settled(users: list[Operation]) -> dict[Operation, DeviceName]:
    """Return the device for which each operation is to ask, by the lists that join it to others."""
    groups: dict[Operation, list[Operation]] = {}
    for op in users:
        joined = [op]
        for tensor in op.inputs:
            if tensor.dtype.kind == "list" and tensor.op not in joined:
                joined.extend(groups.get(tensor.op, ()))
        for member in joined:
            groups[member] = joined
    found: dict[Operation, DeviceName] = {}
    for members in groups.values():
        if members[0] in found:
            continue
        members = sorted(set(members), key=lambda op: op.index)
        asked = [op.device_name for op in members]
        joint: DeviceName | None = DeviceName()
        for name in asked:
            joint = None if joint is None else joint.intersected(name)
        first = next((name for name in asked if name != DeviceName()), DeviceName())
        for op in members:
            found[op] = op.device_name if joint is not None else first
    return found
