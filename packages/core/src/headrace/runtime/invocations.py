"""Running the functions that operations hold: calls, conditions and loops.

Each is a generator. It yields the runs that it needs, one after the other, as (plan, arguments,
label), and is sent the results of each; what it returns are its own outputs. So an executor
decides how a run is made, and a run that waits for something need not hold up a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from headrace.errors import InvalidInputError
from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.runtime.counting import count_of
from headrace.runtime.device import Device
from headrace.runtime.tensor_list import ListValue, swapped

if TYPE_CHECKING:
    from headrace.runtime.plan import Plan

# An invocation: the plan, its arguments, and what tells it from other runs of the same operation.
Invocation = tuple["Plan", tuple[Any, ...], str]
Invocations = Generator[Invocation, list[Any], list[Any]]
# Plans a function for the device of the operation that holds it, with further results by name.
Nest = Callable[[Function, tuple[str, ...]], "Plan"]


def call_invocations(
    op: Operation, device: Device, nest: Nest
) -> tuple[Callable[..., Invocations], Any]:
    """Return what runs a ``Call``, and its plans."""
    del device
    plan = nest(op.attrs["function"], op.attrs["saves"])

    def invocations(*values: Any) -> Invocations:
        return (yield plan, values, "")

    return invocations, (plan,)


def if_invocations(
    op: Operation, device: Device, nest: Nest
) -> tuple[Callable[..., Invocations], Any]:
    """Return what runs an ``If``, and its plans."""
    del device
    then_saves, else_saves = op.attrs["then_saves"], op.attrs["else_saves"]
    then_plan = nest(op.attrs["then_branch"], then_saves)
    else_plan = nest(op.attrs["else_branch"], else_saves)
    count = len(op.attrs["then_branch"].results)
    _, then_count, _ = op.arity
    nothing = ListValue()

    def invocations(pred: Any, *values: Any) -> Invocations:
        if _truth(pred):
            found = yield then_plan, values[:then_count], ""
            kept, none = [ListValue([v]) for v in found[count:]], [nothing] * len(else_saves)
            return [*found[:count], *kept, *none]
        found = yield else_plan, values[then_count:], ""
        none, kept = [nothing] * len(then_saves), [ListValue([v]) for v in found[count:]]
        return [*found[:count], *none, *kept]

    return invocations, (then_plan, else_plan)


def _truth(value: Any) -> bool:
    if value.shape != ():
        raise InvalidInputError(f"a condition must be a scalar, got shape {list(value.shape)}")
    return bool(value)


def while_invocations(
    op: Operation, device: Device, nest: Nest
) -> tuple[Callable[..., Invocations], Any]:
    """Return what runs a ``While``, and its plans."""
    saves = op.attrs["saves"]
    cond_plan = nest(op.attrs["cond"], ())
    body_plan = nest(op.attrs["body"], saves)
    variables, cond_count, _ = op.arity
    body_start = variables + cond_count
    count = count_of(op)
    swap = op.attrs["swap_memory"]

    def invocations(*values: Any) -> Invocations:
        current = values[:variables]
        of_cond, of_body = values[variables:body_start], values[body_start:]
        kept: list[list[Any]] = [[] for _ in saves]
        iteration = 0
        rounds = None if count is None else count.rounds((*current, *of_cond))
        while iteration != rounds:
            if rounds is None:
                (going,) = yield cond_plan, (*current, *of_cond), f"?{iteration}"
                if not _truth(going):
                    break
            found = yield body_plan, (*current, *of_body), str(iteration)
            current = tuple(found[:variables])
            for items, value in zip(kept, found[variables:], strict=True):
                items.append(swapped(value, device) if swap else value)
            iteration += 1
        return [*current, *map(ListValue, kept)]

    return invocations, (cond_plan, body_plan)


INVOCATIONS: dict[
    str, Callable[[Operation, Device, Nest], tuple[Callable[..., Invocations], Any]]
] = {
    "Call": call_invocations,
    "If": if_invocations,
    "While": while_invocations,
}
