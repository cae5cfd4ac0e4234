"""Trimming loops: a loop computes only the variables that something needs.

The gradient of a loop adds up one gradient for everything that the loop reads, also for what no
gradient is asked of, such as the data; and a loop yields whatever any gradient may need of its
iterations. Here a loop loses each variable that neither what reads the loop's outputs needs, nor
its condition, nor other variables that are needed; each list that nobody reads; and each argument
that nothing inside needs any more. What has effects stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import Any

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.effects import dependents_on_effects
from headrace.passes.inline import inline_calls
from headrace.passes.insides import function_of
from headrace.passes.prune import extract
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.records import dataclass


def trim_loops(step: StepGraph) -> StepGraph:
    """Return the step with loops that compute no more than is needed of them."""
    if not any(is_open(op) for op in step.graph.operations):
        return step
    demand = _demand(step, step.fetches)
    if not any(loop.changed for loop in demand.loops.values()):
        return step
    rewriter = _trimmed(step, demand, keep=[t.op for t in step.feeds])
    return rewriter.finish(step)


def is_open(op: Operation) -> bool:
    """Whether an operation is a loop that is one operation, and not one task's part of it."""
    return op.type == "While" and not op.attrs["body"].is_part


@dataclass(frozen=True, slots=True, eq=False)
class _Demand:
    """What is needed of a graph.

    Attributes:
        operations: The operations that must run.
        loops: What is needed of the loops among them.
    """

    operations: set[Operation]
    loops: dict[Operation, _Loop]

    def parameters(self) -> set[int]:
        """Return which parameters are needed, where the graph is the inside of a function."""
        return {op.attrs["index"] for op in self.operations if op.type == "Parameter"}


