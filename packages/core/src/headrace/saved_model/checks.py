"""What a saved model must not hold, and what loading and serving it must not run."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import SavedModelDamagedError, SavedModelError, listing, told
from headrace.graph.function import functions_in, functions_of
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation


def check_no_python(graph: Graph, folder: object, *, exporting: bool) -> None:
    """Refuse a graph that calls Python functions.

    Raises:
        SavedModelError: if one is about to be exported.
        SavedModelDamagedError: if one was read.
    """
    found = [
        repr(op.name)
        for inside in (graph, *functions_in(graph))
        for op in inside.operations
        if op.schema.reaches == "python"
    ]
    if not found:
        return
    if exporting:
        raise SavedModelError(
            f"the graph calls Python functions, in {listing(found)}: they live in this process, "
            "and no saved model can hold them; build the graph for inference without hr.py_func"
        )
    raise SavedModelDamagedError(
        f"the saved model in {told(folder)} calls Python functions, in "
        f"{listing(found)}, which is refused"
    )


def check_harmless(ends: Iterable[Operation], what: str) -> None:
    """Refuse operations that write files, or need what does.

    Args:
        ends: The operations that would run.
        what: What they are for.

    Raises:
        SavedModelDamagedError: if they would write files.
    """
    seen: set[Operation] = set()
    waiting = list(ends)
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.schema.reaches == "files":
            raise SavedModelDamagedError(
                f"{what} would write files, in {op.type} {op.name!r}, which is refused; load the "
                "graph with hr.saved_model.load to run it yourself"
            )
        waiting.extend(tensor.op for tensor in op.inputs)
        waiting.extend(op.control_inputs)
        for function in functions_of(op):
            waiting.extend(function.operations)
