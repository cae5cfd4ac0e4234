"""What operations of a loop's body come after in the iteration before, where iterations overlap.

A region starts when all that it takes is there. So what follows from variables whose values the
iteration before waits for must not be in one region with what could start before; nor must what
keeps the order of the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from headrace.graph.operation import Operation
from headrace.runtime.planning.overlap import Order, order_of

_NOTHING: frozenset[Operation] = frozenset()


def late_operations(
    order: Sequence[Operation], carried: int, may_wait: Callable[[Operation], bool]
) -> Mapping[Operation, Hashable]:
    """Return the operations of a loop's body that come late, and names for what they come after.

    Args:
        order: The operations of the body, in an order in which they can run.
        carried: How many of its first parameters are its first results in the iteration before.
        may_wait: Whether an operation may wait for something that its plan does not do.

    Returns:
        For each parameter that comes late the operations of the iterations before that it waits
        for, and for what does not wait but keeps the order of the iterations that order. Nothing
        where whatever waits in an iteration takes what follows from all that waits in the one
        before, so that iterations cannot overlap.
    """
    parameters = {
        op.attrs["index"]: op
        for op in order
        if op.type == "Parameter" and op.attrs["index"] < carried
    }
    waiting = [op for op in order if may_wait(op)]
    # What each operation needs of what waits, and of the variables.
    needs: dict[Operation, frozenset[Operation]] = {op: frozenset([op]) for op in waiting}
    needs.update({op: frozenset([op]) for op in parameters.values()})
    for op in order:
        needed = needs.get(op, _NOTHING)
        for other in (*(t.op for t in op.inputs), *op.control_inputs):
            needed = needed | needs.get(other, _NOTHING)
        if needed:
            needs[op] = needed
    results = {
        parameters[op.attrs["index"]]: needs.get(op, _NOTHING)
        for op in order
        if op.type == "Return" and op.attrs["index"] in parameters
    }
    if not any(
        all(a not in results.get(variable, _NOTHING) for variable in needs[b])
        for a in waiting
        for b in waiting
    ):
        return {}
    found = {variable: needed.intersection(waiting) for variable, needed in results.items()}
    while True:
        following = {
            variable: found[variable].union(*(found.get(op, _NOTHING) for op in needed))
            for variable, needed in results.items()
        }
        if following == found:
            break
        found = following
    late: dict[Operation, Hashable] = {v: after for v, after in found.items() if after}
    ordered = ((op, order_of(op)) for op in order if not may_wait(op))
    late.update((op, turn) for op, turn in ordered if turn is not Order.FREE)
    return late
