"""Building a graph of the nodes of a ``GraphDef``, trusting none of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

from headrace import Graph, Operation, Tensor
from headrace.errors import (
    AttributeValueError,
    DocumentError,
    GraphError,
    HeadraceError,
    NotFoundError,
    listing,
    shown,
)
from headrace.extend.devices import DeviceName
from headrace.extend.documents import OutputLimit, checked_specs
from headrace.extend.graphs import MAX_NESTED, CycleError, Function, in_order, user_site
from headrace.extend.ops import OPS, OpSchema, TensorSpec
from headrace_io.dtype_protos import shape_of
from headrace_io.graph_import.attributes import (
    document_value,
    read_attributes,
    unknown_attributes,
)

# How an input names a tensor: in a graph "node" or "node:1", in a function "node:output:1".
_INPUT = re.compile(r"([^:^]+)(?::(?:[A-Za-z_][A-Za-z0-9_]*:)?([0-9]{1,9}))?")


@final
@dataclass(slots=True)
class Described:
    """A node of a message, with what it depends on.

    Attributes:
        message: The ``NodeDef``.
        inputs: The node and the index of the output of each input.
        controls: The nodes for which it waits.
    """

    message: Any
    inputs: list[tuple[str, int]]
    controls: list[str]


class GraphDefReader:
    """Adds the nodes of a message to a graph.

    Attributes:
        graph: The graph.
        operations: Its operations by the names of the nodes.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = Graph() if graph is None else graph
        self.operations: dict[str, Operation] = {}
        self.functions: dict[str, Function] = {}
        self._tensors: dict[tuple[str, int], Tensor] = {}
        self._outputs = OutputLimit()

    def read(self, graph_def: Any) -> None:
        """Read a ``GraphDef``.

        Raises:
            NotFoundError: if nodes have ops that Headrace does not have; all are named.
            GraphError: if nodes depend on nodes that are not there, or on one another.
            AttributeValueError: if a node is not what its op takes.
        """
        library = {f.signature.name: f for f in graph_def.library.function}
        nodes = [*graph_def.node, *(node for f in library.values() for node in f.node_def)]
        refuse_unknown(nodes)
        for function in _functions_in_order(library):
            self._read_function(function)
        self.read_nodes(graph_def.node)

    def read_nodes(self, nodes: Iterable[Any], given: Mapping[str, Tensor] | None = None) -> None:
        """Add nodes, each after those that it depends on.

        Args:
            nodes: The ``NodeDef`` messages, in any order.
            given: Tensors that nodes may name, besides each other's.
        """
        for name, tensor in (given or {}).items():
            self._tensors[name, 0] = tensor
        for node in _in_order(nodes, set(given or {})):
            try:
                op = self._add(node)
            except HeadraceError as error:
                if isinstance(error, GraphError):
                    raise
                message = node.message
                raise AttributeValueError(f"{message.op} {message.name!r}: {error}") from error
            self.operations[node.message.name] = op
            for i, output in enumerate(op.outputs):
                self._tensors[node.message.name, i] = output
        for name in self.operations:
            self.graph.reserve_name(name)

    def _add(self, node: Described) -> Operation:
        message = node.message
        schema = OPS[message.op]
        odd = unknown_attributes(message, schema)
        if odd:
            raise DocumentError(f"its op has no attributes {listing(map(repr, odd))}")
        inputs = [self._tensor(*item) for item in node.inputs]
        arity = _arity(message, schema, len(inputs))
        attrs = read_attributes(message, schema, self.functions)
        specs = list(checked_specs(schema, inputs, arity, attrs))
        self._outputs.add(len(specs))
        return self.graph.add_operation(
            schema,
            name=message.name,
            inputs=inputs,
            arity=arity,
            attrs=attrs,
            specs=_sharpened(specs, message),
            control_inputs=tuple(self.operations[name] for name in node.controls),
            device=DeviceName.parse(message.device),
            colocated_with=self._colocated(message),
            site=user_site(),
            gradient_rule=_text(message, "_gradient_op_type"),
            copy_of=_text(message, "_copy_of"),
        )

    def _tensor(self, name: str, index: int) -> Tensor:
        found = self._tensors.get((name, index))
        if found is None:
            count = len(self.operations[name].outputs)
            raise DocumentError(f"{name!r} has {count} outputs, there is no '{name}:{index}'")
        return found

    def _colocated(self, message: Any) -> tuple[Operation, ...]:
        if "_class" not in message.attr:
            return ()
        names = [item.decode().removeprefix("loc:@") for item in message.attr["_class"].list.s]
        # A node may name itself, or one that comes later, which says the same from there.
        return tuple(self.operations[name] for name in names if name in self.operations)

    def _read_function(self, message: Any) -> None:
        signature = message.signature
        function = Function(signature.name, self.graph)
        reader = GraphDefReader(function)
        reader._outputs = self._outputs
        reader.functions = self.functions
        specs = document_value(message.attr["_parameters"].s.decode() or "null")
        if not isinstance(specs, tuple) or len(specs) != len(signature.input_arg):
            raise AttributeValueError(
                f"the function {signature.name!r} does not say what its arguments are; it was "
                "not written by Headrace"
            )
        names = [name.decode() for name in message.attr["_parameter_names"].list.s]
        arguments = {}
        for i, (argument, spec) in enumerate(zip(signature.input_arg, specs, strict=True)):
            if not isinstance(spec, TensorSpec):
                raise AttributeValueError(f"{shown(spec, 60)} does not say what an argument is")
            name = names[i] if i < len(names) else argument.name
            arguments[argument.name] = function.add_parameter(spec, name)
        reader.read_nodes(message.node_def, arguments)
        results = []
        for result in signature.output_arg:
            name, index = _named(message.ret[result.name])
            results.append(reader._tensor(name, index))
        function.complete(list(arguments.values()), results)
        function.effects = tuple(
            reader.operations[name.decode()] for name in message.attr["_effects"].list.s
        )
        self.functions[signature.name] = function


