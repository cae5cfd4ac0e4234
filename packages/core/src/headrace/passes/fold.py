"""Constant folding: computing ahead what depends on constants alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.spec import constant_spec
from headrace.graph.tensor import Tensor
from headrace.passes.effects import dependents_on_effects
from headrace.passes.step_graph import Rewriter, StepGraph

_NDArray = np.ndarray[Any, np.dtype[Any]]

# Computes an operation's outputs from its inputs on the host; None where it cannot.
Evaluate = Callable[[Operation, Sequence[_NDArray]], Sequence[_NDArray] | None]

# Larger results are computed in the step: reading a constant of that size takes as long.
MAX_BYTES = 1 << 18
# One value repeated is cheaper to make, or to broadcast, than to read; nobody reads few of them.
MAX_REPEATED_BYTES = 1 << 12
_REPEATING = frozenset({"Fill", "BroadcastTo", "Tile"})


def fold(step: StepGraph, evaluate: Evaluate) -> StepGraph:
    """Replace nodes by constants where their values are known before the step.

    Stateful nodes are never folded, nor is the shape of a tensor whose computation has an effect,
    since the effect must come about. A node whose evaluation fails is left in place, so that the
    step reports the failure with the node's line.

    Args:
        step: The step.
        evaluate: Computes a node on the host.
    """
    held = dependents_on_effects(step)
    known: dict[Operation, list[_NDArray]] = {}
    for op in step.graph.operations:
        if op.stateful or op.type == "Const" or any(t.op in held for t in op.inputs):
            continue
        values = _values(op, known, evaluate)
        if values is not None:
            known[op] = values
    if not known:
        return step
    rewriter = Rewriter("fold")
    for op in step.graph.operations:
        if op not in known:
            rewriter.copy(op)
            continue
        for i, (tensor, value) in enumerate(zip(op.outputs, known[op], strict=True)):
            name = op.name if i == 0 else f"{op.name}/folded_{i}"
            spec = constant_spec(value, tensor.dtype)
            new = rewriter.add("Const", {"value": value}, [spec], like=op, name=name)
            if i == 0:
                rewriter.stand_for_operation(op, new)
            rewriter.stand_for_tensor(tensor, new.outputs[0])
    return rewriter.finish(step)


def _values(
    op: Operation, known: Mapping[Operation, Sequence[_NDArray]], evaluate: Evaluate
) -> list[_NDArray] | None:
    if not op.outputs or any(t.dtype.kind in ("resource", "list") for t in op.outputs):
        return None
    # Folding drops the input edges; one behind which control edges stand must stay.
    if any(t.op.control_inputs for t in op.inputs):
        return None
    if all(t.spec.value is not None for t in op.outputs):
        return [_frozen(np.asarray(t.spec.value)) for t in op.outputs]
    if not op.inputs or any(_too_large(op, t, t.shape.num_elements()) for t in op.outputs):
        return None
    given = []
    for tensor in op.inputs:
        source = tensor.op
        if source in known:
            given.append(known[source][tensor.index])
        elif source.type == "Const":
            given.append(source.attrs["value"])
        else:
            return None
    found = evaluate(op, given)
    if found is None:
        return None
    values = [_frozen(np.asarray(v)) for v in found]
    fits = all(
        t.dtype.numpy == v.dtype and t.shape.is_compatible_with(v.shape)
        for t, v in zip(op.outputs, values, strict=True)
    )
    sizes = zip(op.outputs, values, strict=True)
    return values if fits and not any(_too_large(op, t, v.size) for t, v in sizes) else None


def _too_large(op: Operation, tensor: Tensor, elements: int | None) -> bool:
    most = MAX_REPEATED_BYTES if op.type in _REPEATING else MAX_BYTES
    return elements is not None and elements * tensor.dtype.itemsize > most


def _frozen(value: _NDArray) -> _NDArray:
    array = value if value.flags.c_contiguous and value.base is None else np.array(value)
    array.flags.writeable = False
    return array
