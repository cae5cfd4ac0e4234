"""What is in the collections of a graph, as a manifest holds it."""

from __future__ import annotations

from typing import Any

from headrace.errors import SavedModelDamagedError
from headrace.graph.attributes import brief, is_integer
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.saved_model.manifest import decode_bytes, encode_text


def encode_collections(graph: Graph) -> dict[str, list[dict[str, Any]]]:
    """Return what is in the collections of a graph besides its variables.

    Variables stand in graph documents with the names of their collections. What is neither
    variable, tensor, operation, number nor text is left out.
    """
    found = {}
    for key in graph.get_all_collection_keys():
        items = [_encoded(item, graph) for item in graph.get_collection(key)]
        kept = [item for item in items if item is not None]
        if kept:
            found[key] = kept
    return found


def add_collections(graph: Graph, data: dict[str, list[dict[str, Any]]]) -> None:
    """Put into a graph's collections what a manifest says is in there.

    Raises:
        SavedModelDamagedError: if it says what could not be.
        GraphError: if it names what the graph does not have.
    """
    for key, items in data.items():
        for item in items:
            graph.add_to_collection(key, _decoded(graph, item))


def _encoded(item: Any, graph: Graph) -> dict[str, Any] | None:
    if isinstance(item, Tensor | Operation):
        kind = "tensor" if isinstance(item, Tensor) else "operation"
        return {kind: item.name} if item.graph is graph else None
    if isinstance(item, str | bytes):
        return dict(encode_text(item))
    if type(item) is int and is_integer(item):
        return {"int": item}
    # As text, for JSON has no infinity.
    return {"float": repr(item)} if type(item) is float else None


def _decoded(graph: Graph, item: dict[str, Any]) -> Any:
    if len(item) == 1:
        ((kind, value),) = item.items()
        if kind == "tensor" and isinstance(value, str):
            return graph.get_tensor_by_name(value)
        if kind == "operation" and isinstance(value, str):
            return graph.get_operation_by_name(value)
        if kind == "text" and isinstance(value, str):
            return value
        if kind == "bytes":
            return decode_bytes(value)
        if kind == "int" and is_integer(value):
            return value
        if kind == "float" and isinstance(value, str):
            return float(value)
    raise SavedModelDamagedError(f"no collection holds {brief(item)}")