def refuse_unknown(nodes: Iterable[Any]) -> None:
    """Refuse nodes of ops that Headrace does not have, all at once.

    Raises:
        NotFoundError: if there are any.
    """
    found: dict[str, list[str]] = {}
    for node in nodes:
        if node.op not in found and not _is_known(node.op):
            found[node.op] = []
        if node.op in found:
            found[node.op].append(node.name)
    if found:
        each = [
            f"{op} ({names[0]!r}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
            for op, names in sorted(found.items())
        ]
        raise NotFoundError(
            f"the graph has operations of {len(found)} types that Headrace does not have: "
            f"{listing(each, 40)}"
        )


def _is_known(name: str) -> bool:
    try:
        OPS[name]
    except GraphError:
        return False
    return True


def _in_order(nodes: Iterable[Any], given: set[str]) -> list[Described]:
    """Return nodes, each after those that it depends on."""
    known: dict[str, Described] = {}
    for message in nodes:
        if not message.name or message.name in known:
            raise GraphError(f"two nodes have the name {shown(message.name, 60)}")
        inputs = [_named(text) for text in message.input if not text.startswith("^")]
        controls = [text[1:] for text in message.input if text.startswith("^")]
        known[message.name] = Described(message, inputs, controls)
    before: dict[str, list[str]] = {}
    for name, node in known.items():
        needed = [*(item for item, _ in node.inputs), *node.controls]
        missing = [item for item in needed if item not in known and item not in given]
        if missing:
            raise GraphError(f"node {name!r} has the unknown input {missing[0]!r}")
        before[name] = [item for item in needed if item in known]
    try:
        # In their own order, as far as that will do.
        place = {name: i for i, name in enumerate(known)}
        names = in_order(list(known), lambda name: before[name], place.__getitem__)
    except CycleError as error:
        raise GraphError(
            f"nodes depend on one another in a cycle, as {error.item!r} does"
        ) from None
    return [known[name] for name in names]


def _functions_in_order(library: Mapping[str, Any]) -> list[Any]:
    """Return functions, each after those that its operations hold."""
    before = {
        name: [
            value.func.name
            for node in function.node_def
            for value in node.attr.values()
            if value.func.name in library
        ]
        for name, function in library.items()
    }
    try:
        names = in_order(list(library), lambda name: before[name])
    except CycleError as error:
        raise GraphError(f"the function {error.item!r} holds itself") from None
    depths: dict[str, int] = {}
    for name in names:
        depths[name] = 1 + max((depths[other] for other in before[name]), default=0)
        if depths[name] > MAX_NESTED:
            raise GraphError(f"functions are nested more than {MAX_NESTED} deep")
    return [library[name] for name in names]


def _named(text: str) -> tuple[str, int]:
    match = _INPUT.fullmatch(text)
    if match is None:
        raise GraphError(f"{shown(text, 60)} is no input of a node")
    return match[1], int(match[2] or 0)


def _arity(message: Any, schema: OpSchema, inputs: int) -> tuple[int, ...]:
    params = schema.inputs
    if "_arity" in message.attr:
        counts = list(message.attr["_arity"].list.i)
    else:
        counts = [1] * len(params)
        flexible = [i for i, p in enumerate(params) if p.variadic or p.optional]
        if len(flexible) == 1:
            counts[flexible[0]] = inputs - len(params) + 1
        elif flexible and inputs != len(params):
            # Of several that may be left out, the last are.
            counts = [1 if i < inputs else 0 for i in range(len(params))]
    fits = len(counts) == len(params) and sum(counts) == inputs
    for param, count in zip(params, counts, strict=False):
        least = 0 if param.optional else param.least
        fits = fits and least <= count <= (inputs if param.variadic else 1)
    if not fits:
        takes = ", ".join(p.name for p in params) or "nothing"
        raise DocumentError(f"it takes {takes}, got {inputs} inputs")
    return tuple(counts)


def _sharpened(specs: list[TensorSpec], message: Any) -> list[TensorSpec]:
    if "_output_shapes" not in message.attr:
        return specs
    shapes = message.attr["_output_shapes"].list.shape
    if len(shapes) != len(specs):
        return specs
    return [spec.sharpened(shape_of(shape)) for spec, shape in zip(specs, shapes, strict=True)]


def _text(message: Any, name: str) -> str:
    if name not in message.attr:
        return ""
    found: str = message.attr[name].s.decode()
    return found
