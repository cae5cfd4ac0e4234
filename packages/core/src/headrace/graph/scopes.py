"""Scopes: ``with`` blocks that say what applies to the operations made inside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from headrace.arguments import items
from headrace.errors import GraphError, NestingError, shown
from headrace.graph.context_blocks import read
from headrace.graph.graph import Graph
from headrace.graph.graph_scopes import DeviceRequest
from headrace.graph.graph_scopes import as_operation as as_operation
from headrace.graph.scope import SCOPE, Scope, entered
from headrace.graph.scope import use_graph as use_graph
from headrace.graph.tensor import Tensor


def current_scope() -> Scope:
    """Return the scope in force; the first call in a thread makes its default graph."""
    scope = read(SCOPE)
    if scope is None:
        scope = Scope(Graph())
        SCOPE.set(scope)
    return scope


def get_default_graph() -> Graph:
    """Return the graph to which operations are added now."""
    return current_scope().graph


def other_graph_of(tensors: Sequence[Any]) -> Graph | None:
    """Return the graph of a program to which all of some tensors belong, if not the default one.

    None where they belong to the default graph, to several graphs, or to that of a function, which
    takes in nothing of others; and where the default graph is a function's, which takes in theirs.

    Args:
        tensors: Tensors or operations, or None for what is plain data.
    """
    graph = current_scope().graph
    for tensor in tensors:
        if tensor is not None and tensor.graph is not graph:
            found: Graph = tensor.graph
            alike = all(t is None or t.graph is found for t in tensors)
            programs = graph.outermost is graph and found.outermost is found
            return found if alike and programs else None
    return None


def in_graph_of(tensors: Sequence[Any]) -> AbstractContextManager[Any]:
    """Build in the graph of tensors within the block, where it is another program's."""
    other = other_graph_of(tensors)
    return nullcontext() if other is None else use_graph(other)


def pass_over(*names: str) -> None:
    """Count names in the scope in force as used, where TensorFlow has operations of these names.

    What a program makes next is then called as it is there.
    """
    scope = current_scope()
    for name in names:
        scope.graph.unique_full_name(f"{scope.name}/{name}" if scope.name else name)


def reset_default_graph() -> None:
    """Replace this thread's default graph by a new, empty one.

    Raises:
        NestingError: inside a ``with graph.as_default()`` block.
    """
    scope = current_scope()
    if scope.graph.entered:
        raise NestingError(
            "reset_default_graph() inside a 'with graph' block; leave the block first"
        )
    SCOPE.set(Scope(Graph()))


@contextmanager
def inside(graph: Graph) -> Iterator[None]:
    """Build in the graph of a function, under the names, devices and rules now in force.

    Raises:
        GraphError: if functions are nested deeper than Python can call.
    """
    graph.entered += 1
    scope = replace(
        current_scope(), graph=graph, control_inputs=(), outer_waits=(), colocated_with=()
    )
    try:
        with entered(scope):
            yield
    except RecursionError:
        if _depth(graph) < _DEEP:
            # The program's own recursion, and not that of what it nests.
            raise
        raise GraphError(too_deep(f"{graph.described:.60}...'")) from None
    finally:
        graph.entered -= 1


# Who builds functions so deep within each other meets Python's own limit soon.
_DEEP = 20


def _depth(graph: Graph) -> int:
    """Return how many functions are around what is in a graph."""
    depth = 0
    while (outer := getattr(graph, "outer", None)) is not None:
        graph, depth = outer, depth + 1
    return depth


def too_deep(what: str) -> str:
    """Return the message about functions that are nested deeper than Python can call."""
    return (
        f"{what} is nested too deep: Python calls no deeper than {sys.getrecursionlimit()} "
        "functions; repeat with hr.while_loop instead of conditions and functions within each other"
    )


@contextmanager
def init_scope() -> Iterator[None]:
    """Build in the program's graph, outside of all functions, conditions and loops being traced.

    Control dependencies do not apply in the block.
    """
    scope = current_scope()
    outermost = scope.graph.outermost
    with entered(replace(scope, graph=outermost, control_inputs=(), outer_waits=())):
        yield


def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> AbstractContextManager[str]:
    """Prefix the names of operations made in the block.

    Args:
        name: The scope's name; made unique. One that ends in "/" is taken as it is; None takes
            ``default_name``, and an empty string leaves all name scopes.
        default_name: Used where ``name`` is None; without either, all name scopes are left.
        values: Tensors of the graph to use; all must be of one graph.

    Returns:
        A context manager that yields the full prefix, ending in "/" (empty at the top), and whose
        ``name`` is the name that was chosen.
    """
    chosen = name if name is not None else default_name
    scope = _named(chosen, values)
    # More than a context manager has.
    scope.name = chosen  # type: ignore[attr-defined]
    return scope


@contextmanager
def _named(chosen: str | None, values: Sequence[Any] | None) -> Iterator[str]:
    scope = current_scope()
    tensors = [v for v in items(values or (), "values") if isinstance(v, Tensor)]
    graph = tensors[0].graph if tensors else scope.graph
    if scope.graph.outermost is not scope.graph:
        graph = scope.graph
    elif any(t.graph is not graph for t in tensors):
        raise GraphError(f"the values of name scope {shown(chosen)} belong to different graphs")
    own = ("name",) if graph is scope.graph else ()
    inner = scope if own else Scope(graph)
    with entered(inner, *own), graph.name_scope(chosen) as full:
        yield full


def device(device_name_or_function: DeviceRequest) -> AbstractContextManager[None]:
    """Ask for a device for the operations made in the block.

    Args:
        device_name_or_function: As for ``Graph.device``.

    Raises:
        PlacementError: if it is no device name and no function.
    """
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """Make operations of the block wait for others.

    Args:
        control_inputs: Operations, tensors or variables; None drops outer ones.
    """
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Place operations of the block on the device of ``op``.

    Args:
        op: An operation, tensor or variable; None, with ``ignore_existing``, to place them
            anywhere.
        ignore_existing: Drop the colocations of outer blocks.

    Raises:
        AttributeValueError: if ``op`` is None and ``ignore_existing`` is not set.
    """
    return get_default_graph().colocate_with(op, ignore_existing)


def beside(state: Tensor) -> AbstractContextManager[None]:
    """Place operations of the block on the device of some state, in the graph that it is of."""
    other = other_graph_of((state,))
    return colocate_with(state) if other is None else _beside_in(other, state)


@contextmanager
def _beside_in(graph: Graph, state: Tensor) -> Iterator[None]:
    with use_graph(graph), graph.colocate_with(state):
        yield


def container(container_name: str) -> AbstractContextManager[None]:
    """Keep the state made in the block in the container ``container_name``.

    A named container outlives sessions: its state stays until ``reset``, and sessions on any graph
    see it.
    """
    return get_default_graph().container(container_name)


def gradient_override_map(op_type_map: Mapping[Any, Any]) -> AbstractContextManager[None]:
    """Let operations made in the block be differentiated by other rules than those of their ops.

    Args:
        op_type_map: As for ``Graph.gradient_override_map``.

    Raises:
        GraphError: if a type or a name is no string.
    """
    return get_default_graph().gradient_override_map(op_type_map)
