"""State in traced functions: all that changes it happens, in the order of the program.

In a graph, operations are ordered by what they take and wait for alone. A function that is traced
is read as Python is: a variable that is read after it was assigned has the value assigned. So each
use of a variable, queue or table waits for the last change before it, a change for the reads before
it, too, what prints or calls Python waits for what did so before, and results wait for all that
acts; so it is in the branches and bodies of the function.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.graph.function import Function, changes_state, graphs_around
from headrace.graph.operation import Operation, add_waits
from headrace.graph.scopes import control_dependencies
from headrace.graph.tensor import Tensor
from headrace.ops.array import identity

# Effects of operations that a function has, and that need not run for themselves.
_PASSIVE = frozenset(("reads", "draws"))


def is_traced(function: Function) -> bool:
    """Whether a function is traced, or part of one that is."""
    around = (g for g in graphs_around(function) if isinstance(g, Function))
    return function.traced or any(g.traced for g in around)


def in_order(function: Function, results: Sequence[Tensor]) -> list[Tensor]:
    """Put what a function does in the order of the program, within a block inside of it.

    Args:
        function: The function, of which no step has been made yet.
        results: What it returns.

    Returns:
        The results, there once the function has done all that it does.
    """
    _order(function)
    effects = [op for op in function.operations if _acts(op)]
    with control_dependencies(effects):
        return [identity(t) if effects else t for t in results]


def _order(function: Function) -> None:
    # What has no handle, such as what prints, has None for one.
    changed: dict[Tensor | None, Operation] = {}
    reads: dict[Tensor | None, list[Operation]] = {}
    for op in function.operations:
        changes = changes_state(op)
        handles: dict[Tensor | None, None] = dict.fromkeys(
            t for t in op.inputs if t.dtype.kind == "resource"
        )
        if not handles:
            # What waits for other tasks is ordered among all of them.
            if not changes or op.schema.blocking:
                continue
            handles = {None: None}
        waits: list[Operation] = []
        for handle in handles:
            if handle in changed:
                waits.append(changed[handle])
            if changes:
                waits += reads.pop(handle, ())
                changed[handle] = op
            else:
                reads.setdefault(handle, []).append(op)
        add_waits(op, waits)


def _acts(op: Operation) -> bool:
    """Whether an operation runs for more than what it reads or draws."""
    if op.type in ("Parameter", "Return"):
        return False
    return op.holds_state or not op.schema.effects <= _PASSIVE
