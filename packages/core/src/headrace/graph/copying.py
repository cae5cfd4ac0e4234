"""Copies of operations, on other inputs than their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.scopes import current_scope
from headrace.graph.tensor import Tensor


def copied(
    op: Operation,
    inputs: Sequence[Tensor],
    *,
    attrs: Mapping[str, Any] | None = None,
    control_inputs: Iterable[Operation] = (),
    origin: str = "",
) -> Operation:
    """Add a copy of an operation to the default graph, and return it.

    The copy has its own name in the name scope in force, and asks for the device of the operation.
    It waits for ``control_inputs`` alone. What passes merge equal operations by are inputs,
    attributes and what they wait for: give a copy that is to run for itself something to wait for,
    or inputs that do (``identity_after``).

    Args:
        op: The operation.
        inputs: What the copy takes, flat, as many as ``op`` does; tensors of graphs around the
            default one are captured.
        attrs: Attributes that differ.
        control_inputs: Operations of the default graph that must have finished first.
        origin: Why the copy is there.
    """
    scope = current_scope()
    graph = scope.graph
    made = graph.add_operation(
        op.schema,
        name=_own_name(op.name),
        inputs=[graph.capture(t) for t in inputs],
        arity=op.arity,
        attrs=op.attrs if attrs is None else {**op.attrs, **attrs},
        specs=[t.spec for t in op.outputs],
        control_inputs=tuple(control_inputs),
        device=op.device_name,
        colocated_with=tuple(c for c in op.colocated_with if c.graph is graph),
        site=op.site,
        origin=origin or f"copy of {op.name!r}",
        gradient_rule=op.gradient_rule,
    )
    if op.gradient_rule and op.gradient_rule in op.graph.gradient_rules:
        graph.gradient_rules[op.gradient_rule] = op.graph.gradient_rules[op.gradient_rule]
    return made


def identity_after(
    tensor: Tensor,
    awaited: Iterable[Operation],
    origin: str = "",
    *,
    like: Operation | None = None,
) -> Tensor:
    """Return a tensor of the default graph as it is, available once operations have finished.

    What is computed from the result is computed then, and no pass merges it with what is computed
    from the tensor itself.

    Args:
        tensor: The tensor; one of a graph around the default one is captured.
        awaited: Operations of the default graph.
        origin: Why it is there.
        like: An operation whose device it shares; it goes where that of ``tensor`` asks to be if
            None.
    """
    op = tensor.op if like is None else like
    graph = current_scope().graph
    made = graph.add_operation(
        OPS["Identity"],
        name=_own_name(op.name),
        inputs=[graph.capture(tensor)],
        arity=(1,),
        attrs={},
        specs=[tensor.spec],
        control_inputs=tuple(awaited),
        device=op.device_name,
        colocated_with=() if like is None else (like,),
        site=op.site,
        origin=origin,
    )
    return made.outputs[0]


def with_inputs(
    op: Operation, inputs: Sequence[Tensor], outputs: Sequence[Tensor] | None = None
) -> Operation:
    """Return an operation as it would be on other inputs, without adding it to a graph.

    For those who only look at an operation, such as gradient rules.

    Args:
        op: The operation.
        inputs: The tensors to show as its inputs.
        outputs: The tensors to show as its outputs, its own if None.
    """
    shown = op.outputs if outputs is None else tuple(outputs)
    return replace(op, inputs=tuple(inputs), outputs=shown)


def _own_name(name: str) -> str:
    scope = current_scope()
    last = name.rpartition("/")[2]
    return scope.graph.unique_full_name(f"{scope.name}/{last}" if scope.name else last)
