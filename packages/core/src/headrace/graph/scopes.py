"""Scopes: what applies to the operations made inside a ``with`` block.

All scopes are fields of one immutable value in one context variable, so that they follow threads
and coroutines as context variables do, and leaving a block restores everything at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from headrace.device_name import DeviceName
from headrace.errors import GraphError
from headrace.graph.graph import Graph, check_name
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """What applies to operations made now.

    Attributes:
        graph: The graph to which they are added.
        name: Prefix of their names, without a trailing slash.
        device: The device asked for.
        control_inputs: Operations that they wait for.
        colocated_with: Operations whose device they share.
        container: The container in which their state lives, empty for the default one.
        gradient_rules: The rule that differentiates them, by op, where it is not the op's own.
    """

    graph: Graph
    name: str = ""
    device: DeviceName = DeviceName()
    control_inputs: tuple[Operation, ...] = ()
    colocated_with: tuple[Operation, ...] = ()
    container: str = ""
    gradient_rules: tuple[tuple[str, str], ...] = ()

    def gradient_rule(self, op_type: str) -> str:
        """Return the name of the rule for operations of a type, empty for the op's own."""
        return dict(self.gradient_rules).get(op_type, "") if self.gradient_rules else ""


_SCOPE: ContextVar[Scope | None] = ContextVar("headrace_scope", default=None)


def current_scope() -> Scope:
    """Return the scope in force; the first call in a thread makes its default graph."""
    scope = _SCOPE.get()
    if scope is None:
        scope = Scope(Graph())
        _SCOPE.set(scope)
    return scope


def get_default_graph() -> Graph:
    """Return the graph to which operations are added now."""
    return current_scope().graph


def reset_default_graph() -> None:
    """Replace this thread's default graph by a new, empty one.

    Raises:
        GraphError: inside a ``with graph.as_default()`` block.
    """
    scope = current_scope()
    if scope.graph.entered:
        raise GraphError("reset_default_graph() inside a 'with graph' block; leave the block first")
    _SCOPE.set(Scope(Graph()))


@contextmanager
def _entered(scope: Scope) -> Iterator[Scope]:
    token = _SCOPE.set(scope)
    try:
        yield scope
    finally:
        _SCOPE.reset(token)


@contextmanager
def use_graph(graph: Graph) -> Iterator[Graph]:
    """Make ``graph`` the default within the block; other scopes start afresh in it."""
    scope = _SCOPE.get()
    graph.entered += 1
    try:
        same = scope is not None and scope.graph is graph
        with _entered(scope if same and scope is not None else Scope(graph)):
            yield graph
    finally:
        graph.entered -= 1


@contextmanager
def inside(graph: Graph) -> Iterator[None]:
    """Build in the graph of a function, under the names, devices and rules now in force."""
    graph.entered += 1
    scope = replace(current_scope(), graph=graph, control_inputs=(), colocated_with=())
    try:
        with _entered(scope):
            yield
    finally:
        graph.entered -= 1


@contextmanager
def init_scope() -> Iterator[None]:
    """Build in the program's graph, outside of all functions, conditions and loops being traced.

    Control dependencies do not apply in the block.
    """
    scope = current_scope()
    with _entered(replace(scope, graph=scope.graph.outermost, control_inputs=())):
        yield


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> Iterator[str]:
    """Prefix the names of operations made in the block.

    Args:
        name: The scope's name; made unique. One that ends in "/" is taken as it is; None takes
            ``default_name``, and an empty string leaves all name scopes.
        default_name: Used where ``name`` is None; without either, all name scopes are left.
        values: Tensors of the graph to use; all must be of one graph.

    Yields:
        The full prefix, ending in "/" (empty at the top).
    """
    scope = current_scope()
    chosen: Any = name if name is not None else default_name
    if chosen is not None and (not isinstance(chosen, str) or chosen):
        check_name(chosen)
    tensors = [v for v in values or () if isinstance(v, Tensor)]
    graph = tensors[0].graph if tensors else scope.graph
    if scope.graph.outermost is not scope.graph:
        graph = scope.graph
    elif any(t.graph is not graph for t in tensors):
        raise GraphError(f"the values of name scope {chosen!r} belong to different graphs")
    if graph is not scope.graph:
        scope = Scope(graph)
    if not chosen:
        full = ""
    elif chosen.endswith("/"):
        full = chosen[:-1]
    else:
        full = graph.unique_name(f"{scope.name}/{chosen}" if scope.name else chosen)
    with _entered(replace(scope, name=full)):
        yield f"{full}/" if full else ""