@dataclass(slots=True, eq=False)
class _Inside:
    """The inside of a function with its calls inline, and what is needed of it.

    Attributes:
        function: The function.
        step: Its inside; the results of the function come first among what is fetched, what is
            saved of it last.
        demand: What is needed of it.
        kept: The parameters that stay, by their numbers, in order.
    """

    function: Function
    step: StepGraph
    demand: _Demand = field(default_factory=lambda: _Demand(set(), {}))
    kept: list[int] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether less is needed of it than it has."""
        fewer = len(self.kept) < len(self.function.parameters)
        return fewer or any(loop.changed for loop in self.demand.loops.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """The insides of a loop, of which nothing is needed yet.

    Attributes:
        cond: Its condition.
        body: Its body.
        effects: What in the body depends on effects.
        always: The variables that are needed whatever is read of the loop.
    """

    cond: _Inside
    body: _Inside
    effects: Collection[Operation]
    always: frozenset[int]


@dataclass(slots=True, eq=False)
class _Loop:
    """What is needed of a loop, and of all loops of the same inside of which as much is read.

    Attributes:
        cond: Its condition.
        body: Its body.
        live: The variables that are needed, in order.
        saved: Which of the lists that it saves are needed, in order.
        changed: Whether less is needed of it than it computes.
        made: The condition and the body of the trimmed loop, and what it saves; made when first
            asked for.
    """

    cond: _Inside
    body: _Inside
    live: list[int]
    saved: list[int]
    changed: bool
    made: tuple[Function, Function, tuple[str, ...]] | None = None

    @property
    def count(self) -> int:
        """How many variables it has."""
        return len(self.body.function.results)

    def inputs(self, op: Operation) -> list[Tensor]:
        """Return what one of these loops takes."""
        return [t for group in self.groups(op) for t in group]

    def groups(self, op: Operation) -> list[list[Tensor]]:
        """Return what one of these loops takes: for its variables, its condition, its body."""
        count = self.count
        after = op.arity[0] + op.arity[1] - count
        return [
            [op.inputs[i] for i in self.live],
            [op.inputs[i] for i in self.cond.kept if i >= count],
            [op.inputs[after + i] for i in self.body.kept if i >= count],
        ]


def _opened(op: Operation) -> _Opened:
    """Return the insides of a loop, the same for all loops that hold the same."""
    body: Function = op.attrs["body"]
    cond: Function = op.attrs["cond"]
    key = ("opened", cond, op.attrs["saves"])
    if key not in body.derived:
        saves = [body.get_tensor_by_name(name) for name in op.attrs["saves"]]
        inside = inline_calls(extract((), [*body.results, *saves], body.effects))
        asked = _Inside(cond, inline_calls(extract((), cond.results, cond.effects)))
        asked.demand = _demand(asked.step, asked.step.fetches)
        # An effect runs for the sake of a result that depends on it.
        effects = dependents_on_effects(inside)
        count = len(body.results)
        bound = {i for i in range(count) if inside.fetches[i].op in effects}
        decide = {i for i in asked.demand.parameters() if i < count}
        always = frozenset(bound | decide)
        body.derived[key] = _Opened(asked, _Inside(body, inside), effects, always)
    found: _Opened = body.derived[key]
    return found


def _demand(step: StepGraph, fetches: Iterable[Tensor]) -> _Demand:
    """Return what is needed of a graph.

    Args:
        step: The graph; its targets are needed.
        fetches: What is to be handed back.
    """
    tensors = set(fetches)
    operations = {*(t.op for t in tensors), *step.targets}
    loops: dict[Operation, _Loop] = {}
    for op in reversed(step.graph.operations):
        if op not in operations:
            continue
        taken: Sequence[Tensor] = op.inputs
        if is_open(op):
            loop = loops[op] = _settled(op, tensors)
            taken = loop.inputs(op)
        tensors.update(taken)
        operations.update(t.op for t in taken)
        operations.update(op.control_inputs)
    return _Demand(operations, loops)


def _settled(op: Operation, read: Collection[Tensor]) -> _Loop:
    """Return what is needed of a loop, where some of its outputs are read.

    Its body remembers it: each round around a loop would settle those inside anew, and each place
    of a function those in the function, which takes time like 2^depth; and functions that are
    trimmed alike stay shared.
    """
    body: Function = op.attrs["body"]
    asked_for = frozenset(i for i, t in enumerate(op.outputs) if t in read)
    key = ("trimmed", op.attrs["cond"], op.attrs["saves"], asked_for)
    if key not in body.derived:
        body.derived[key] = _settle(_opened(op), asked_for, len(op.attrs["saves"]))
    found: _Loop = body.derived[key]
    return found


def _settle(opened: _Opened, asked_for: frozenset[int], saves: int) -> _Loop:
    """Find out what is needed of loops, where some of their outputs are read, by number."""
    step = opened.body.step
    count, fetches = len(step.fetches) - saves, step.fetches
    live = {i for i in asked_for if i < count} | opened.always
    kept_lists = [
        i for i in range(saves) if count + i in asked_for or fetches[count + i].op in opened.effects
    ]
    saved = [fetches[count + i] for i in kept_lists]
    while True:
        demand = _demand(step, [*(fetches[i] for i in live), *saved])
        needed = demand.parameters()
        more = {i for i in needed if i < count} - live
        if not more:
            break
        live |= more
    variables = sorted(live)
    kept = [*variables, *sorted(i for i in needed if i >= count)]
    body = _Inside(opened.body.function, step, demand, kept)
    asked = opened.cond.demand.parameters()
    kept = [*variables, *sorted(i for i in asked if i >= count)]
    cond = _Inside(opened.cond.function, opened.cond.step, opened.cond.demand, kept)
    changed = len(saved) < saves or cond.changed or body.changed
    return _Loop(cond, body, variables, kept_lists, changed)


def _trimmed(step: StepGraph, demand: _Demand, keep: Iterable[Operation] = ()) -> Rewriter:
    """Return the rewriter that has copied what is needed of a graph."""
    rewriter = Rewriter("trim")
    needed = demand.operations.union(keep)
    for op in step.graph.operations:
        loop = demand.loops.get(op)
        if loop is not None and loop.changed:
            _add_loop(rewriter, op, loop)
        elif op in needed:
            rewriter.copy(op)
    return rewriter


def _made(loop: _Loop) -> tuple[Function, Function, tuple[str, ...]]:
    """Return the condition and the body of a trimmed loop, and the names of what it saves."""
    if loop.made is None:
        fetches = loop.body.step.fetches
        wanted = [fetches[loop.count + i] for i in loop.saved]
        body, saved = _function(loop.body, [fetches[i] for i in loop.live], wanted)
        cond, _ = _function(loop.cond, loop.cond.step.fetches)
        loop.made = cond, body, tuple(t.name for t in saved)
    return loop.made


def _add_loop(rewriter: Rewriter, op: Operation, loop: _Loop) -> None:
    places = [*loop.live, *(loop.count + i for i in loop.saved)]
    attrs: dict[str, Any] = dict(op.attrs)
    attrs["cond"], attrs["body"], attrs["saves"] = _made(loop)
    groups = loop.groups(op)
    new = rewriter.copy_with(
        op,
        inputs=[rewriter.tensor(t) for group in groups for t in group],
        arity=tuple(map(len, groups)),
        attrs=attrs,
        specs=[op.outputs[i].spec for i in places],
    )
    for i, tensor in zip(places, new.outputs, strict=True):
        rewriter.stand_for_tensor(op.outputs[i], tensor)


def _function(
    inside: _Inside, results: Sequence[Tensor], saved: Sequence[Tensor] = ()
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
