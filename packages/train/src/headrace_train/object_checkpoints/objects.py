"""The objects of a program that hold variables, and how one gets from one to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import headrace as hr
from headrace import Variable
from headrace_io import protos
from headrace_train.optimizers import Optimizer
from headrace_train.tracked import Tracked

# Under which the value of a variable stands in a checkpoint, after the path to it.
VALUE = "VARIABLE_VALUE"
# The tensor that holds the objects themselves.
GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


@final
@dataclass(slots=True)
class Node:
    """An object.

    Attributes:
        found: The object.
        path: The attributes that lead to it from the root.
        children: The numbers of the objects that it holds, by attribute.
        slots: Of an optimizer: the number of a variable, the name of a slot, and its number.
    """

    found: Any
    path: str
    children: dict[str, int] = field(default_factory=dict)
    slots: list[tuple[int, str, int]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The name of its value in a checkpoint."""
        return f"{self.path}/.ATTRIBUTES/{VALUE}"


def is_tracked(value: Any) -> bool:
    """Return whether a value is an object that checkpoints know."""
    cells_and_layers = hr.nn.rnn_cell.RNNCell | hr.layers.Layer
    return isinstance(value, Variable | Optimizer | Tracked | cells_and_layers)


def objects_in(value: Any) -> dict[str, Any]:
    """Return the objects that an object holds, by the names of its attributes."""
    if isinstance(value, Variable):
        return {}
    if isinstance(value, Tracked):
        return value._tracked()  # noqa: SLF001 - its own package's protocol
    if isinstance(value, Optimizer):
        return dict(value.shared_state())
    if isinstance(value, list | tuple):
        return {str(place): item for place, item in enumerate(value) if _holds(item)}
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items() if _holds(item)}
    if isinstance(value, hr.nn.rnn_cell.RNNCell):
        return _parts_of_cell(value)
    # What is not public and in lists is a layer's bookkeeping.
    return {
        name: item
        for name, item in vars(value).items()
        if _holds(item) and (is_tracked(item) or not name.startswith("_"))
    }


def _parts_of_cell(cell: Any) -> dict[str, Any]:
    """Return the cells in a cell, or else its variables, by their names in its scope."""
    held = vars(cell)
    if isinstance(held.get("_cells"), list | tuple):
        return {f"cell-{place}": one for place, one in enumerate(held["_cells"])}
    if is_tracked(held.get("_cell")):
        return {"cell": held["_cell"]}
    own = {name: item for name, item in held.items() if is_tracked(item)}
    scope = getattr(held.get("_scope"), "name", "")
    prefix = f"{scope}/" if scope else ""
    weights = cell.variables
    return {**{v.op_name.removeprefix(prefix): v for v in weights}, **own}


def _holds(value: Any) -> bool:
    """Return whether a value is an object, or a container that has one."""
    if isinstance(value, list | tuple):
        return any(map(_holds, value))
    if isinstance(value, dict):
        return any(map(_holds, value.values()))
    return is_tracked(value)


def objects_of(root: Any) -> list[Node]:
    """Return all objects that one gets to from an object, those that are nearest first.

    What optimizers keep for the variables among them comes last.
    """
    nodes = [Node(root, "")]
    numbers = {id(root): 0}
    for node in nodes:
        for name, child in objects_in(node.found).items():
            number = numbers.get(id(child))
            if number is None:
                number = numbers[id(child)] = len(nodes)
                nodes.append(Node(child, _joined(node.path, _escaped(name))))
            node.children[name] = number
    for node, variable, name, slot in list(_slots(nodes)):
        number = numbers.get(id(slot))
        if number is None:
            number = numbers[id(slot)] = len(nodes)
            start = f"{nodes[variable].path}/.OPTIMIZER_SLOT/{node.path}"
            nodes.append(Node(slot, f"{start}/{_escaped(name)}"))
        node.slots.append((variable, name, number))
    return nodes


def _slots(nodes: list[Node]) -> Iterator[tuple[Node, int, str, Variable]]:
    variables = [
        (i, node.found) for i, node in enumerate(nodes) if isinstance(node.found, Variable)
    ]
    for node in list(nodes):
        # One that holds another has that one's slots, which are found with it.
        if not isinstance(node.found, Optimizer) or isinstance(node.found, Tracked):
            continue
        for name in node.found.get_slot_names():
            for number, variable in variables:
                slot = node.found.get_slot(variable, name)
                if slot is not None:
                    yield node, number, name, slot


def values_of(nodes: list[Node]) -> dict[str, Variable]:
    """Return the variables among objects, by the names of their values in a checkpoint."""
    return {node.key: node.found for node in nodes if isinstance(node.found, Variable)}


def as_message(nodes: list[Node]) -> Any:
    """Return objects as a ``TrackableObjectGraph``."""
    message = protos.TrackableObjectGraph()
    for node in nodes:
        made = message.nodes.add()
        for name, number in node.children.items():
            made.children.add(node_id=number, local_name=name)
        if isinstance(node.found, Variable):
            made.attributes.add(name=VALUE, full_name=node.found.op_name, checkpoint_key=node.key)
        for variable, name, slot in node.slots:
            made.slot_variables.add(
                original_variable_node_id=variable, slot_name=name, slot_variable_node_id=slot
            )
    return message


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _escaped(name: str) -> str:
    """Return a name without slashes, for a path."""
    return name.replace(".", "..").replace("/", ".S")
