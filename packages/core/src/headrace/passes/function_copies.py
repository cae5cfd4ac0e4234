"""Copies of functions with a rewritten body, and unique names for operations added to them."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import StepGraph


def function_of(
    old: Function, step: StepGraph, kept: Iterable[int], results: int
) -> tuple[Function, list[Tensor]]:
    """Return the function of a rewritten inside, under the name of the old one.

    Args:
        old: The function whose inside was rewritten.
        step: The inside: its targets are the function's effects, and what it is fed are further
            parameters, behind those that are kept.
        kept: The parameters that the function has, by their numbers in the old one, in order.
        results: How many of what is fetched the function returns.

    Returns:
        The function, and what stands in it for all that is fetched.
    """
    made = Function(old.name, old.outer, instead_of=old)
    arguments = {
        i: made.add_parameter(old.parameters[i].spec, old.parameters[i].op.name) for i in kept
    }
    tensors: dict[Tensor, Tensor] = {t: made.add_parameter(t.spec, t.op.name) for t in step.feeds}
    operations = {t.op: tensors[t].op for t in step.feeds}
    for op in step.graph.operations:
        if op.type == "Parameter" and op not in operations:
            tensors[op.outputs[0]] = arguments[op.attrs["index"]]
            operations[op] = tensors[op.outputs[0]].op
    add_copies(made, step.graph.operations, tensors, operations)
    made.effects = tuple(operations[op] for op in step.targets)
    fetched = [tensors[t] for t in step.fetches]
    made.finish(fetched[:results])
    return made, fetched


def add_copies(
    made: Function,
    operations: Iterable[Operation],
    tensors: dict[Tensor, Tensor],
    copies: dict[Operation, Operation],
    taken: set[str] | None = None,
) -> None:
    """Add copies of operations to a function.

    Args:
        made: The function.
        operations: What to copy, in an order in which they could run.
        tensors: What stands in the function for tensors; gets the outputs of the copies.
        copies: What stands in it for operations, which are not copied; gets the copies.
        taken: The names that others have there; None where none of these has.
    """
    for op in operations:
        if op in copies:
            continue
        new = made.add_operation(
            op.schema,
            # Views of one run go by its name.
            name=op.name if taken is None else unique_name(op.name, taken),
            inputs=[tensors[t] for t in op.inputs],
            arity=op.arity,
            attrs=op.attrs,
            specs=[t.spec for t in op.outputs],
            control_inputs=tuple(copies[c] for c in op.control_inputs),
            device=op.device_name,
            colocated_with=tuple(copies[c] for c in op.colocated_with),
            site=op.site,
            origin=op.origin,
            gradient_rule=op.gradient_rule,
        )
        copies[op] = new
        tensors.update(zip(op.outputs, new.outputs, strict=True))


def unique_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, as one is that was asked for; from then on it is taken."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found
