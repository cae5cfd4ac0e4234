"""Joins of control edges: waiting for many operations of other devices by one edge from each.

A NoOp that waits for operations of several devices (what ``hr.group`` makes) would need a token
from each operation elsewhere. What waits for the NoOp is made to wait for one operation of each of
these devices instead, a NoOp there where there are several. The NoOp itself, if the step asks for
it, needs no token at all, and is not there unless it waits for something on its own device: the
step ends when everything has run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.device_name import DeviceName
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.placement.place import Placement

# What one operation of each device stands for: all that is waited for there.
Joins = dict[DeviceName, Operation]


def joined(
    step: StepGraph, placement: Mapping[Operation, DeviceName]
) -> tuple[StepGraph, Placement]:
    """Return a placed step in which nothing waits from afar for operations one by one."""
    if not any(_crosses(op, placement) for op in step.graph.operations):
        return step, dict(placement)
    rewriter = Rewriter("join")
    found: Placement = {}
    joins: dict[Operation, Joins] = {}
    for op in step.graph.operations:
        controls = _controls(op, joins, rewriter)
        if op.type == "NoOp" and controls:
            joins[op] = _joins(op, controls, found, rewriter)
            controls = [c for c in controls if found[c] == placement[op]]
            if not controls:
                continue
        new = rewriter.graph.add_operation(
            op.schema,
            name=op.name,
            inputs=[rewriter.tensor(t) for t in op.inputs],
            arity=op.arity,
            attrs=op.attrs,
            specs=[t.spec for t in op.outputs],
            control_inputs=tuple(controls),
            device=op.device_name,
            site=op.site,
            origin=op.origin,
            gradient_rule=op.gradient_rule,
        )
        rewriter.stand_for(op, new)
        found[new] = placement[op]
    targets = [t for op in step.targets for t in _stand_ins(op, joins, rewriter)]
    made = rewriter.finish(replace(step, targets=()))
    return replace(made, targets=tuple(dict.fromkeys(targets))), found


def _stand_ins(
    op: Operation, joins: Mapping[Operation, Joins], rewriter: Rewriter
) -> list[Operation]:
    """Return what a step asks for instead of an operation."""
    return [rewriter.operation(op)] if rewriter.has(op) else list(joins[op].values())


def _crosses(op: Operation, placement: Mapping[Operation, DeviceName]) -> bool:
    """Whether a NoOp waits for operations of other devices."""
    here = placement[op]
    return op.type == "NoOp" and any(placement[c] != here for c in op.control_inputs)


def _controls(
    op: Operation, joins: Mapping[Operation, Joins], rewriter: Rewriter
) -> list[Operation]:
    """Return what an operation waits for, NoOps replaced by what they wait for."""
    controls: dict[Operation, None] = {}
    for needed in op.control_inputs:
        if needed in joins:
            controls.update(dict.fromkeys(joins[needed].values()))
        else:
            controls[rewriter.operation(needed)] = None
    return list(controls)


def _joins(op: Operation, controls: list[Operation], found: Placement, rewriter: Rewriter) -> Joins:
    """Return for each device one operation that stands for all that a NoOp waits for there."""
    there: dict[DeviceName, list[Operation]] = {}
    for needed in controls:
        there.setdefault(found[needed], []).append(needed)
    made: Joins = {}
    for device, awaited in there.items():
        if len(awaited) == 1:
            made[device] = awaited[0]
            continue
        made[device] = rewriter.graph.add_operation(
            OPS["NoOp"],
            name=f"_join/{op.name}{device}",
            inputs=[],
            arity=(),
            attrs={},
            specs=[],
            control_inputs=tuple(awaited),
            device=device,
            site=op.site,
            origin=f"part of NoOp {op.name!r}",
        )
        found[made[device]] = device
    return made
