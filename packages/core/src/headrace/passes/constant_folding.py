"""Constant folding: computing before a step runs what depends on constants alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.spec import constant_spec
from headrace.graph.static_values import Limits, StaticValues
from headrace.graph.tensor import Tensor
from headrace.passes.effects import dependents_on_effects
from headrace.passes.evaluate import Evaluate
from headrace.passes.prune import still_needed
from headrace.passes.step_graph import Rewriter, StepGraph

_NDArray = np.ndarray[Any, np.dtype[Any]]

# Larger results are computed in the step: reading a constant of that size takes as long.
MAX_ELEMENTS = 1 << 16
# One value repeated is cheaper to make, or to broadcast, than to read; nobody reads few of them.
MAX_REPEATED_ELEMENTS = 1 << 10
# A step that would fold more than this computes the rest.
LIMITS = Limits(elements=MAX_ELEMENTS, total=1 << 26, operations=1 << 16)


def fold(step: StepGraph, evaluate: Evaluate) -> StepGraph:
    """Replace nodes by constants where their values are known before the step.

    Stateful nodes are never folded, nor is the shape of a tensor whose computation has an effect,
    since the effect must come about. A node whose evaluation fails is left in place, so that the
    step reports the failure with the node's line.

    Args:
        step: The step.
        evaluate: Computes a node on the host.
    """
    held: set[Operation] | None = None
    early = StaticValues(evaluate, LIMITS)
    known: dict[Operation, list[_NDArray]] = {}
    for op in step.graph.operations:
        if op.type == "Const" or op.stateful or not _may_be_known(op, known):
            continue
        if held is None:
            held = dependents_on_effects(step)
        if held and any(t.op in held for t in op.inputs):
            continue
        values = _values(op, known, early)
        if values is not None:
            known[op] = values
    if not known:
        return step
    rewriter = Rewriter("fold")
    needed = still_needed(step, {op: op.control_inputs for op in known})
    for op in step.graph.operations:
        if op not in known:
            if op in needed:
                rewriter.copy(op)
            continue
        if op not in needed:
            continue
        for i, (tensor, value) in enumerate(zip(op.outputs, known[op], strict=True)):
            name = op.name if i == 0 else f"{op.name}/folded_{i}"
            spec = constant_spec(value, tensor.dtype)
            new = rewriter.add("Const", {"value": value}, [spec], like=op, name=name)
            if i == 0:
                rewriter.stand_for_operation(op, new)
            rewriter.stand_for_tensor(tensor, new.outputs[0])
    return rewriter.finish(step)


def _may_be_known(op: Operation, known: Mapping[Operation, Sequence[_NDArray]]) -> bool:
    """Whether an operation's values may follow from constants; most do not, at first sight."""
    for tensor in op.inputs:
        if tensor.op not in known and tensor.op.type != "Const":
            break
    else:
        return True
    for tensor in op.outputs:
        if tensor.spec.value is None:
            return False
    return bool(op.outputs)


def _values(
    op: Operation, known: Mapping[Operation, Sequence[_NDArray]], early: StaticValues
) -> list[_NDArray] | None:
    # Constants are of the dtypes that arrays have, which no quantized one is.
    apart = ("resource", "list", "quantized")
    if not op.outputs or any(t.dtype.kind in apart for t in op.outputs):
        return None
    # Folding drops the input edges; one behind which other control edges stand must stay.
    if any(c not in op.control_inputs for t in op.inputs for c in t.op.control_inputs):
        return None
    stated = early.stated([t.spec for t in op.outputs])
    if stated is not None or not op.inputs:
        return stated
    given = [_constant(t, known) for t in op.inputs]
    values = [value for value in given if value is not None]
    if len(values) < len(given):
        return None
    most = MAX_REPEATED_ELEMENTS if op.schema.repeats else MAX_ELEMENTS
    return early.outputs(op, values, [t.spec for t in op.outputs], most)


def _constant(tensor: Tensor, known: Mapping[Operation, Sequence[_NDArray]]) -> _NDArray | None:
    if tensor.op in known:
        return known[tensor.op][tensor.index]
    return tensor.op.attrs["value"] if tensor.op.type == "Const" else None
