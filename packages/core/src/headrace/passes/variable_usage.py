"""Which variables that it shares with other steps a step reads and writes."""

from __future__ import annotations

from collections.abc import Container, Iterable

from headrace.graph.function import functions_in
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.passes.races import origin_of
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """What a step does with variables.

    Attributes:
        reads: Whether it reads some.
        changes: Whether it changes some.
        concerted: An operation that goes on only together with steps of other sessions, None if
            there is none.
    """

    reads: bool = False
    changes: bool = False
    concerted: Operation | None = None


def usage_of(graph: Graph, private: Container[str] = ()) -> Usage:
    """Return what the operations of a step, and of functions that it runs, do with variables.

    Args:
        graph: The graph of the step.
        private: Names of the handles of variables that only one session uses; they do not count.
    """
    reads = changes = False
    concerted: Operation | None = None
    places: Iterable[Graph] = (graph, *functions_in(graph))
    for place in places:
        for op in place.operations:
            schema = op.schema
            if not schema.effects:
                continue
            if schema.concerted:
                concerted = op
            elif not (reads and changes) and _shares(op, place, private):
                reads = reads or "reads" in schema.effects
                changes = changes or schema.changes
    return Usage(reads, changes, concerted)


def _shares(op: Operation, place: Graph, private: Container[str]) -> bool:
    """Whether an operation takes the handle of a variable that several sessions may use."""
    for tensor in op.inputs:
        # Of all resources, variables tell what they hold.
        if tensor.dtype.kind == "resource" and tensor.spec.content is not None:
            origin = origin_of(tensor, place)
            if origin is None or origin.name not in private:
                return True
    return False
