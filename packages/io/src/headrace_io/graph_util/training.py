"""Leaving out of a graph what only training needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.extend.arguments import items
from headrace_io.graph_util.nodes import node_name, on_graphs, without


def remove_training_nodes(input_graph: Any, protected_nodes: Iterable[str] | None = None) -> Any:
    """Return a graph without ``CheckNumerics``, and without ``Identity`` that does nothing.

    An identity stays where it waits for something, or something waits for it. What took a removed
    node takes what that took; name the outputs of the graph among ``protected_nodes``.

    Args:
        input_graph: A ``GraphDef``, or a ``Graph``.
        protected_nodes: Names of nodes that stay.

    Returns:
        A ``GraphDef``, or a new ``Graph`` where one was given.

    Raises:
        ArgumentTypeError: if ``input_graph`` is neither.
    """
    kept = set(items(protected_nodes or (), "protected_nodes"))
    return on_graphs(input_graph, lambda message: _spliced(message, kept))


def _spliced(message: Any, kept: set[str]) -> Any:
    checks = {n.name for n in message.node if n.op == "CheckNumerics" and n.name not in kept}
    waited_for = {
        text[1:]
        for node in message.node
        if node.name not in checks
        for text in node.input
        if text.startswith("^") and text[1:] not in checks
    }
    stands: dict[str, str] = {}
    for node in message.node:
        data = [text for text in node.input if not text.startswith("^")]
        waits = any(text.startswith("^") and text[1:] not in checks for text in node.input)
        idle = node.op == "Identity" and not waits and node.name not in kept | waited_for
        if node.name in checks or idle:
            stands[node.name] = data[0]
    made = without(message, stands)
    for node in made.node:
        left = [text for text in node.input if not (text[0] == "^" and text[1:] in checks)]
        inputs = [_standing(text, stands) for text in left]
        del node.input[:]
        node.input.extend(inputs)
        _leave_places(node, stands)
    return made


def _standing(text: str, stands: dict[str, str]) -> str:
    """Return what an input names once removed nodes are skipped."""
    seen = text
    while not seen.startswith("^") and node_name(seen) in stands:
        seen = stands[node_name(seen)]
    return seen


def _leave_places(node: Any, removed: dict[str, str]) -> None:
    """Forget places beside nodes that are gone."""
    if "_class" in node.attr:
        places = node.attr["_class"].list
        left = [p for p in places.s if p.decode().removeprefix("loc:@") not in removed]
        if left:
            del places.s[:]
            places.s.extend(left)
        else:
            del node.attr["_class"]
