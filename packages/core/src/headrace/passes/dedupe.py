"""Merging nodes that compute the same: one op, the same inputs, the same attributes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
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
    commutative ops the order of the inputs does not count. Stateful nodes are never merged: two
    assignments are two assignments.
    """
    rewriter = Rewriter("dedupe")
    kept: dict[Hashable, Operation] = {}
    for op in step.graph.operations:
        if op.stateful:
            rewriter.copy(op)
            continue
        key = (
            op.type,
            op.arity,
            _inputs(op, rewriter),
            tuple((name, attribute_key(value)) for name, value in op.attrs.items()),
            rewriter.controls(op.control_inputs),
            op.device_name,
            rewriter.controls(op.colocated_with),
        )
        twin = kept.get(key)
        if twin is None:
            kept[key] = rewriter.copy(op)
        else:
            rewriter.stand_for(op, twin)
    return rewriter.finish(step)


def _inputs(op: Operation, rewriter: Rewriter) -> Hashable:
    inputs = [rewriter.tensor(t) for t in op.inputs]
    if op.type in COMMUTATIVE and inputs[0].dtype.kind != "string":
        inputs.sort(key=lambda t: (t.op.index, t.index))
    return tuple(inputs)


def attribute_key(value: Any) -> Hashable:
    """Return what two equal values of an attribute have in common."""
    if isinstance(value, np.ndarray):
        data: Hashable = tuple(value.ravel()) if value.dtype == object else value.tobytes()
        return (value.dtype.str, value.shape, data)
    if isinstance(value, tuple):
        return tuple(attribute_key(item) for item in value)
    # 1, 1.0 and True are equal to Python, and so are 0.0 and -0.0, but they compute differently.
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)
