"""Liveness: what is needed of a graph, and of the parts of its conditions and loops.

A step needs what its fetches and targets depend on. That goes into functions: of a condition those
results that something reads, and what each branch computes for these; of a loop the variables that
are read, those that its condition needs, and those on which these depend from one to the next.
Where something waits for a condition or loop, rather than reads one of its outputs, all its results
are needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.effects import dependents_on_effects
from headrace.passes.inline_calls import inline_calls
from headrace.passes.prune import extract
from headrace.passes.step_graph import StepGraph
from headrace.records import dataclass


def is_open(op: Operation) -> bool:
    """Whether an operation is a loop that is one operation, and not one task's part of it."""
    return op.type == "While" and not op.attrs["body"].is_part


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What is needed of a graph.

    Attributes:
        operations: The operations that must run.
        holders: What is needed of the loops and conditions among them.
    """

    operations: set[Operation]
    holders: Mapping[Operation, Loop | Branches]

    @property
    def changed(self) -> bool:
        """Whether less is needed of some loop or condition than it computes."""
        return any(holder.changed for holder in self.holders.values())

    def parameters(self) -> set[int]:
        """Return which parameters are needed, where the graph is the inside of a function."""
        return {op.attrs["index"] for op in self.operations if op.type == "Parameter"}


@dataclass(slots=True, eq=False)
class Inside:
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
    demand: Demand = field(default_factory=lambda: Demand(set(), {}))
    kept: list[int] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether less is needed of it than it has."""
        return len(self.kept) < len(self.function.parameters) or self.demand.changed


@dataclass(slots=True, eq=False)
class Loop:
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

    cond: Inside
    body: Inside
    live: list[int]
    saved: list[int]
    changed: bool
    made: tuple[Function, Function, tuple[str, ...]] | None = None

    @property
    def count(self) -> int:
        """How many variables it has."""
        return len(self.body.function.results)

    def places(self) -> list[int]:
        """Return which of its outputs are needed, in order."""
        return [*self.live, *(self.count + i for i in self.saved)]

    def groups(self, op: Operation) -> list[list[Tensor]]:
        """Return what one of these loops takes: for its variables, its condition, its body."""
        count = self.count
        after = op.arity[0] + op.arity[1] - count
        return [
            [op.inputs[i] for i in self.live],
            [op.inputs[i] for i in self.cond.kept if i >= count],
            [op.inputs[after + i] for i in self.body.kept if i >= count],
        ]


@dataclass(slots=True, eq=False)
class Branches:
    """What is needed of a condition, and of all of the same branches of which as much is read.

    Attributes:
        sides: Its branches, the one for true first.
        live: The results that are needed, in order.
        saved: For each branch, which of the tensors that it saves are needed, in order.
        changed: Whether less is needed of it than it computes.
        made: The trimmed branches, and what each saves; made when first asked for.
    """

    sides: tuple[Inside, Inside]
    live: list[int]
    saved: tuple[list[int], list[int]]
    changed: bool
    made: tuple[tuple[Function, tuple[str, ...]], ...] | None = None

    @property
    def count(self) -> int:
        """How many results it has."""
        return len(self.sides[0].function.results)

    def places(self) -> list[int]:
        """Return which of its outputs are needed, in order."""
        first = self.count
        second = len(self.sides[0].step.fetches)
        then, other = self.saved
        return [*self.live, *(first + i for i in then), *(second + i for i in other)]

    def groups(self, op: Operation) -> list[list[Tensor]]:
        """Return what one of these takes: the condition, and what each branch does."""
        after = op.arity[0] + op.arity[1]
        then, other = self.sides
        return [
            [op.inputs[0]],
            [op.inputs[op.arity[0] + i] for i in then.kept],
            [op.inputs[after + i] for i in other.kept],
        ]


def demand_of(step: StepGraph, fetches: Iterable[Tensor], *, bound: bool) -> Demand:
    """Return what is needed of a graph.

    Args:
        step: The graph; its targets are needed.
        fetches: What is to be handed back.
        bound: Whether conditions and loops keep what has effects, though nothing reads it.
    """
    tensors = set(fetches)
    operations = {*(t.op for t in tensors), *step.targets}
    waited = set(step.targets)
    holders: dict[Operation, Loop | Branches] = {}
    for op in reversed(step.graph.operations):
        if op not in operations:
            continue
        taken: Sequence[Tensor] = op.inputs
        conditional = op.type == "If" and not bound
        if conditional or is_open(op):
            whole = op in waited and not bound
            read = frozenset(i for i, t in enumerate(op.outputs) if t in tensors)
            holder = holders[op] = (_branches if conditional else _loop)(op, read, bound, whole)
            taken = [t for group in holder.groups(op) for t in group]
        tensors.update(taken)
        operations.update(t.op for t in taken)
        operations.update(op.control_inputs)
        waited.update(op.control_inputs)
    return Demand(operations, holders)