@contextmanager
def device(name: str | DeviceName | None) -> Iterator[None]:
    """Ask for a device for the operations made in the block.

    Args:
        name: A whole or partial device name; its parts override those of outer blocks. None
            leaves all outer requests.

    Raises:
        PlacementError: if it is no device name.
    """
    scope = current_scope()
    asked = DeviceName() if name is None else scope.device.merged(DeviceName.parse(name))
    with _entered(replace(scope, device=asked)):
        yield


@contextmanager
def control_dependencies(control_inputs: Sequence[Any] | None) -> Iterator[None]:
    """Make operations of the block wait for others.

    Args:
        control_inputs: Operations, tensors or variables; None drops outer ones.
    """
    scope = current_scope()
    if control_inputs is None:
        with _entered(replace(scope, control_inputs=())):
            yield
        return
    added = [scope.graph.capture_control(_operation_of(item)) for item in control_inputs]
    merged = tuple(dict.fromkeys((*scope.control_inputs, *(op for op in added if op is not None))))
    with _entered(replace(scope, control_inputs=merged)):
        yield


@contextmanager
def colocate_with(op: Any, ignore_existing: bool = False) -> Iterator[None]:
    """Place operations of the block on the device of ``op``.

    Args:
        op: An operation, tensor or variable.
        ignore_existing: Drop the colocations of outer blocks.
    """
    scope = current_scope()
    target = _operation_of(op)
    if target.graph is not scope.graph and scope.graph.outermost is not scope.graph:
        # Functions get what they use of other graphs as arguments, and stand where those do.
        with _entered(replace(scope, device=DeviceName())):
            yield
        return
    target = as_operation(op, scope.graph)
    outer = () if ignore_existing else scope.colocated_with
    entered = replace(scope, colocated_with=(*outer, target), device=DeviceName())
    with _entered(entered):
        yield


@contextmanager
def container(name: str) -> Iterator[None]:
    """Keep the state made in the block in the container ``name``.

    A named container outlives sessions: its state stays until ``reset``, and sessions on any graph
    see it.
    """
    with _entered(replace(current_scope(), container=name)):
        yield


@contextmanager
def gradient_override_map(op_type_map: Mapping[Any, Any]) -> Iterator[None]:
    """Let operations made in the block be differentiated by other rules than those of their ops.

    Args:
        op_type_map: From op types to the names of rules, as in ``{"Relu": "GuidedRelu"}``; rules
            get names with ``hr.RegisterGradient``. They are looked up when gradients are made.

    Raises:
        GraphError: if a type or a name is no string.
    """
    for op_type, rule in op_type_map.items():
        if not isinstance(op_type, str) or not isinstance(rule, str):
            raise GraphError(
                "gradient_override_map takes op types and names of rules, as in "
                f'{{"Relu": "GuidedRelu"}}, got {op_type!r}: {rule!r}'
            )
    scope = current_scope()
    merged = {**dict(scope.gradient_rules), **op_type_map}
    with _entered(replace(scope, gradient_rules=tuple(merged.items()))):
        yield


def as_operation(item: Any, graph: Graph) -> Operation:
    """Return the operation behind an operation, tensor or variable of ``graph``.

    Raises:
        GraphError: if it is none of these, or of another graph.
    """
    op = _operation_of(item)
    if op.graph is not graph:
        raise GraphError(f"{item!r} belongs to {op.graph.described}")
    return op


def _operation_of(item: Any) -> Operation:
    op = item if isinstance(item, Operation) else getattr(item, "op", None)
    if not isinstance(op, Operation):
        raise GraphError(f"expected an operation, tensor or variable, got {item!r}")
    return op
