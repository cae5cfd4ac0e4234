"""Writing a graph as a ``GraphDef`` of TensorFlow's ops."""

from __future__ import annotations

from typing import Any

from headrace import GRAPH_DEF_VERSION, Graph, Operation, Tensor
from headrace.errors import UnimplementedError, listing
from headrace_io import protos
from headrace_io.graph_export.node import ExportedNode


def written(graph: Graph) -> Any:
    """Return all operations of a graph as a ``GraphDef`` of TensorFlow's ops.

    Raises:
        UnimplementedError: as ``convert_to_tensorflow``.
    """
    # lazy: programs that write no such graph need no table
    from headrace_io.graph_export.table import RULES

    unknown = [op for op in graph.operations if op.type not in RULES]
    if unknown:
        held = any(op.type == "VarHandle" for op in unknown)
        hint = "; pass a session, whose values take the places of the variables" if held else ""
        raise UnimplementedError(
            f"no rule writes {listing([f'{op.type} {op.name!r}' for op in unknown])} as "
            "TensorFlow's operations; leave them out of the graph, or compute what they do with "
            f"other operations{hint}"
        )
    made = protos.GraphDef()
    made.versions.producer = GRAPH_DEF_VERSION
    taken = {op.name for op in graph.operations}
    names: dict[Tensor, str] = {}
    for op in graph.operations:
        before = len(made.node)
        node = ExportedNode(op, [names[tensor] for tensor in op.inputs], made, taken)
        found = RULES[op.type](node)
        outputs = [found] if isinstance(found, str) else list(found)
        names.update(zip(op.outputs, outputs, strict=True))
        waits = [f"^{other.name}" for other in _waits(op)]
        for part in made.node[before:]:
            part.input.extend(waits)
    return made


def _waits(op: Operation) -> list[Operation]:
    taken = {tensor.op for tensor in op.inputs}
    return [other for other in op.control_inputs if other not in taken]
