"""Nodes of written graphs: what reaches them, where they run, what shape they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import headrace as hr
from headrace import Graph, Operation, TensorShape
from headrace.errors import ArgumentTypeError, MissingNodeError, listing, shown
from headrace.extend.arguments import items
from headrace_io import protos
from headrace_io.dtype_protos import number_of
from headrace_io.graph_import.importing import as_graph_def, read_graph_def

_INT32, _STRING = number_of(hr.int32), number_of(hr.string)


def on_graphs(graph: Any, change: Callable[[Any], Any]) -> Any:
    """Change a message, or a graph by way of its message.

    Args:
        graph: A ``GraphDef``, or a ``Graph``.
        change: From a ``GraphDef`` to another one.

    Returns:
        A message for a message, a new graph for a graph.

    Raises:
        ArgumentTypeError: if it is neither.
    """
    if isinstance(graph, Graph):
        return read_graph_def(change(graph.as_graph_def()))
    return change(as_graph_def(graph, "graph_def"))


def node_name(text: str) -> str:
    """Return the node that an input names."""
    return text[1:] if text.startswith("^") else text.partition(":")[0]


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether TensorFlow would place an operation on a CPU whatever else there is.

    Headrace's placement does not ask it: ops state which inputs are wanted on the host.

    Args:
        node: An operation, or a ``NodeDef``.
        pin_variables_on_cpu: Whether operations on variables count.

    Raises:
        ArgumentTypeError: if ``node`` is neither.
    """
    message = node.node_def if isinstance(node, Operation) else node
    if type(message).__name__ != "NodeDef" or not hasattr(message, "attr"):
        raise ArgumentTypeError(f"node must be an Operation or a NodeDef, got {shown(node)}")
    if pin_variables_on_cpu and _is_of_variables(message.op):
        return True
    if message.op == "Const":
        return message.attr["dtype"].type in (_INT32, _STRING)
    if message.op in ("DynamicStitch", "ParallelDynamicStitch"):
        return bool(message.attr["T"].type == _INT32)
    if message.op == "Cast":
        return bool(message.attr["SrcT"].type == _INT32)
    return False


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """Return what operations need, in the order of the graph.

    Args:
        graph_def: A ``GraphDef``, or a ``Graph``.
        dest_nodes: The names of the operations.

    Returns:
        A ``GraphDef``, or a new ``Graph`` where one was given.

    Raises:
        ArgumentTypeError: if an argument is of the wrong type.
        MissingNodeError: if the graph has no such operations.
    """
    if isinstance(dest_nodes, str) or not all(isinstance(name, str) for name in dest_nodes):
        raise ArgumentTypeError(f"dest_nodes must be a list of names, got {shown(dest_nodes)}")
    return on_graphs(
        graph_def, lambda message: _extracted(message, items(dest_nodes, "dest_nodes"))
    )


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """Return the shape of the tensor that an input of a ``NodeDef`` names.

    Args:
        graph: The graph.
        input_name: A name such as ``"x"`` or ``"x:1"``.

    Raises:
        GraphError: if the graph has no such tensor.
    """
    full = input_name if ":" in input_name else f"{input_name}:0"
    found: TensorShape = graph.get_tensor_by_name(full).shape
    return found


def without(message: Any, names: Iterable[str]) -> Any:
    """Return a ``GraphDef`` without some of its nodes."""
    dropped = set(names)
    made = protos.GraphDef()
    for part in ("versions", "library"):
        # Asked for, an empty one would be there.
        if message.HasField(part):
            getattr(made, part).CopyFrom(getattr(message, part))
    for node in message.node:
        if node.name not in dropped:
            made.node.add().CopyFrom(node)
    return made


def _extracted(message: Any, wanted: list[str]) -> Any:
    needs = {
        node.name: [node_name(text) for text in node.input] + _colocated(node)
        for node in message.node
    }
    missing = [repr(name) for name in wanted if name not in needs]
    if missing:
        raise MissingNodeError(f"the graph has no {listing(missing)}")
    kept: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in needs and name not in kept:
            kept.add(name)
            waiting.extend(needs[name])
    return without(message, needs.keys() - kept)


def _colocated(node: Any) -> list[str]:
    if "_class" not in node.attr:
        return []
    places = [item.decode() for item in node.attr["_class"].list.s]
    return [place.removeprefix("loc:@") for place in places if place.startswith("loc:@")]


def _is_of_variables(op: str) -> bool:
    """Whether an op makes or changes a variable, or is one of two that TensorFlow counts, too."""
    ours = op.endswith("Variable") or op == "VarHandle"
    updates = op.startswith(("Assign", "Scatter")) and not op.startswith("ScatterNd")
    return ours or updates or op in ("Queue", "TruncatedNormal", "VariableV2")
