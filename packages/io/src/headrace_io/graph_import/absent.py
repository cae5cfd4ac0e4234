"""Nodes that a ``GraphDef`` refers to but lacks: placeholders stand for them while it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import headrace as hr
from headrace import Graph, Operation, Tensor
from headrace_io import protos

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*")


@final
@dataclass(frozen=True, slots=True)
class Filled:
    """A graph that lacks nothing.

    Attributes:
        definition: The ``GraphDef``.
        input_map: What is given for its tensors, by their names in it.
        names: The names of placeholders, by the node and output for which each stands.
    """

    definition: Any
    input_map: Mapping[Any, Any]
    names: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def placeholders(self, source: Graph) -> list[Operation]:
        """Return the placeholders in the graph that was read."""
        return [source.get_operation_by_name(name) for name in self.names.values()]

    def called(self, name: str) -> str:
        """Return what an element of the message is called in its graph."""
        place = _place(name)
        stand_in = None if place is None else self.names.get(place)
        if stand_in is None:
            return name
        return f"{stand_in}:0" if ":" in name else stand_in


def filled(definition: Any, input_map: Mapping[Any, Any] | None) -> Filled:
    """Return a graph with placeholders for what it takes, does not have, and is given.

    Args:
        definition: A ``GraphDef``, which stays as it is.
        input_map: What is given, by names of tensors.
    """
    if not input_map:
        return Filled(definition, {})
    present = {node.name for node in definition.node}
    given = {}
    for key, value in input_map.items():
        place = _place(key.decode(errors="replace") if isinstance(key, bytes) else key)
        if place is not None and place[0] not in present:
            given[place] = key, value
    if not given:
        return Filled(definition, input_map)
    made = protos.GraphDef()
    made.CopyFrom(definition)
    names: dict[tuple[str, int], str] = {}
    for node in made.node:
        for i, text in enumerate(node.input):
            place = _place(text)
            if place is not None and place in given:
                name = names.setdefault(place, _own_name(place, present | set(names.values())))
                node.input[i] = name
    bound = dict(input_map)
    for place, name in names.items():
        key, value = given[place]
        tensor = value if isinstance(value, Tensor) else hr.convert_to_tensor(value)
        del bound[key]
        bound[name] = tensor
        node = made.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = tensor.dtype.as_datatype_enum
        node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    return Filled(made, bound, names)


def _place(name: Any) -> tuple[str, int] | None:
    """Return the node and output that the name of an input tells; None of what is waited for."""
    if not isinstance(name, str) or name.startswith("^"):
        return None
    node, _, index = name.partition(":")
    return (node, int(index or 0)) if not index or index.isdecimal() else None


def _own_name(place: tuple[str, int], taken: set[str]) -> str:
    """Return a name that a placeholder can have: the node's, for its first output."""
    node, index = place
    if index == 0 and _NAME.fullmatch(node) and node not in taken:
        return node
    number = 0
    while (name := f"absent_{number}") in taken:
        number += 1
    return name
