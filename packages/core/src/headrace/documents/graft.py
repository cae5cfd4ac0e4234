"""Copying a whole graph into another one, under a prefix, on tensors of that one where wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from headrace.device_name import DeviceName
from headrace.errors import AttributeValueError, GraphError, listing
from headrace.graph.function import Function
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.variable import Variable


@final
@dataclass(slots=True)
class Grafted:
    """What became of the parts of a graph that was copied into another one.

    Attributes:
        operations: The copy of each operation.
        tensors: What stands for each tensor: an output of a copy, or what it was mapped to.
        variables: The copy of each variable.
    """

    operations: dict[Operation, Operation] = field(default_factory=dict)
    tensors: dict[Tensor, Tensor] = field(default_factory=dict)
    variables: dict[Variable, Variable] = field(default_factory=dict)

    def of(self, item: Any) -> Any:
        """Return the copy of an operation, tensor or variable; anything else as it is."""
        if isinstance(item, Operation):
            return self.operations.get(item, item)
        if isinstance(item, Tensor):
            return self.tensors.get(item, item)
        return self.variables.get(item, item) if isinstance(item, Variable) else item


def graft(
    source: Graph,
    target: Graph,
    *,
    prefix: str = "",
    mapped: Mapping[Tensor, Tensor] | None = None,
    mapped_controls: Mapping[Operation, Operation] | None = None,
    clear_devices: bool = False,
    unique: bool = False,
    omitted: Sequence[Operation] = (),
) -> Grafted:
    """Copy all operations, variables and collections of a graph into another one.

    Variables that keep their values under their own names keep them under the new ones, so that
    two copies in one session do not share them.

    Args:
        source: The graph to copy; it stays as it is.
        target: The graph that takes the copies.
        prefix: The scope under which the copies stand; none if empty.
        mapped: Tensors of ``source`` with those of ``target`` that take their places as inputs.
        mapped_controls: Likewise for what operations wait for.
        clear_devices: Whether the copies ask for no devices.
        unique: Whether copies get other names where theirs are taken; else they are refused.
        omitted: Operations of one output that is mapped, of which no copy is wanted.

    Returns:
        What became of each part.

    Raises:
        GraphError: if ``target`` has operations of the names already, or is finalized; then
            nothing has been added.
        AttributeValueError: if a tensor is mapped to one of another dtype.
    """
    if target.finalized:
        raise GraphError("cannot import into a graph that was finalized")
    before = f"{prefix}/" if prefix else ""
    left_out = set(omitted)
    taken = [
        op.name
        for op in source.operations
        if target.find_operation(before + op.name) and op not in left_out
    ]
    if taken and not unique:
        raise GraphError(
            f"the graph has operations of these names already: {listing(map(repr, taken))}; import "
            "into a new graph, or under a scope"
        )
    copier = _Copier(source, target, before, clear_devices)
    copier.taken = set(taken)
    copier.found.tensors.update(mapped or {})
    for tensor, other in (mapped or {}).items():
        if tensor.dtype != other.dtype:
            raise AttributeValueError(
                f"{tensor.name!r} is {tensor.dtype}, {other.name!r} in its place {other.dtype}"
            )
    copier.controls.update(mapped_controls or {})
    copier.found.operations.update({op: copier.found.tensors[op.outputs[0]].op for op in omitted})
    copier.copy_operations()
    copier.copy_variables()
    return copier.found


class _Copier:
    """Copies operations one by one, in the order of their graph."""

    def __init__(self, source: Graph, target: Graph, before: str, clear_devices: bool) -> None:
        self.source = source
        self.target = target
        self.before = before
        self.clear_devices = clear_devices
        self.found = Grafted()
        self.taken: set[str] = set()
        self.controls: dict[Operation, Operation] = {}
        self.functions: dict[Function, Function] = {}

    def copy_operations(self) -> None:
        """Copy the operations, each on what stands for its inputs."""
        tensors, operations = self.found.tensors, self.found.operations
        kept = set(tensors)
        left_out = set(operations)
        for op in self.source.operations:
            if op in left_out:
                continue
            made = self._copied(op)
            operations[op] = made
            for old, new in zip(op.outputs, made.outputs, strict=True):
                if old not in kept:
                    tensors[old] = new
        for op in operations.values():
            self.target.reserve_name(op.name)
        self.target.gradient_rules.update(self.source.gradient_rules)

    def _copied(self, op: Operation) -> Operation:
        known = self.found.operations
        inputs = [self.found.tensors[t] for t in op.inputs]
        name = self.before + op.name
        if op.name in self.taken:
            name = self.target.unique_full_name(name)
        attrs = {key: self._attribute(op, name, key, value) for key, value in op.attrs.items()}
        return self.target.add_operation(
            op.schema,
            name=name,
            inputs=inputs,
            arity=op.arity,
            attrs=attrs,
            specs=_specs(op, inputs, attrs),
            control_inputs=tuple(self.controls.get(c) or known[c] for c in op.control_inputs),
            device=DeviceName() if self.clear_devices else op.device_name,
            colocated_with=tuple(known[c] for c in op.colocated_with if c in known),
            site=op.site,
            origin=op.origin,
            gradient_rule=op.gradient_rule,
            copy_of=self.before + op.copy_of if op.copy_of else "",
        )

    def _attribute(self, op: Operation, name: str, key: str, value: Any) -> Any:
        if isinstance(value, Function):
            if value not in self.functions:
                self.functions[value] = self._function(value)
            return self.functions[value]
        # State that an operation keeps under its own name.
        if key == "shared_name" and value and value == op.name:
            return name
        return value

    def _function(self, function: Function) -> Function:
        made = Function(self.before + function.name, self.target)
        inner = _Copier(function, made, "", self.clear_devices)
        inner.functions = self.functions
        inner.copy_operations()
        tensors = inner.found.tensors
        made.complete(
            [tensors[t] for t in function.parameters], [tensors[t] for t in function.results]
        )
        made.effects = tuple(inner.found.operations[op] for op in function.effects)
        return made

    def copy_variables(self) -> None:
        """List the variables and what else is in collections of the graph."""
        found = self.found
        for variable in self.source.variables:
            found.variables[variable] = Variable.from_parts(
                found.tensors[variable.handle],
                found.tensors[variable.initial_value],
                found.operations[variable.initializer],
                found.tensors[variable.snapshot],
                variable.trainable,
                (),
            )
        for key in self.source.get_all_collection_keys():
            for item in self.source.get_collection(key):
                self.target.add_to_collection(key, found.of(item))


def _specs(op: Operation, inputs: list[Tensor], attrs: Mapping[str, Any]) -> list[TensorSpec]:
    """Return what is known of the outputs of a copy: what was, unless its inputs differ."""
    known = [t.spec for t in op.outputs]
    if all(a.spec == b.spec for a, b in zip(op.inputs, inputs, strict=True)):
        return known
    found, _ = op.schema.output_specs([t.spec for t in inputs], op.arity, attrs)
    return list(found)
