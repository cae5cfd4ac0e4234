"""Building a graph of the nodes that TensorFlow wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, final

import headrace as hr
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
from headrace.extend.documents import OutputLimit
from headrace.extend.plugins import host
from headrace_io.dtype_protos import shape_of
from headrace_io.translation.frames import ENTER, EXIT, Body, Linked, Path
from headrace_io.translation.loops import build_loop
from headrace_io.translation.node import Node
from headrace_io.translation.values import Reference

# How an input names a tensor: in a graph "node" or "node:1", in a function "node:output:1".
_INPUT = re.compile(r"([^:^]+)(?::([A-Za-z_][A-Za-z0-9_]*))?(?::([0-9]{1,9}))?")
_MAX_CALLS = 64
# Ops of which several outputs are lists: an index alone does not say which list is meant.
_GROUPED = frozenset(("ParseExample", "SparseSplit"))


@final
class TensorFlowReader:
    """Builds a graph of TensorFlow's nodes.

    Attributes:
        graph: The graph.
        library: The functions of the message by name.
        outputs: Bounds those of all nodes.
        rows: The translations.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.library: dict[str, Any] = {}
        self._calls: list[str] = []
        self.outputs = OutputLimit()
        self.rows = host().translations

    def read(self, graph_def: Any) -> None:
        """Build the graph.

        Raises:
            NotFoundError: if nodes have ops that there is no translation of; all are named.
            GraphError: if nodes depend on nodes that are not there, or on one another.
            AttributeValueError: if a node is not what its op takes.
        """
        self.library = {f.signature.name: f for f in graph_def.library.function}
        self._refuse_unknown(graph_def.node)
        for node in graph_def.node:
            # What translations add besides must not take the names of nodes that come later.
            self.graph.reserve_name(node.name)
        with self.graph.as_default():
            scope = _Scope(self, Body(_linked(graph_def.node)), {}, ())
            scope.build(scope.body.needed_for(scope.body.order, ()))
        for operation in self.graph.operations:
            self.graph.reserve_name(operation.name)

    def _refuse_unknown(self, nodes: Iterable[Any]) -> None:
        found: dict[str, list[str]] = {}
        reached: dict[str, None] = {}
        waiting = [nodes]
        while waiting:
            for node in waiting.pop():
                called = [a.func.name for a in node.attr.values() if a.func.name]
                called += [f.name for a in node.attr.values() for f in a.list.func]
                called += [node.op] if node.op in self.library else []
                fresh = [n for n in called if n in self.library and n not in reached]
                reached.update(dict.fromkeys(fresh))
                waiting.extend(self.library[name].node_def for name in fresh)
                if node.op not in self.library and self.rows.get(node.op) is None:
                    found.setdefault(node.op, []).append(node.name)
        if found:
            each = [
                f"{op} ({names[0]!r}{f' and {len(names) - 1} more' if len(names) > 1 else ''})"
                for op, names in sorted(found.items())
            ]
            raise NotFoundError(
                f"the graph has operations of {len(found)} types that Headrace does not have: "
                f"{listing(each, 40)}"
            )

    def call(self, function: Any, arguments: Sequence[Any], name: str) -> list[Any]:
        """Build what a function holds in the graph that is built, and return its results."""
        called = function if isinstance(function, str) else function.name
        definition = self.library.get(called)
        if definition is None:
            raise DocumentError(f"the graph has no function {shown(called)}")
        if called in self._calls or len(self._calls) >= _MAX_CALLS:
            raise DocumentError(f"the function {shown(called)} calls itself, or calls too deeply")
        names = [argument.name for argument in definition.signature.input_arg]
        if len(names) != len(arguments):
            raise DocumentError(
                f"the function {shown(called)} takes {len(names)} arguments, got {len(arguments)}"
            )
        self._calls.append(called)
        try:
            body = Body(_linked(definition.node_def), names)
            scope = _Scope(self, body, dict(zip(names, arguments, strict=True)), (), name, True)
            scope.build(body.needed_for(body.order, ()))
            results = [
                scope.value(_named(definition.ret[output.name]))
                for output in definition.signature.output_arg
            ]
            effects = [
                operation
                for control in definition.control_ret.values()
                for operation in scope.operations(control)
            ]
        finally:
            self._calls.pop()
        if not effects:
            return results
        with hr.control_dependencies(effects):
            return [hr.identity(r) if isinstance(r, Tensor) else r for r in results]


