"""From the working form back to a graph."""

from __future__ import annotations

from operator import attrgetter

from headrace.graph.graph import Graph, append_operation
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.simplify.workgraph import Node, Value, WorkGraph
from headrace.passes.step_graph import StepGraph
from headrace.topological_sort import in_order


def emit(work: WorkGraph) -> StepGraph:
    """Return the step that the working form stands for, on a new graph.

    Nodes keep the order of the step as far as what they depend on lets them. A new node has the
    name of the one that it replaces where that is gone, or one inside its name scope.
    """
    nodes = _in_order(_needed(work))
    names = _names(nodes)
    graph = Graph()
    made: dict[Node, Operation] = {}
    for node, name in zip(nodes, names, strict=True):
        made[node] = append_operation(
            graph,
            node.schema,
            name,
            tuple([made[v.node].outputs[v.slot] for v in node.inputs]),
            node.arity,
            tuple(dict.fromkeys([made[c] for c in node.controls])) if node.controls else (),
            node.attrs,
            node.device,
            tuple([made[c] for c in node.colocated if c in made]) if node.colocated else (),
            node.site,
            node.origin,
            node.specs,
            node.gradient_rule,
        )

    def tensor(value: Value) -> Tensor:
        return made[value.node].outputs[value.slot]

    return StepGraph(
        graph,
        tuple(map(tensor, work.feeds)),
        tuple(map(tensor, work.fetches)),
        tuple(made[node] for node in work.targets),
    )


def _needed(work: WorkGraph) -> set[Node]:
    """Return what fetches, targets, feeds and effects need."""
    waiting = [v.node for v in (*work.fetches, *work.feeds)] + work.targets
    waiting += [node for node in work.of.values() if node.alive and node.fixed]
    needed: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting.extend(v.node for v in node.inputs)
            waiting.extend(node.controls)
    return needed


def _in_order(nodes: set[Node]) -> list[Node]:
    """Return nodes after all that they depend on, otherwise in the order of the step."""
    ordered = sorted(nodes, key=attrgetter("order"))
    seen: set[Node] = set()
    for node in ordered:
        if any(v.node not in seen for v in node.inputs) or not seen.issuperset(node.controls):
            break
        seen.add(node)
    else:
        return ordered
    # New nodes come to stand before what they depend on.
    return in_order(
        ordered,
        lambda node: [*(v.node for v in node.inputs), *node.controls],
        key=lambda node: node.order,
    )


def _names(nodes: list[Node]) -> list[str]:
    """Return a name for each node; the step's own keep theirs."""
    taken = {node.name for node in nodes if not node.order[1]}
    names = []
    # Of several new nodes for one, the last computes its output and bears its name.
    for node in reversed(nodes):
        name = node.name
        if node.order[1]:
            name = _unique(node.name, node.type, taken)
            taken.add(name)
        names.append(name)
    return names[::-1]


def _unique(name: str, type_name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate in taken:
        candidate = f"{name}/{type_name}" + (f"_{count}" if count else "")
        count += 1
    return candidate
