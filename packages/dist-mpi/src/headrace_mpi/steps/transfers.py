"""Which values of a step cross from one rank to another, and under which numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from headrace import Graph
from headrace.extend.devices import DeviceName
from headrace.extend.graphs import functions_in
from headrace_mpi.steps.rendezvous import NumberedEdge, Routes


def fetched_edges(graphs: Iterable[Graph], routes: Routes) -> Iterator[int]:
    """Return the numbers of the edges whose values are fetched as they come."""
    for graph in graphs:
        for op in graph.operations:
            source = op.inputs[0].op if op.type == "Fetch" else None
            if source is not None and source.type == "Recv":
                edge = tuple(source.attrs[k] for k in ("edge", "source", "destination"))
                if edge in routes.incoming:
                    yield routes.incoming[edge]


def numbered_transfers(
    partitions: Mapping[DeviceName, Graph], rank_of: Callable[[DeviceName], int]
) -> list[NumberedEdge]:
    """Number the transfers of a step that cross ranks, also those inside functions."""
    edges: list[NumberedEdge] = []
    bundles: dict[tuple[object, ...], int] = {}
    # All that runs once in the step, and each function: what a loop sends, it sends in each round.
    places = [(None, graph) for graph in partitions.values()]
    functions = dict.fromkeys(f for graph in partitions.values() for f in functions_in(graph))
    for place, graph in (*places, *((function, function) for function in functions)):
        for op in graph.operations:
            if op.type != "Send":
                continue
            source, destination = op.attrs["source"], op.attrs["destination"]
            ends = (rank_of(DeviceName.parse(source)), rank_of(DeviceName.parse(destination)))
            if ends[0] == ends[1]:
                continue
            bundle = 0
            if op.attrs["round"]:
                key = (place, *ends, op.attrs["round"], op.attrs["sources"])
                bundle = bundles.setdefault(key, len(bundles) + 1)
            edges.append((len(edges) + 1, op.attrs["edge"], source, destination, bundle))
    return edges
