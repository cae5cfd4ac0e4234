"""Specialisation: a region of a step for inputs of known shapes.

With the shapes of what goes in known, the rules of the ops tell all others, as long as they do not
depend on data. What only asks for shapes becomes a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec, constant_spec
from headrace.graph.static_values import Limits, StaticValues
from headrace.graph.tensor import Tensor
from headrace.passes.evaluate import Evaluate
from headrace.passes.step_graph import Rewriter, StepGraph

# Larger values are computed in the step; what shapes are computed from is small.
LIMITS = Limits(elements=1 << 12, total=1 << 24, operations=1 << 16)


def specialize(
    operations: Sequence[Operation],
    inputs: Sequence[tuple[Tensor, TensorSpec]],
    outputs: Sequence[Tensor],
    evaluate: Evaluate,
    is_effect: Callable[[Operation], bool],
) -> StepGraph:
    """Return operations as a step of their own, with the specs that follow from its inputs'.

    Args:
        operations: The operations, in an order in which they can run; those that yield ``inputs``
            may be among them and are left out.
        inputs: What is handed in, each with what is known of it now.
        outputs: What is handed back.
        evaluate: Computes a node on the host.
        is_effect: Whether an operation must run although nobody reads what it yields.

    Raises:
        HeadraceError: if the inputs do not fit together.
    """
    rewriter = Rewriter("specialize")
    feeds = []
    for i, (tensor, spec) in enumerate(inputs):
        feed = rewriter.graph.add_operation(
            OPS["Feed"],
            name=f"_input/{i}/{tensor.op.name}/{tensor.index}",
            inputs=[],
            arity=(),
            attrs={"dtype": spec.dtype, "shape": spec.shape, "index": i},
            specs=[spec],
            site=tensor.op.site,
            origin=f"input {tensor.name}",
        )
        rewriter.stand_for_tensor(tensor, feed.outputs[0])
        feeds.append(feed.outputs[0])
    early = StaticValues(evaluate, LIMITS)
    given = {tensor for tensor, _ in inputs}
    effects = []
    for op in operations:
        if op.outputs and all(t in given for t in op.outputs):
            rewriter.stand_for_operation(op, rewriter.tensor(op.outputs[0]).op)
            continue
        new = _specialized(op, rewriter, early)
        if is_effect(op):
            effects.append(new)
    return StepGraph(
        rewriter.graph,
        tuple(feeds),
        tuple(rewriter.tensor(t) for t in outputs),
        tuple(effects),
    )


def _specialized(op: Operation, rewriter: Rewriter, early: StaticValues) -> Operation:
    inputs = [rewriter.tensor(t) for t in op.inputs]
    specs: Sequence[TensorSpec] = [t.spec for t in op.outputs]
    for new_input, old_input in zip(inputs, op.inputs, strict=True):
        if new_input.spec is not old_input.spec:
            break
    else:
        # Nothing more is known of what goes in.
        if _says_nothing(inputs, specs):
            return rewriter.copy(op)
        return _known_or_copied(op, inputs, specs, rewriter, early)
    inferred, _ = op.schema.output_specs([t.spec for t in inputs], op.arity, op.attrs)
    pairs = zip(inferred, specs, strict=True)
    specs = [_latest(new.sharpened(old.shape), old) for new, old in pairs]
    return _known_or_copied(op, inputs, specs, rewriter, early)


def _latest(new: TensorSpec, old: TensorSpec) -> TensorSpec:
    """Return what is known of an output: the old record where nothing changes behind it."""
    same = new.value is old.value and new.dims == old.dims and new == old
    return old if same else new


def _says_nothing(inputs: Sequence[Tensor], specs: Sequence[TensorSpec]) -> bool:
    """Whether outputs follow neither from constants nor from shapes alone, at first sight."""
    for spec in specs:
        if spec.value is None:
            return any(tensor.op.type != "Const" for tensor in inputs)
    return False


def _known_or_copied(
    op: Operation,
    inputs: Sequence[Tensor],
    specs: Sequence[TensorSpec],
    rewriter: Rewriter,
    early: StaticValues,
) -> Operation:
    values = _values(op, inputs, specs, early)
    if values is None:
        return rewriter.copy(op, specs=specs)
    first: Operation | None = None
    for i, (tensor, value) in enumerate(zip(op.outputs, values, strict=True)):
        name = op.name if i == 0 else f"{op.name}/known_{i}"
        spec = constant_spec(value, tensor.dtype)
        new = rewriter.add("Const", {"value": value}, [spec], like=op, name=name)
        rewriter.stand_for_tensor(tensor, new.outputs[0])
        first = first or new
    assert first is not None
    rewriter.stand_for_operation(op, first)
    return first


def _values(
    op: Operation, inputs: Sequence[Tensor], specs: Sequence[TensorSpec], early: StaticValues
) -> list[np.ndarray[Any, np.dtype[Any]]] | None:
    """Return an operation's outputs where they follow from constants, or from shapes alone."""
    if op.stateful or op.type == "Const" or not specs or op.control_inputs:
        return None
    if any(t.op.control_inputs for t in inputs):
        # What the inputs wait for must run, too.
        return None
    stated = early.stated(specs)
    if stated is not None or not inputs or any(t.op.type != "Const" for t in inputs):
        return stated
    return early.outputs(op, [t.op.attrs["value"] for t in inputs], specs)
