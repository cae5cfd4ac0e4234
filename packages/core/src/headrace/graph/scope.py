"""The scope in force: what applies to the operations made now.

All scopes are fields of one immutable value in one context variable, so that they follow threads
and coroutines as context variables do, and leaving a block restores everything at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.device_name import DeviceName
from headrace.errors import NestingError
from headrace.graph.context_blocks import drop, read
from headrace.graph.operation import Operation
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.graph.graph import Graph


@dataclass(frozen=True, slots=True)
class Scope:
    """What applies to operations made now.

    Attributes:
        graph: The graph to which they are added.
        name: Prefix of their names, without a trailing slash.
        device: The device asked for, inside of all device functions.
        device_functions: Functions that say the device of each operation, the outermost first,
            each with the device asked for around it.
        control_inputs: Operations that they wait for.
        outer_waits: Operations of graphs around that of a function that they wait for.
        colocated_with: Operations whose device they share.
        container: The container in which their state lives, empty for the default one.
        gradient_rules: The rule that differentiates them, by op, where it is not the op's own.
        others: What applies to other graphs as soon as they are the default ones.
    """

    graph: Graph
    name: str = ""
    device: DeviceName = DeviceName()
    control_inputs: tuple[Operation, ...] = ()
    outer_waits: tuple[Operation, ...] = ()
    colocated_with: tuple[Operation, ...] = ()
    container: str = ""
    gradient_rules: tuple[tuple[str, str], ...] = ()
    device_functions: tuple[tuple[DeviceName, Callable[[Operation], Any]], ...] = ()
    others: tuple[tuple[Graph, Scope], ...] = ()

    def gradient_rule(self, op_type: str) -> str:
        """Return the name of the rule for operations of a type, empty for the op's own."""
        return dict(self.gradient_rules).get(op_type, "") if self.gradient_rules else ""

    def of(self, graph: Graph) -> Scope:
        """Return what applies to a graph where it is, or will be, the default one."""
        if graph is self.graph:
            return self
        return next((scope for other, scope in self.others if other is graph), Scope(graph))

    def beside(self, graph: Graph) -> tuple[tuple[Graph, Scope], ...]:
        """Return what applies to other graphs while ``graph`` is the default one."""
        kept = tuple(pair for pair in self.others if pair[0] is not graph)
        here = replace(self, others=())
        return kept if here == Scope(self.graph) else (*kept, (self.graph, here))


# None until the thread's default graph is made.
SCOPE: ContextVar[Scope | None] = ContextVar("headrace_scope", default=None)


@contextmanager
def entered(scope: Scope, *own: str) -> Iterator[Scope]:
    """Put a scope in force within the block.

    Args:
        scope: The scope.
        own: The fields that the block is about; none where it is about all. Blocks that are left
            crosswise take back their own fields alone.

    Raises:
        NestingError: where the block is left, if another one about the same was entered inside of
            it and not left. Blocks of names need not be left in order.
    """
    before = read(SCOPE)
    token = SCOPE.set(scope)
    closed = False
    try:
        yield scope
    except GeneratorExit:
        # Nobody left the block: it is collected with what held it, perhaps in another context, or
        # beside what was entered since.
        closed = True
        drop(SCOPE, scope, before)
        raise
    finally:
        if not closed:
            now = read(SCOPE)
            if now is scope or now is None or not own:
                SCOPE.reset(token)
            else:
                _leave_crosswise(now, scope, before, own)


def _leave_crosswise(now: Scope, scope: Scope, before: Any, own: tuple[str, ...]) -> None:
    """Leave a block while scopes are in force that were entered inside of it."""
    if own != ("name",) and any(getattr(now, field) is not getattr(scope, field) for field in own):
        what = "another graph" if own == ("others",) else own[0].replace("_", " ")
        raise NestingError(
            f"a block of {what} is left before one that was entered inside of it; leave them in "
            "the opposite order, as 'with' does"
        )
    if "graph" in own or not isinstance(before, Scope) or before.graph is not now.graph:
        SCOPE.set(before if isinstance(before, Scope) else None)
    else:
        SCOPE.set(replace(now, **{field: getattr(before, field) for field in own}))


@contextmanager
def use_graph(graph: Graph) -> Iterator[Graph]:
    """Make ``graph`` the default within the block; of other scopes those of its own apply."""
    scope = read(SCOPE)
    graph.entered += 1
    try:
        if scope is None:
            chosen = Scope(graph)
        elif scope.graph is graph:
            chosen = scope
        else:
            chosen = replace(scope.of(graph), others=scope.beside(graph))
        with entered(chosen, "graph"):
            yield graph
    finally:
        graph.entered -= 1
