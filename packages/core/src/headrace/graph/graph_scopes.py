"""The scopes of a graph: ``with`` blocks that say what applies to operations made inside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from headrace.arguments import mapping
from headrace.device_name import DeviceName
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    GraphError,
    NameTypeError,
    PlacementError,
    shown,
)
from headrace.graph.attributes import as_text
from headrace.graph.context_blocks import read
from headrace.graph.operation import Operation
from headrace.graph.scope import SCOPE, Scope, entered

if TYPE_CHECKING:
    from headrace.graph.graph import Graph

# A device name, what takes an operation and returns one, or None, which drops all requests.
DeviceRequest: TypeAlias = "str | DeviceName | Callable[[Operation], Any] | None"

_CONTROL = ("control_inputs", "outer_waits")


class GraphScopes:
    """What ``Graph`` has of scopes. They apply where the graph is, or becomes, the default one."""

    __slots__ = ()

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix the names of operations made in the block.

        Args:
            name: The scope's name; made unique. One that ends in "/" is taken as it is; None or an
                empty string leaves all name scopes.

        Yields:
            The full prefix, ending in "/" (empty at the top).
        """
        scope = self._scope()
        if isinstance(name, str | bytes) and not name:
            name = None
        if name is not None:
            name = checked_name(name)
            if not scope.name and name.startswith("_"):
                raise GraphError(
                    f"the name of an outermost scope does not start with '_', got {shown(name)}"
                )
        if name is None:
            full = ""
        elif name.endswith("/"):
            full = name[:-1]
        else:
            full = scope.graph.unique_full_name(f"{scope.name}/{name}" if scope.name else name)
        with self._entered(replace(scope, name=full), "name"):
            yield f"{full}/" if full else ""

    def get_name_scope(self) -> str:
        """Return the name scope in force, without a "/" at its end; empty at the top."""
        return self._scope().name

    @contextmanager
    def device(self, device_name_or_function: DeviceRequest) -> Iterator[None]:
        """Ask for a device for the operations made in the block.

        Args:
            device_name_or_function: A whole or partial device name, whose parts override those of
                outer blocks; or a function that is called with each operation when it is made,
                and returns the name of its device, or an empty one. The operation's ``device`` is
                what blocks inside of this one ask for, and what the function returns stands in
                its place. Outer blocks add the parts that are open then. None leaves all outer
                requests.

        Raises:
            PlacementError: if it is no device name and no function.
        """
        scope = self._scope()
        asked = device_name_or_function
        if asked is None:
            inner = replace(scope, device=DeviceName(), device_functions=())
        elif callable(asked):
            around = (*scope.device_functions, (scope.device, asked))
            inner = replace(scope, device=DeviceName(), device_functions=around)
        else:
            inner = replace(scope, device=scope.device.merged(DeviceName.parse(asked)))
        with self._entered(inner, "device", "device_functions"):
            yield

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """Make operations of the block wait for others.

        Args:
            control_inputs: Operations, tensors or variables; None drops outer ones.
        """
        scope = self._scope()
        if control_inputs is None:
            with self._entered(replace(scope, control_inputs=(), outer_waits=()), *_CONTROL):
                yield
            return
        given = [operation_of(item) for item in control_inputs]
        own = [op for op in map(scope.graph.capture_control, given) if op is not None]
        outer = [op for op in given if op not in own]
        inner = replace(
            scope,
            control_inputs=tuple(dict.fromkeys((*scope.control_inputs, *own))),
            outer_waits=tuple(dict.fromkeys((*scope.outer_waits, *outer))),
        )
        with self._entered(inner, *_CONTROL):
            yield

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Place operations of the block on the device of ``op``.

        Args:
            op: An operation, tensor or variable; None, with ``ignore_existing``, to place them
                anywhere.
            ignore_existing: Drop the colocations of outer blocks.

        Raises:
            AttributeValueError: if ``op`` is None and ``ignore_existing`` is not set.
        """
        scope = self._scope()
        apart = replace(scope, device=DeviceName(), device_functions=())
        if op is None:
            if not ignore_existing:
                raise AttributeValueError(
                    "colocate_with: None drops what outer blocks say; pass ignore_existing=True"
                )
            with self._entered(replace(apart, colocated_with=())):
                yield
            return
        target = operation_of(op)
        if target.graph is not scope.graph and scope.graph.outermost is not scope.graph:
            # Functions get what they use of other graphs as arguments, and stand where those do.
            with self._entered(apart):
                yield
            return
        target = as_operation(op, scope.graph)
        outer = () if ignore_existing else scope.colocated_with
        with self._entered(replace(apart, colocated_with=(*outer, target))):
            yield

    @contextmanager
    def container(self, container_name: str) -> Iterator[None]:
        """Keep the state made in the block in the container ``container_name``.

        A named container outlives sessions: its state stays until ``reset``, and sessions on any
        graph see it.
        """
        with self._entered(replace(self._scope(), container=container_name)):
            yield

    @contextmanager
    def gradient_override_map(self, op_type_map: Mapping[Any, Any]) -> Iterator[None]:
        """Differentiate operations made in the block by other rules than those of their ops.

        Args:
            op_type_map: From op types to the names of rules, as in ``{"Relu": "GuidedRelu"}``;
                rules get names with ``hr.RegisterGradient``. They are looked up when gradients
                are made.

        Raises:
            GraphError: if a type or a name is no string.
        """
        for op_type, rule in mapping(op_type_map, "op_type_map").items():
            if not isinstance(op_type, str) or not isinstance(rule, str):
                raise GraphError(
                    "gradient_override_map takes op types and names of rules, as in "
                    f'{{"Relu": "GuidedRelu"}}, got {shown(op_type)}: {shown(rule)}'
                )
        scope = self._scope()
        merged = {**dict(scope.gradient_rules), **op_type_map}
        with self._entered(replace(scope, gradient_rules=tuple(merged.items()))):
            yield

    def _scope(self: Self) -> Scope:
        """Return what applies to operations of this graph, and to those of functions in it."""
        scope: Scope | None = read(SCOPE)
        if scope is None:
            return Scope(self)  # type: ignore[arg-type]
        return scope if scope.graph.outermost is self else scope.of(self)  # type: ignore[arg-type]

    def _entered(self: Self, scope: Scope, *own: str) -> AbstractContextManager[Any]:
        """Let a scope apply to this graph in the block, at once or when it is the default one."""
        now: Scope | None = read(SCOPE)
        if now is None:
            # The default graph of a thread is made where it is first asked for.
            now = Scope(type(self.outermost)())  # type: ignore[attr-defined]
            SCOPE.set(now)
        if scope.graph is now.graph:
            return entered(scope, *own)
        kept = tuple(pair for pair in now.others if pair[0] is not scope.graph)
        return entered(replace(now, others=(*kept, (scope.graph, scope))), "others")


def place_by_functions(op: Operation, scope: Scope) -> None:
    """Ask the device functions of a scope where an operation that was just made goes.

    From the inside out, as each replaces what was asked for inside of it.

    Raises:
        PlacementError: if one returns no device name.
    """
    asked = scope.device
    for outer, function in reversed(scope.device_functions):
        _set_device(op, asked)
        answer = function(op)
        if not isinstance(answer, str | DeviceName):
            name = getattr(function, "__name__", repr(function))
            raise PlacementError(
                f"the device function {name} must return the name of a device, or an empty "
                f"string, got {shown(answer)} for {shown(op)}\n  at {op.site}"
            )
        asked = outer.merged(DeviceName.parse(answer))
    _set_device(op, asked)


def _set_device(op: Operation, device: DeviceName) -> None:
    object.__setattr__(op, "device_name", device)


def as_operation(item: Any, graph: Graph) -> Operation:
    """Return the operation behind an operation, tensor or variable of ``graph``.

    Raises:
        ArgumentTypeError: if it is none of these.
        GraphError: if it is of another graph.
    """
    op = operation_of(item)
    if op.graph is not graph:
        raise GraphError(f"{shown(item)} belongs to {op.graph.described}")
    return op


def operation_of(item: Any) -> Operation:
    """Return the operation behind an operation, tensor or variable.

    Raises:
        ArgumentTypeError: if it is none of these.
    """
    op = item if isinstance(item, Operation) else getattr(item, "op", None)
    if not isinstance(op, Operation):
        raise ArgumentTypeError(
            f"expected an operation, tensor or variable, got {shown(item)}, which nothing computes"
            "; leave it out"
        )
    return op


# What TensorFlow's names have, so that graphs can be taken there.
_NAME = re.compile(r"[A-Za-z0-9_.\-/]+")


def checked_name(name: Any) -> str:
    """Return what can name an operation or a scope, as text.

    Raises:
        NameTypeError: if it is no string.
        GraphError: if it is empty, or has a colon, as names of tensors have, or anything else but
            ASCII letters, digits, "_", ".", "-" and "/".
    """
    # Messages, and programs that Python 2 ran, too, have names in bytes.
    if isinstance(name, bytes):
        name = as_text(name)
    if not isinstance(name, str):
        raise NameTypeError(f"a name is a string without a colon, and not empty; got {shown(name)}")
    if not name.strip("/") or ":" in name:
        raise GraphError(f"a name is a string without a colon, and not empty; got {shown(name)}")
    if not _NAME.fullmatch(name):
        raise GraphError(
            "a name has letters without accents, digits and the characters '_', '.', '-' and '/' "
            f"alone, got {shown(name)}; write '_' for a blank"
        )
    return name
