"""Loops inside of compiled regions: run as one operation of a program among others.

A loop whose functions are each one compiled program needs nothing of an executor: it can stand in
the middle of a region, and so in the body of another loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.effects import has_effect
from headrace.runtime.concurrency.cancellation import CURRENT
from headrace.runtime.control_flow.device_loops import HeldLoop, LoopForm
from headrace.runtime.control_flow.invocations import Invocations
from headrace.runtime.control_flow.rotation import rotated_loop
from headrace.runtime.control_flow.trip_count import (
    trip_count_limit,
    trip_count_of,
    without_counters,
)

if TYPE_CHECKING:
    from headrace.runtime.execution.plan import Plan


def held_loop(op: Operation, plans: Sequence[Plan]) -> HeldLoop | None:
    """Return how a loop inside of a region runs; None where its condition is asked by itself.

    Args:
        op: The loop.
        plans: The plans of its condition and its body.
    """
    cond, body = (plan.nodes[0].region if plan.whole is not None else None for plan in plans)
    if body is None:
        return None
    variables, of_cond, of_body = op.arity
    start, every = variables + of_cond, tuple(range(variables))
    behind = tuple(range(start, start + of_body))
    count, apart = trip_count_of(op), without_counters(op)
    if count is not None and apart is not None:
        given = (*apart.others, *apart.read, *behind)
        carried = {i: number for number, i in enumerate(apart.others)}
        first = len(apart.others)
        steps = tuple((first + n, int(apart.steps[i])) for n, i in enumerate(apart.read))
        form = LoopForm(body.feeds, first, steps)
        taken = tuple(map(carried.get, every))
        return HeldLoop(None, body, form, given, taken, count, apart.steps)
    if count is not None:
        form = LoopForm(body.feeds, variables)
        return HeldLoop(None, body, form, (*every, *behind), every, count)
    if cond is None or rotated_loop(op) is None:
        return None
    form = LoopForm(body.feeds, variables, asks=True)
    given = (*every, *range(variables, start + of_body))
    return HeldLoop(cond, body, form, given, every, trip_count_limit(op))


def fits_into_region(op: Operation, plans: Sequence[Plan]) -> bool:
    """Whether an operation that holds functions can be part of a region.

    Args:
        op: The operation.
        plans: The plans of its functions.
    """
    if op.type != "While" or has_effect(op) or any(plan.whole is None for plan in plans):
        return False
    if op.attrs["cond"].effects or op.attrs["body"].effects or op.attrs["run"]:
        return False
    return all(t.dtype.kind != "resource" for t in op.inputs) and all(map(_is_known, op.outputs))


def _is_known(tensor: Tensor) -> bool:
    """Whether what is compiled behind a loop does not depend on what comes out of it."""
    kind = tensor.dtype.kind
    return kind == "list" or (kind != "string" and tensor.spec.shape.is_fully_defined())


def run_held(call: Callable[..., Invocations], *values: Any) -> list[Any]:
    """Run a loop to its end, unless the step is over before.

    Args:
        call: Returns the runs that it asks for; each is a program.
        values: Its inputs.
    """
    cancellation = CURRENT.cancellation
    invocations = call(*values)
    try:
        run = next(invocations)
        while True:
            if cancellation.reason is not None:
                raise cancellation.reason
            whole = run[0].whole
            assert whole is not None
            run = invocations.send(whole(run[1]))
    except StopIteration as stop:
        results: list[Any] = stop.value
        return results
