"""Comparing graphs as messages."""

from __future__ import annotations

from typing import Any

from headrace.errors import ArgumentTypeError, shown
from headrace_io import protos


def assert_equal_graph_def(
    actual: Any,
    expected: Any,
    checkpoint_v2: bool = False,
    hash_table_shared_name: bool = False,
) -> None:
    """Fail unless two graphs have equal nodes, in whatever order, and control inputs likewise.

    Args:
        actual: A ``GraphDef``.
        expected: The one that it should be.
        checkpoint_v2: Whether values of names of checkpoints may differ.
        hash_table_shared_name: Whether names of hash tables may differ.

    Raises:
        ArgumentTypeError: if one is no ``GraphDef``.
        AssertionError: if they differ.
    """
    for what, message in (("actual", actual), ("expected", expected)):
        if not isinstance(message, protos.GraphDef):
            raise ArgumentTypeError(f"Expected tf.GraphDef for {what}, got {shown(message)}")
    found = _nodes(actual, checkpoint_v2, hash_table_shared_name)
    wanted = _nodes(expected, checkpoint_v2, hash_table_shared_name)
    for name in sorted(found.keys() ^ wanted.keys()):
        assert name in wanted, f"the node {name!r} is not expected"
        raise AssertionError(f"the node {name!r} is missing")
    for name, node in found.items():
        assert node == wanted[name], f"nodes differ:\n{node}\nexpected\n{wanted[name]}"


def _nodes(graph: Any, checkpoint: bool, tables: bool) -> dict[str, Any]:
    """Return copies of the nodes by name, their control inputs in order."""
    nodes = {}
    for node in graph.node:
        copy = type(node)()
        copy.CopyFrom(node)
        data = [name for name in node.input if not name.startswith("^")]
        waits = sorted(name for name in node.input if name.startswith("^"))
        copy.input[:] = data + waits
        if checkpoint and copy.op == "Const" and "save" in copy.name.lower():
            copy.attr["value"].Clear()
        if tables and "HashTable" in copy.op and "shared_name" in copy.attr:
            del copy.attr["shared_name"]
        nodes[copy.name] = copy
    return nodes
