"""Merging nodes that compute the same: one op, the same inputs, the same attributes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.passes.effects import has_effect
from headrace.passes.step_graph import Rewriter, StepGraph

# Ops of two inputs that compute the same, bit by bit, in either order (strings are joined by Add).
# Maximum and Minimum are not among them: which zero, and which NaN, they yield depends on it.
COMMUTATIVE = frozenset(
    {
        *("Add", "Mul", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalXor"),
        *("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    }
)


def dedupe(step: StepGraph) -> StepGraph:
    """Keep one of each set of equal pure nodes.

    Nodes are equal if op, inputs, attributes, control inputs and device requests are; for
    commutative ops the order of the inputs does not count. Stateful nodes are not merged, for two
    assignments are two assignments, but reads of a variable are: those between which, in the order
    of the graph, no operation has an effect.
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
        read = op.type == "ReadVariable"
        if op.stateful and not read:
            effects += has_effect(op)
            continue
        key = (
            op.type,
            effects if read else None,
            op.arity,
            _inputs(op, twins),
            tuple((name, attribute_key(value)) for name, value in op.attrs.items()),
            _stands_for(op.control_inputs, twins),
            op.device_name,
            _stands_for(op.colocated_with, twins),
        )
        first = kept.setdefault(key, op)
        if first is not op:
            twins[op] = first
    return twins


def _inputs(op: Operation, twins: Mapping[Operation, Operation]) -> Hashable:
    inputs = [(twins.get(t.op, t.op).index, t.index) for t in op.inputs]
    if op.type in COMMUTATIVE and op.inputs[0].dtype.kind != "string":
        inputs.sort()
    return tuple(inputs)


def _stands_for(
    ops: Collection[Operation], twins: Mapping[Operation, Operation]
) -> tuple[Operation, ...]:
    return tuple(dict.fromkeys(twins.get(op, op) for op in ops)) if ops else ()


def attribute_key(value: Any) -> Hashable:
    """Return what two equal values of an attribute have in common."""
    if isinstance(value, np.ndarray):
        data: Hashable = tuple(value.ravel()) if value.dtype == object else value.tobytes()
        return (value.dtype.str, value.shape, data)
    if isinstance(value, tuple):
        return tuple(attribute_key(item) for item in value)
    # 1, 1.0 and True are equal to Python, and so are 0.0 and -0.0, but they compute differently.
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)
