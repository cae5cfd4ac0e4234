"""Dead loop variables: conditions and loops without what a step does not need of them.

A step runs what its fetches and targets depend on, and nothing else, also inside of conditions and
loops (``trim_unread``): a result of a branch, or a variable of a loop, that nothing reads is not
computed, has no effects, and asks for no feed. TensorFlow's Switch and Merge behave so, because
they are ordinary operations of the graph.

The gradient of a loop adds up one gradient for everything that the loop reads, also for what no
gradient is asked of, such as the data; and a loop yields whatever any gradient may need of its
iterations. So other passes leave loops with more than is needed (``trim_loops``). Then what has
effects stays: what was to go for being unread has gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.graph.function import Function, functions_of
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.function_copies import function_of
from headrace.passes.liveness import Branches, Demand, Inside, Loop, demand_of, is_open
from headrace.passes.step_graph import Rewriter, StepGraph


def trim_loops(step: StepGraph) -> StepGraph:
    """Return the step with loops that compute no more than is needed of them."""
    if not any(is_open(op) for op in step.graph.operations):
        return step
    return _applied(step, demand_of(step, step.fetches, bound=True))


def trim_unread(step: StepGraph) -> StepGraph:
    """Return the step without results of conditions and loops that nothing reads.

    Args:
        step: A graph whose calls are inline, and whose views of one run are one operation.
    """
    if not _has_unread(step):
        return step
    return _applied(step, demand_of(step, step.fetches, bound=False))


def _applied(step: StepGraph, demand: Demand) -> StepGraph:
    if not demand.changed:
        return step
    rewriter = _trimmed(step, demand, keep=[t.op for t in step.feeds])
    return rewriter.finish(step)


def _has_unread(step: StepGraph) -> bool:
    """Whether some condition or loop of a graph, or inside of one, has an output nobody reads.

    Most have none, and are not looked at more closely then.
    """
    return _unread_among(step.graph.operations, step.fetches)


def _unread_among(operations: Iterable[Operation], fetches: Iterable[Tensor]) -> bool:
    ops = tuple(operations)
    holders = [op for op in ops if op.type == "If" or is_open(op)]
    if not holders:
        return False
    read = {t for op in ops for t in op.inputs}
    read.update(fetches)
    if any(t not in read for op in holders for t in op.outputs):
        return True
    functions = [f for op in holders for f in functions_of(op)]
    return any(_unread_inside(function) for function in functions)


def _unread_inside(function: Function) -> bool:
    known: bool | None = function.derived.get("unread")
    if known is None:
        known = _unread_among(function.operations, function.results)
        function.derived["unread"] = known
    return known


def _trimmed(step: StepGraph, demand: Demand, keep: Iterable[Operation] = ()) -> Rewriter:
    """Return the rewriter that has copied what is needed of a graph."""
    rewriter = Rewriter("trim")
    needed = demand.operations.union(keep)
    for op in step.graph.operations:
        holder = demand.holders.get(op)
        if holder is not None and holder.changed:
            _add(rewriter, op, holder)
        elif op in needed:
            rewriter.copy(op)
    return rewriter


def _add(rewriter: Rewriter, op: Operation, holder: Loop | Branches) -> None:
    attrs: dict[str, Any] = dict(op.attrs)
    if isinstance(holder, Loop):
        attrs["cond"], attrs["body"], attrs["saves"] = _loop_functions(holder)
    else:
        then, other = _branch_functions(holder)
        attrs["then_branch"], attrs["then_saves"] = then
        attrs["else_branch"], attrs["else_saves"] = other
    groups, places = holder.groups(op), holder.places()
    new = rewriter.copy_with(
        op,
        inputs=[rewriter.tensor(t) for group in groups for t in group],
        arity=tuple(map(len, groups)),
        attrs=attrs,
        specs=[op.outputs[i].spec for i in places],
    )
    for i, tensor in zip(places, new.outputs, strict=True):
        rewriter.stand_for_tensor(op.outputs[i], tensor)


def _loop_functions(loop: Loop) -> tuple[Function, Function, tuple[str, ...]]:
    """Return the condition and the body of a trimmed loop, and the names of what it saves."""
    if loop.made is None:
        fetches = loop.body.step.fetches
        wanted = [fetches[loop.count + i] for i in loop.saved]
        body, saved = _function(loop.body, [fetches[i] for i in loop.live], wanted)
        cond, _ = _function(loop.cond, loop.cond.step.fetches)
        loop.made = cond, body, tuple(t.name for t in saved)
    return loop.made


def _branch_functions(branches: Branches) -> tuple[tuple[Function, tuple[str, ...]], ...]:
    """Return the trimmed branches of a condition, and the names of what each saves."""
    if branches.made is None:
        made = []
        for side, kept in zip(branches.sides, branches.saved, strict=True):
            fetches = side.step.fetches
            wanted = [fetches[branches.count + i] for i in kept]
            function, saved = _function(side, [fetches[i] for i in branches.live], wanted)
            made.append((function, tuple(t.name for t in saved)))
        branches.made = tuple(made)
    return branches.made


def _function(
    inside: Inside, results: Sequence[Tensor], saved: Sequence[Tensor] = ()
) -> tuple[Function, list[Tensor]]:
    """Return the function of what is needed of an inside, and what stands in it for what is saved.

    Args:
        inside: The inside.
        results: What the function returns.
        saved: Tensors of it that are wanted besides.
    """
    rewriter = _trimmed(inside.step, inside.demand)
    wanted = [*results, *saved]
    step = StepGraph(
        rewriter.graph,
        (),
        tuple(map(rewriter.tensor, wanted)),
        tuple(map(rewriter.operation, inside.step.targets)),
    )
    made, fetched = function_of(inside.function, step, inside.kept, len(results))
    return made, fetched[len(results) :]
