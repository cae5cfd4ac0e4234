"""Freezing graphs: variables replaced by constants of their values."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError, AttributeValueError, GraphError, shown
from headrace_io import protos
from headrace_io.graph_util.nodes import extract_sub_graph, node_name, on_graphs
from headrace_io.protos.pool import message_class
from headrace_io.tensor_protos import make_tensor_proto

if TYPE_CHECKING:
    from headrace import Session

_HANDLE = "VarHandle"
_READ = "ReadVariable"
_log = logging.getLogger("headrace.io")


def convert_variables_to_constants(
    sess: Session,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> Any:
    """Return what computes some operations, with constants in the places of variables.

    Reads of variables inside of conditions, loops and calls are replaced, too.

    Args:
        sess: A session in which the variables have values.
        input_graph_def: The graph as a ``GraphDef``, or a ``Graph``.
        output_node_names: The names of the operations.
        variable_names_whitelist: The names of the variables to replace; all if None.
        variable_names_blacklist: The names of variables that stay.

    Returns:
        A ``GraphDef``, or a new ``Graph`` where one was given.

    Raises:
        MissingNodeError: if the graph has no such operations.
        FailedPreconditionError: if a variable has no value.
        GraphError: if an operation does something else with a variable than read it.
    """
    if isinstance(output_node_names, str):
        raise ArgumentTypeError(
            f"output_node_names must be a list of names, got {shown(output_node_names)}"
        )

    def change(message: Any) -> Any:
        needed = extract_sub_graph(message, output_node_names)
        names = [
            node.name
            for node in needed.node
            if node.op == _HANDLE
            and (variable_names_whitelist is None or node.name in variable_names_whitelist)
            and node.name not in (variable_names_blacklist or ())
        ]
        values = sess.run({name: f"{name}:0" for name in names})
        _log.info("replaced %d variables by constants", len(values))
        return _Freezer(needed, values).frozen()

    return on_graphs(input_graph_def, change)


class _Freezer:
    """Replaces handles by constants, and reads of them by identities, also inside of functions."""

    def __init__(self, message: Any, values: dict[str, Any]) -> None:
        self.message = message
        self.values = values
        self.library = {f.signature.name: f for f in message.library.function}
        self.made: dict[tuple[str, frozenset[int]], Any] = {}

    def frozen(self) -> Any:
        """Return the graph without the variables."""
        made = protos.GraphDef()
        made.versions.CopyFrom(self.message.versions)
        dtypes = {
            node.name: node.attr["dtype"].type
            for node in self.message.node
            if node.name in self.values
        }
        for node in self.message.node:
            if node.name in self.values:
                made.node.add().CopyFrom(_constant(node, self.values[node.name]))
            else:
                made.node.add().CopyFrom(self._node(node, dtypes))
        kept = {f.signature.name for f in self.made.values()}
        for name, function in self.library.items():
            if name not in kept:
                made.library.function.add().CopyFrom(function)
        for function in self.made.values():
            made.library.function.add().CopyFrom(function)
        _drop_unused(made)
        return made

    def _node(self, node: Any, dtypes: dict[str, int]) -> Any:
        """Return a node that takes constants where it took handles."""
        data = [text for text in node.input if not text.startswith("^")]
        taken = [i for i, text in enumerate(data) if node_name(text) in dtypes]
        made = protos.NodeDef()
        made.CopyFrom(node)
        if not taken:
            return made
        if node.op == _READ:
            made.op = "Identity"
            made.attr["T"].type = dtypes[node_name(data[0])]
            return made
        held = [name for name, value in node.attr.items() if value.func.name]
        if not held:
            raise GraphError(
                f"{node.op} {node.name!r} does something else with the variable "
                f"{node_name(data[taken[0]])!r} than read it; leave that out of the graph"
            )
        numbers = {i: dtypes[node_name(data[i])] for i in taken}
        for name in held:
            function = self.library[node.attr[name].func.name]
            inside = {
                place: numbers[i]
                for place, i in enumerate(_arguments(node, name, len(data)))
                if i in numbers
            }
            if inside:
                made.attr[name].func.name = self._function(function, inside)
        return made

    def _function(self, function: Any, numbers: dict[int, int]) -> str:
        """Return the name of a function that takes values where it took handles."""
        key = (function.signature.name, frozenset(numbers))
        if key in self.made:
            found: str = self.made[key].signature.name
            return found
        made = message_class("FunctionDef")()
        made.CopyFrom(function)
        if any(name == key[0] for name, _ in self.made):
            made.signature.name = f"{key[0]}_{len(self.made)}"
        self.made[key] = made
        specs = json.loads(made.attr["_parameters"].s)
        dtypes = {}
        for place, number in numbers.items():
            content = specs[place]["spec"][2]
            specs[place] = {"spec": content}
            made.signature.input_arg[place].type = number
            dtypes[made.signature.input_arg[place].name] = number
        made.attr["_parameters"].s = json.dumps(specs, separators=(",", ":")).encode()
        nodes = [self._node(node, dtypes) for node in function.node_def]
        del made.node_def[:]
        made.node_def.extend(nodes)
        if any(node_name(text) in dtypes for text in function.ret.values()):
            raise GraphError(
                f"the function {key[0]!r} returns a variable; leave that out of the graph"
            )
        name: str = made.signature.name
        return name


def _arguments(node: Any, attribute: str, inputs: int) -> list[int]:
    """Return which input of a node each argument of a function that it holds is.

    Raises:
        AttributeValueError: if it is no operation of which that is known.
    """
    arity = list(node.attr["_arity"].list.i)
    if node.op == "If" and len(arity) == 3:
        first = 1 if attribute == "then_branch" else 1 + arity[1]
        return list(range(first, first + arity[1 if attribute == "then_branch" else 2]))
    if node.op == "While" and len(arity) == 3:
        first = arity[0] if attribute == "cond" else arity[0] + arity[1]
        more = arity[1 if attribute == "cond" else 2]
        return [*range(arity[0]), *range(first, first + more)]
    if node.op == "Call":
        return list(range(inputs))
    raise AttributeValueError(
        f"{node.op} {node.name!r} holds a function that takes variables, which cannot be replaced"
    )


def _constant(node: Any, value: Any) -> Any:
    made = protos.NodeDef(name=node.name, op="Const", device=node.device)
    made.attr["dtype"].type = node.attr["dtype"].type
    made.attr["value"].tensor.CopyFrom(make_tensor_proto(value))
    return made


def _drop_unused(message: Any) -> None:
    """Leave out functions that nothing holds any more."""
    library = {f.signature.name: f for f in message.library.function}
    used: set[str] = set()
    waiting = [value.func.name for node in message.node for value in node.attr.values()]
    while waiting:
        name = waiting.pop()
        if name in library and name not in used:
            used.add(name)
            nodes = library[name].node_def
            waiting.extend(value.func.name for node in nodes for value in node.attr.values())
    kept = [library[name] for name in library if name in used]
    del message.library.function[:]
    message.library.function.extend(kept)