# -- loops


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """The insides of a loop, of which nothing is needed yet.

    Attributes:
        cond: Its condition.
        body: Its body.
        effects: What in the body depends on effects, and is needed for them.
        always: The variables that are needed whatever is read of the loop.
    """

    cond: Inside
    body: Inside
    effects: Collection[Operation]
    always: frozenset[int]


def _opened(op: Operation, bound: bool) -> _Opened:
    """Return the insides of a loop, the same for all loops that hold the same."""
    body: Function = op.attrs["body"]
    cond: Function = op.attrs["cond"]
    key = ("opened", cond, op.attrs["saves"], bound)
    if key not in body.derived:
        asked = _inside(cond, ())
        asked.demand = demand_of(asked.step, asked.step.fetches, bound=bound)
        found = _inside(body, op.attrs["saves"])
        # An effect runs for the sake of a result that depends on it.
        effects = dependents_on_effects(found.step) if bound else ()
        count = len(body.results)
        kept = {i for i in range(count) if found.step.fetches[i].op in effects}
        decide = {i for i in asked.demand.parameters() if i < count}
        always = frozenset(kept | decide)
        body.derived[key] = _Opened(asked, found, effects, always)
    opened: _Opened = body.derived[key]
    return opened


def _inside(function: Function, saves: Sequence[str]) -> Inside:
    wanted = [*function.results, *map(function.get_tensor_by_name, saves)]
    return Inside(function, inline_calls(extract((), wanted, function.effects)))


def _loop(op: Operation, read: frozenset[int], bound: bool, whole: bool) -> Loop:
    """Return what is needed of a loop, where some of its outputs are read.

    Its body remembers it: each iteration around a loop would settle those inside anew, and each
    place of a function those in the function, which takes time like 2^depth; and functions that are
    trimmed alike stay shared.
    """
    body: Function = op.attrs["body"]
    if whole:
        read |= frozenset(range(len(body.results)))
    key = ("needed", op.attrs["cond"], op.attrs["saves"], read, bound)
    if key not in body.derived:
        body.derived[key] = _settled(_opened(op, bound), read, len(op.attrs["saves"]), bound)
    found: Loop = body.derived[key]
    return found


def _settled(opened: _Opened, read: frozenset[int], saves: int, bound: bool) -> Loop:
    """Find out what is needed of loops, where some of their outputs are read, by number."""
    step = opened.body.step
    count, fetches = len(step.fetches) - saves, step.fetches
    live = {i for i in read if i < count} | opened.always
    kept_lists = [
        i for i in range(saves) if count + i in read or fetches[count + i].op in opened.effects
    ]
    saved = [fetches[count + i] for i in kept_lists]
    while True:
        demand = demand_of(step, [*(fetches[i] for i in live), *saved], bound=bound)
        needed = demand.parameters()
        more = {i for i in needed if i < count} - live
        if not more:
            break
        live |= more
    variables = sorted(live)
    kept = [*variables, *sorted(i for i in needed if i >= count)]
    body = Inside(opened.body.function, step, demand, kept)
    asked = opened.cond.demand.parameters()
    kept = [*variables, *sorted(i for i in asked if i >= count)]
    cond = Inside(opened.cond.function, opened.cond.step, opened.cond.demand, kept)
    changed = len(saved) < saves or cond.changed or body.changed
    return Loop(cond, body, variables, kept_lists, changed)


# -- conditions


def _branches(op: Operation, read: frozenset[int], bound: bool, whole: bool) -> Branches:
    """Return what is needed of a condition, where some of its outputs are read; remembered."""
    functions = op.attrs["then_branch"], op.attrs["else_branch"]
    saves = op.attrs["then_saves"], op.attrs["else_saves"]
    count = len(functions[0].results)
    if whole:
        read |= frozenset(range(count))
    derived = functions[0].derived
    key = ("needed", functions[1], saves, read, bound)
    if key not in derived:
        live = sorted(i for i in read if i < count)
        sides, kept_saves, first = [], [], count
        for function, names in zip(functions, saves, strict=True):
            kept = [i for i in range(len(names)) if first + i in read]
            sides.append(_side(function, names, live, kept, bound))
            kept_saves.append(kept)
            first += len(names)
        fewer = len(live) < count or any(
            len(kept) < len(names) for kept, names in zip(kept_saves, saves, strict=True)
        )
        changed = fewer or any(side.changed for side in sides)
        derived[key] = Branches((sides[0], sides[1]), live, (kept_saves[0], kept_saves[1]), changed)
    found: Branches = derived[key]
    return found


def _side(
    function: Function, names: Sequence[str], live: Sequence[int], kept: Sequence[int], bound: bool
) -> Inside:
    key = ("inside", tuple(names))
    if key not in function.derived:
        function.derived[key] = _inside(function, names)
    opened: Inside = function.derived[key]
    fetches, count = opened.step.fetches, len(function.results)
    wanted = [*(fetches[i] for i in live), *(fetches[count + i] for i in kept)]
    demand = demand_of(opened.step, wanted, bound=bound)
    return Inside(function, opened.step, demand, sorted(demand.parameters()))