@final
class _Scope:
    """What stands for nodes in one graph: that of the program, or the inside of a loop."""

    def __init__(
        self,
        reader: TensorFlowReader,
        body: Body,
        given: Mapping[str, Any],
        path: Path,
        prefix: str = "",
        inner: bool = False,
        outer: _Scope | None = None,
    ) -> None:
        self.reader = reader
        self.body = body
        self.path = path
        self.prefix = prefix
        # Names of nodes inside of loops and functions are no names of the program's graph.
        self.inner = inner
        self.outer = outer
        self.results: dict[str, list[Any]] = {name: [value] for name, value in given.items()}
        self.made: dict[str, list[Operation]] = {}

    def inside(self, path: Path, values: Mapping[str, list[Any]]) -> _Scope:
        """Return a scope for the inside of a loop, where some nodes have values already."""
        scope = _Scope(self.reader, self.body, {}, path, self.prefix, True, self)
        scope.results.update(values)
        return scope

    def build(self, names: Iterable[str]) -> None:
        """Build nodes, in order."""
        for name in names:
            if name in self.results:
                continue
            node = self.body.nodes[name]
            try:
                self.add(name)
            except HeadraceError as error:
                if isinstance(error, GraphError) or getattr(error, "of_node", False):
                    raise
                found = AttributeValueError(f"{node.op} {name!r}: {error}")
                found.of_node = True  # type: ignore[attr-defined]
                raise found from error

    def value(self, source: tuple[str, str, int]) -> Any:
        """Return what stands for an input."""
        name, output, index = source
        scope: _Scope | None = self
        while scope is not None and name not in scope.results:
            scope = scope.outer
        if scope is None:
            raise GraphError(f"node {name!r} is not built where it is used")
        results = scope.results[name]
        node = self.body.nodes.get(name)
        row = self.reader.rows.get(node.op) if node is not None else None
        if output and row is not None and output in row.outputs:
            if node is not None and node.op in _GROUPED and len(results) != len(row.outputs):
                raise DocumentError(
                    f"{name!r} of {node.op} has lists of outputs, which functions cannot name yet; "
                    "inline the function, or build the node outside of it"
                )
            index += row.outputs.index(output)
        elif output and node is not None and node.op in self.reader.library:
            arguments = self.reader.library[node.op].signature.output_arg
            index += [argument.name for argument in arguments].index(output)
        if index >= len(results) or results[index] is None:
            count = len(results)
            raise DocumentError(f"{name!r} has {count} outputs, there is no '{name}:{index}'")
        return results[index]

    def operations(self, name: str) -> list[Operation]:
        """Return the operations for which to wait in order to wait for a node."""
        scope: _Scope | None = self
        graph = hr.get_default_graph()
        while scope is not None:
            if name in scope.made:
                return [op for op in scope.made[name] if op.graph is graph]
            if name in scope.results:
                return []
            scope = scope.outer
        return []

    # -- one node

    def add(self, name: str) -> None:
        """Build one node, what it depends on being there."""
        linked = self.body.nodes[name]
        message = linked.message
        controls = [op for other in linked.controls for op in self.operations(other)]
        if linked.op in ENTER:
            self._enter(name, linked, controls)
            return
        if linked.op in EXIT:
            self._exit(linked)
            return
        node = Node(
            message,
            [self.value(source) for source in linked.inputs],
            lambda function, arguments: self.reader.call(function, arguments, f"{full}/"),
            not self.inner,
        )
        full = self.prefix + name
        graph = hr.get_default_graph()
        first = graph.version
        with ExitStack() as scopes:
            scopes.enter_context(hr.name_scope(f"{full}/"))
            scopes.enter_context(hr.control_dependencies(controls))
            if message.device:
                scopes.enter_context(hr.device(message.device))
            self._colocate(scopes, message)
            if linked.op in self.reader.library:
                found = node.call(linked.op, node.inputs)
            else:
                row = self.reader.rows.get(linked.op)
                assert row is not None
                found = _listed(_translated(row.function, node))
                node.check_asked(row.ignored)
                self.reader.outputs.add(len(found))
            self.results[name] = self._named(found, full, first, message)
        tensors = [_tensor(value) for value in self.results[name]]
        made = [tensor.op for tensor in tensors if tensor is not None]
        made += [item for item in found if isinstance(item, Operation)]
        self.made[name] = list(dict.fromkeys(made))

    def _enter(self, name: str, linked: Linked, controls: list[Operation]) -> None:
        value = self.value(linked.inputs[0])
        if controls and isinstance(value, Tensor):
            with hr.control_dependencies(controls):
                value = hr.identity(value)
        self.results[name] = [value]

    def _exit(self, linked: Linked) -> None:
        switch = linked.inputs[0][0]
        loop = next(lo for lo in self.body.loops.values() if switch in lo.switches)
        build_loop(self, loop)
        for name, node in self.body.nodes.items():
            if node.op in EXIT and node.inputs[0][0] in loop.switches:
                at = loop.switches[node.inputs[0][0]]
                value = self.results[loop.merges[at]][0]
                if not self.inner and isinstance(value, Tensor):
                    first = hr.get_default_graph().version
                    value = self._named([hr.identity(value)], self.prefix + name, first, None)[0]
                self.results[name] = [value]
                self.made[name] = [value.op] if isinstance(value, Tensor) else []

    def _colocate(self, scopes: ExitStack, message: Any) -> None:
        if "_class" not in message.attr:
            return
        for item in message.attr["_class"].list.s:
            for other in self.operations(item.decode("utf-8", "replace").removeprefix("loc:@")):
                scopes.enter_context(hr.colocate_with(other))

    def _named(self, found: list[Any], name: str, first: int, message: Any) -> list[Any]:
        """Let an operation have the name of the node, with its outputs in order."""
        graph = hr.get_default_graph()
        if not found:
            return found
        if isinstance(found[0], Operation):
            if not self.inner:
                graph.rename(found[0], name, first)
            return []
        tensors = [_tensor(value) for value in found]
        if message is not None and "_output_shapes" in message.attr:
            _sharpen(tensors, message.attr["_output_shapes"].list.shape)
        if self.inner or any(tensor is None for tensor in tensors):
            return found
        op = tensors[0].op  # type: ignore[union-attr]
        whole = [tensor is output for tensor, output in zip(tensors, op.outputs, strict=False)]
        if all(whole) and len(op.outputs) == len(found) and op.index >= first:
            graph.rename(op, name, first)
            return found
        if not all(isinstance(value, Tensor) for value in found):
            return found
        made = [hr.identity(found[0])] if len(found) == 1 else list(hr.identity_n(found))
        graph.rename(made[0].op, name, first)
        return made


