"""Running the functions that operations hold: calls, conditions and loops.

Each is a generator. It yields the runs that it needs, one after the other, as (plan, arguments,
label), and is sent the results of each; what it returns are its own outputs. So an executor
decides how a run is made, and a run that waits for something need not hold up a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from headrace.errors import InvalidInputError
from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.runtime.control_flow.device_loops import LoopRunner, slices
from headrace.runtime.control_flow.rotation import rotated_loop
from headrace.runtime.control_flow.trip_count import (
    TripCount,
    WithoutCounters,
    moved,
    trip_count_limit,
    trip_count_of,
    without_counters,
)
from headrace.runtime.devices.device import Device
from headrace.runtime.state.tensor_list import ListValue, swapped

if TYPE_CHECKING:
    from headrace.runtime.execution.plan import Plan
    from headrace.runtime.planning.overlap import OverlappedLoop

# An invocation: the plan, its arguments, and what tells it from other runs of the same operation.
# For a loop whose iterations overlap it is the body's plan with a ``LoopStart``, and what is sent
# back is the variables, what is kept of each iteration, and how many iterations there were.
Invocation = tuple["Plan", tuple[Any, ...], str]
Invocations = Generator[Invocation, list[Any], list[Any]]


class LoopStart(NamedTuple):
    """What a run of an overlapped loop begins with.

    Attributes:
        loop: The loop.
        variables: The variables' values.
        of_cond: The further arguments of the condition.
        of_body: The further arguments of the body, behind those that count.
        rounds: How many iterations there are; None where the condition is asked.
        counts: Returns the arguments that count, which follow the variables, by iteration.
        kept: Makes what is kept of what an iteration saves; None where nothing is saved.
    """

    loop: OverlappedLoop
    variables: Sequence[Any]
    of_cond: Sequence[Any]
    of_body: Sequence[Any]
    rounds: int | None
    counts: Callable[[int], Iterable[Any]] | None
    kept: Callable[[list[Any]], list[Any]] | None


class Overlap(Protocol):
    """Says how the iterations of a loop overlap."""

    def __call__(
        self, op: Operation, cond: Plan, body: Plan, variables: int, *, counted: bool
    ) -> OverlappedLoop | None:
        """Return how they do, as ``overlapped_loop``; None where one runs after the other."""


class Nest(Protocol):
    """Plans a function for the device of the operation that holds it."""

    def __call__(self, function: Function, saves: tuple[str, ...], carried: int = 0) -> Plan:
        """Return the plan.

        Args:
            function: The function.
            saves: Names of further results.
            carried: As in ``Options``.
        """


def call_invocations(
    op: Operation, device: Device, nest: Nest, repeat: Nest, overlap: Overlap
) -> tuple[Callable[..., Invocations], Any]:
    """Return what runs a ``Call``, and its plans."""
    del device, repeat, overlap
    plan = nest(op.attrs["function"], op.attrs["saves"])

    def invocations(*values: Any) -> Invocations:
        return (yield plan, values, "")

    return invocations, (plan,)


def if_invocations(
    op: Operation, device: Device, nest: Nest, repeat: Nest, overlap: Overlap
) -> tuple[Callable[..., Invocations], Any]:
    """Return what runs an ``If``, and its plans."""
    del device, repeat, overlap
    then_saves, else_saves = op.attrs["then_saves"], op.attrs["else_saves"]
    then_plan = nest(op.attrs["then_branch"], then_saves)
    else_plan = nest(op.attrs["else_branch"], else_saves)
    count = len(op.attrs["then_branch"].results)
    _, then_count, _ = op.arity
    nothing = ListValue()

    def invocations(pred: Any, *values: Any) -> Invocations:
        if truth(pred):
            found = yield then_plan, values[:then_count], ""
            kept, none = [ListValue([v]) for v in found[count:]], [nothing] * len(else_saves)
            return [*found[:count], *kept, *none]
        found = yield else_plan, values[then_count:], ""
        none, kept = [nothing] * len(then_saves), [ListValue([v]) for v in found[count:]]
        return [*found[:count], *none, *kept]

    return invocations, (then_plan, else_plan)


def truth(value: Any) -> bool:
    """Return the value of a condition.

    Raises:
        InvalidInputError: if it is no scalar.
    """
    if value.shape != ():
        raise InvalidInputError(f"a condition must be a scalar, got shape {list(value.shape)}")
    return bool(value)


def while_invocations(
    op: Operation, device: Device, nest: Nest, repeat: Nest, overlap: Overlap
) -> tuple[Callable[..., Invocations], Any]:
    """Return what runs a ``While``, and its plans.

    Args:
        op: The loop.
        device: Its device.
        nest: Plans its condition, and a body that asks in each round whether it goes on.
        repeat: Plans a body whose rounds are counted.
        overlap: Says how its iterations overlap.
    """
    cond_plan = nest(op.attrs["cond"], ())
    count = trip_count_of(op)
    apart = without_counters(op)
    if count is not None and apart is not None:
        others = len(apart.others)
        body_plan = repeat(apart.body, apart.saves, _carried(op, others))
        loop = overlap(op, cond_plan, body_plan, others, counted=True)
        return _counting_apart(op, device, cond_plan, body_plan, count, apart, loop), (
            cond_plan,
            body_plan,
        )
    asked = rotated_loop(op)
    if asked is not None:
        cond_plan = repeat(op.attrs["cond"], ())
        body_plan = repeat(asked.body, asked.saves)
        return _asking(op, device, cond_plan, body_plan), (cond_plan, body_plan)
    variables, cond_count, _ = op.arity
    plan = nest if count is None else repeat
    body_plan = plan(op.attrs["body"], op.attrs["saves"], _carried(op, variables))
    runner = runner_of(op, body_plan, None)
    body_start = variables + cond_count
    kept_of = _keeper(op, device)
    loop = overlap(op, cond_plan, body_plan, variables, counted=count is not None)
    if loop is not None:
        return _overlapping(op, loop, count, kept_of), (cond_plan, body_plan)

    def invocations(*values: Any) -> Invocations:
        current: Sequence[Any] = values[:variables]
        of_cond, of_body = values[variables:body_start], values[body_start:]
        # What each round leaves behind.
        kept: list[list[Any]] = []
        iteration = 0
        rounds = None if count is None else count.rounds((*current, *of_cond))
        # Whether rounds run one by one to the end.
        alone = rounds is None
        while iteration != rounds:
            if not alone and _is_turn(iteration):
                run = runner.start((*current, *of_body), (rounds or 0) - iteration)
                if run is not None:
                    yield from slices(run)
                    done = run.results()
                    if done is not None:
                        return [*done[0], *_lists(kept, op, done[1])]
                    alone = True
            if rounds is None:
                (going,) = yield cond_plan, (*current, *of_cond), f"?{iteration}"
                if not truth(going):
                    break
            found = yield body_plan, (*current, *of_body), str(iteration)
            current = found[:variables]
            if kept_of is not None:
                kept.append(kept_of(found[variables:]))
            iteration += 1
        return [*current, *_lists(kept, op)]

    return invocations, (cond_plan, body_plan)


def _carried(op: Operation, variables: int) -> int:
    return variables if op.attrs["parallel_iterations"] > 1 else 0


def runner_of(
    op: Operation, body: Plan, apart: WithoutCounters | None, *, asks: bool = False
) -> LoopRunner:
    """Return what runs the rounds of a ``While`` at one go, where that can be done.

    Args:
        op: The loop, whose rounds are counted, or say whether another one follows.
        body: The plan of its body.
        apart: The body without its counters, where the plan is of that.
        asks: Whether the plan is of the body with the condition behind it.
    """
    if apart is None:
        return LoopRunner(body, op.arity[0], {}, asks=asks)
    others = len(apart.others)
    growths = [apart.steps[i] for i in apart.read]
    return LoopRunner(body, others, dict(enumerate(growths, others)))


def _overlapping(
    op: Operation,
    loop: OverlappedLoop,
    count: TripCount | None,
    kept_of: Callable[[list[Any]], list[Any]] | None,
) -> Callable[..., Invocations]:
    """Return what runs a ``While`` whose iterations overlap."""
    variables, cond_count, _ = op.arity
    body_start = variables + cond_count

    def invocations(*values: Any) -> Invocations:
        current, of_body = values[:variables], values[body_start:]
        rounds = None if count is None else count.rounds(values[:body_start])
        of_cond = values[variables:body_start]
        start = LoopStart(loop, current, of_cond, of_body, rounds, None, kept_of)
        ended, kept, _ = yield loop.body, start, ""
        return [*ended, *_lists(kept, op)]

    return invocations


def _counting_apart(
    op: Operation,
    device: Device,
    cond_plan: Plan,
    body_plan: Plan,
    count: TripCount,
    apart: WithoutCounters,
    loop: OverlappedLoop | None,
) -> Callable[..., Invocations]:
    """Return what runs a ``While`` whose body leaves its counters to the loop."""
    variables, cond_count, _ = op.arity
    body_start, others = variables + cond_count, len(apart.others)
    kept_of = _keeper(op, device)
    growths = [apart.steps[i] for i in apart.read]
    runner = runner_of(op, body_plan, apart)

    def invocations(*values: Any) -> Invocations:
        starts = {i: values[i] for i in apart.steps}
        given = all(isinstance(v, np.ndarray | np.generic) for v in starts.values())
        current: Sequence[Any] = [values[i] for i in apart.others]
        counts = [np.asarray(device.to_host(starts[i])) for i in apart.read]
        of_cond, of_body = values[variables:body_start], values[body_start:]
        kept: list[list[Any]] = []
        iteration = 0
        rounds = count.rounds(values[:body_start])
        if rounds is not None and loop is not None:

            def counted(number: int) -> list[Any]:
                found = [
                    np.asarray(moved(c, g, number)) for c, g in zip(counts, growths, strict=True)
                ]
                return found if given else [device.from_host(value) for value in found]

            start = LoopStart(loop, current, of_cond, of_body, rounds, counted, kept_of)
            current, kept, _ = yield body_plan, start, ""
            ended = _placed(apart.after(starts, rounds), device, given) if rounds else starts
            return [*apart.ordered(current, ended), *_lists(kept, op)]
        # Whether rounds run one by one to the end.
        alone = rounds is None
        while iteration != rounds:
            if not alone and _is_turn(iteration):
                left = (rounds or 0) - iteration
                run = runner.start((*current, *counts, *of_body), left)
                if run is not None:
                    yield from slices(run)
                    done = run.results()
                    if done is not None:
                        ended = _placed(apart.after(starts, rounds or 0), device, given)
                        return [*apart.ordered(done[0], ended), *_lists(kept, op, done[1])]
                    alone = True
            if rounds is None:
                known = _placed(apart.after(starts, iteration), device, given)
                asked = (*apart.ordered(current, known), *of_cond)
                (going,) = yield cond_plan, asked, f"?{iteration}"
                if not truth(going):
                    break
            taken = counts if given else map(device.from_host, counts)
            found = yield body_plan, (*current, *taken, *of_body), str(iteration)
            current = found[:others]
            if kept_of is not None:
                kept.append(kept_of(found[others:]))
            if growths:
                counts = [np.add(c, g) for c, g in zip(counts, growths, strict=True)]
            iteration += 1
        ended = _placed(apart.after(starts, iteration), device, given) if iteration else starts
        return [*apart.ordered(current, ended), *_lists(kept, op)]

    return invocations


def _asking(
    op: Operation, device: Device, cond_plan: Plan, body_plan: Plan
) -> Callable[..., Invocations]:
    """Return what runs a ``While`` of which each round says whether another one follows."""
    variables, cond_count, _ = op.arity
    body_start = variables + cond_count
    kept_of = _keeper(op, device)
    runner = runner_of(op, body_plan, None, asks=True)
    most = trip_count_limit(op)

    def invocations(*values: Any) -> Invocations:
        current: Sequence[Any] = values[:variables]
        taken = values[variables:]
        (asked,) = yield cond_plan, values[:body_start], "?0"
        going = truth(asked)
        # What rounds left behind that ran one by one, or at one go.
        kept: list[list[Any]] = []
        iteration = 0
        alone = not going
        while going:
            if not alone and _is_turn(iteration):
                left = (
                    None if most is None else most.rounds((*current, *values[variables:body_start]))
                )
                run = runner.start((*current, *taken), left)
                if run is not None:
                    yield from slices(run)
                    done = run.results()
                    if done is None:
                        alone = True
                        continue
                    if not run.going and not kept:
                        return [*done[0], *done[1]]
                    kept.extend(map(list, zip(*(found.items for found in done[1]), strict=True)))
                    current, going = done[0], run.going
                    iteration = 1 << (iteration + run.rounds).bit_length()
                    continue
            found = yield body_plan, (*current, *taken), str(iteration)
            current, going = found[:variables], truth(found[variables])
            if kept_of is not None:
                kept.append(kept_of(found[variables + 1 :]))
            iteration += 1
        return [*current, *_lists(kept, op)]

    return invocations


def _is_turn(iteration: int) -> bool:
    """Whether to ask before a round if the rest can run at one go, as kernels may be there now."""
    return iteration & (iteration - 1) == 0


def _placed(counts: Mapping[int, Any], device: Device, given: bool) -> Mapping[int, Any]:
    """Return counters as arrays of a device; ``arguments`` says whether those are NumPy's."""
    return counts if given else {i: device.from_host(np.asarray(c)) for i, c in counts.items()}


def _keeper(op: Operation, device: Device) -> Callable[[list[Any]], list[Any]] | None:
    """Return what makes of a round's saved values what is kept; None where nothing is saved."""
    if not op.attrs["saves"]:
        return None
    if op.attrs["swap_memory"]:
        return lambda values: [swapped(value, device) for value in values]
    return lambda values: values


def _lists(
    kept: Sequence[Sequence[Any]], op: Operation, rest: Sequence[ListValue] | None = None
) -> list[ListValue]:
    """Return the lists of what all rounds have left.

    Args:
        kept: What rounds that ran one by one have left.
        op: The loop.
        rest: What the rounds after these have left, None where there are none.
    """
    if rest is not None and not kept:
        return list(rest)
    columns = zip(*kept, strict=True) if kept else [()] * len(op.attrs["saves"])
    if rest is None:
        return [ListValue(column) for column in columns]
    return [ListValue([*a, *b.items]) for a, b in zip(columns, rest, strict=True)]


INVOCATIONS: dict[
    str, Callable[[Operation, Device, Nest, Nest, Overlap], tuple[Callable[..., Invocations], Any]]
] = {
    "Call": call_invocations,
    "If": if_invocations,
    "While": while_invocations,
}
