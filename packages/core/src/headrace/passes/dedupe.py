"""Merging nodes that compute the same: one op, the same inputs, the same attributes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.passes.step_graph import Rewriter, StepGraph


def dedupe(step: StepGraph) -> StepGraph:
    """Keep one of each set of equal pure nodes.

    Nodes are equal if op, inputs, attributes, control inputs and device requests are. Stateful
    nodes are never merged: two assignments are two assignments.
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
            tuple(rewriter.tensor(t) for t in op.inputs),
            tuple((name, _hashable(value)) for name, value in op.attrs.items()),
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


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        data: Hashable = tuple(value.ravel()) if value.dtype == object else value.tobytes()
        return (value.dtype.str, value.shape, data)
    if isinstance(value, tuple):
        return tuple(_hashable(item) for item in value)
    # 1, 1.0 and True are equal to Python, and so are 0.0 and -0.0, but they compute differently.
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)