def build_node(message: Any, inputs: Sequence[Any]) -> list[Any] | Operation:
    """Build a single node in the default graph.

    Args:
        message: The ``NodeDef``, whose op has a translation, with the full name of the operation.
        inputs: What stands for its inputs, in order.

    Returns:
        What stands for its outputs; the operation where it has none.

    Raises:
        AttributeValueError: if the node is not what its op takes.
    """
    names = [f"{message.name}/{index}" for index in range(len(inputs))]
    linked = Linked(message, [(name, "", 0) for name in names], [])
    body = Body({message.name: linked}, names)
    scope = _Scope(TensorFlowReader(), body, dict(zip(names, inputs, strict=True)), ())
    try:
        scope.add(message.name)
    except DocumentError as error:
        raise AttributeValueError(f"{message.op} {message.name!r}: {error}") from error
    results = scope.results[message.name]
    return results or scope.made[message.name][0]


def _translated(function: Callable[[Any], Any], node: Node) -> Any:
    """Call a translation; what it meets in a damaged node is no fault of the program."""
    try:
        return function(node)
    except HeadraceError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, AssertionError) as error:
        raise DocumentError(
            f"its {len(node.inputs)} inputs or its attributes are not what the op takes in "
            f"TensorFlow 1.15: {error}"
        ) from error


def _listed(found: Any) -> list[Any]:
    if found is None:
        return []
    return list(found) if isinstance(found, list | tuple) else [found]


def _tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Reference):
        return value.handle if value.written is None else value.written
    handle = getattr(value, "handle", None)
    return handle if isinstance(handle, Tensor) else None


def _sharpen(tensors: Sequence[Tensor | None], shapes: Any) -> None:
    if len(shapes) != len(tensors):
        return
    for tensor, shape in zip(tensors, shapes, strict=True):
        plain = tensor is not None and tensor.dtype.kind not in ("resource", "list")
        known = shape_of(shape)
        if plain and tensor is not None and tensor.spec.shape.is_compatible_with(known):
            tensor.set_shape(known)


def _linked(nodes: Iterable[Any]) -> dict[str, Linked]:
    found: dict[str, Linked] = {}
    for message in nodes:
        if not message.name or message.name in found:
            raise GraphError(f"two nodes have the name {shown(message.name)}")
        inputs = [_named(text) for text in message.input if not text.startswith("^")]
        controls = [text[1:] for text in message.input if text.startswith("^")]
        found[message.name] = Linked(message, inputs, controls)
    return found


def _named(text: str) -> tuple[str, str, int]:
    match = _INPUT.fullmatch(text)
    if match is None:
        raise GraphError(f"{shown(text)} is no input of a node")
    return match[1], match[2] or "", int(match[3] or 0)
