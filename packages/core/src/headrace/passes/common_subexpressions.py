"""Common subexpression elimination: nodes of one op, inputs and attributes become one node."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from headrace.graph.attributes import attribute_key
from headrace.graph.operation import Operation
from headrace.passes.effects import has_effect
from headrace.passes.step_graph import Rewriter, StepGraph

_READS = frozenset(("reads",))


def dedupe(step: StepGraph) -> StepGraph:
    """Keep one of each set of equal pure nodes.

    Nodes are equal if op, inputs, attributes, control inputs and device requests are; for
    commutative ops the order of the inputs does not count. Stateful nodes are not merged, for two
    assignments are two assignments, but reads of state are: those between which, in the order of
    the graph, no operation has an effect.
    """
    twins = _twins(step)
    if not twins:
        return step
    rewriter = Rewriter("dedupe")
    for op in step.graph.operations:
        twin = twins.get(op)
        if twin is None:
            rewriter.copy(op)
        else:
            rewriter.stand_for(op, rewriter.operation(twin))
    return rewriter.finish(step)


def _twins(step: StepGraph) -> dict[Operation, Operation]:
    """Return the first of its equals for each node that has one before it."""
    twins: dict[Operation, Operation] = {}
    kept: dict[Hashable, Operation] = {}
    effects = 0
    for op in step.graph.operations:
        read = False
        if op.stateful:
            read = _reads(op)
            if not read:
                effects += has_effect(op)
                continue
        attrs = op.attrs
        key = (
            op.type,
            effects if read else None,
            op.arity,
            _inputs(op, twins),
            tuple([(name, attribute_key(attrs[name])) for name in attrs]) if attrs else (),
            _stands_for(op.control_inputs, twins),
            op.device_name,
            _stands_for(op.colocated_with, twins),
        )
        first = kept.setdefault(key, op)
        if first is not op:
            twins[op] = first
    return twins


def _reads(op: Operation) -> bool:
    """Whether an operation only reads state, such as the value of a variable.

    One that yields a handle makes what the handle stands for, under its own name where need be.
    """
    reads = op.schema.effects == _READS
    return reads and not any(t.dtype.kind == "resource" for t in op.outputs)


def _inputs(op: Operation, twins: Mapping[Operation, Operation]) -> Hashable:
    inputs = [(twins.get(t.op, t.op).index, t.index) for t in op.inputs]
    if len(inputs) == 2 and op.schema.commutative and op.inputs[0].dtype.kind != "string":
        inputs.sort()
    return tuple(inputs)


def _stands_for(
    ops: Collection[Operation], twins: Mapping[Operation, Operation]
) -> tuple[Operation, ...]:
    return tuple(dict.fromkeys(twins.get(op, op) for op in ops)) if ops else ()
