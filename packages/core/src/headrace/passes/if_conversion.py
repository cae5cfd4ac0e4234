"""If-conversion: both branches are computed where they cost less than the choice of one.

A condition runs one of two functions: its predicate is asked in Python, and what surrounds it is
compiled apart. Where both branches take less time than that, both are computed, and every result
is chosen element by element, in one kernel with what comes before and behind. Nothing but time
tells the difference: only what cannot fail and has no effect
(``headrace.scalars.expression.is_total``) is computed unasked, and of the branch that is not taken
nothing is seen, NaN or not.

What a branch saves for its gradient is in a list, which is empty where the branch did not run. It
is read by a condition on the same predicate. Where both are chosen, the tensor itself is handed
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.passes.function_copies import unique_name
from headrace.passes.inline_calls import called_size, inline_calls
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.records import dataclass
from headrace.scalars.expression import expression_of, is_total

# A condition takes five microseconds or more. In one of them a core computes some thousand
# elements of a function that its vectors have.
_MOST_WORK = 8192
# Where nothing is compiled, each operation is a call.
_MOST_OPERATIONS = 64
_MOST_LOOKED_AT = 4 * _MOST_OPERATIONS
# So many of them are one that is not rounded correctly, such as ``exp``.
_INEXACT = 8
# Of what kinds elements can be chosen in a kernel.
_CHOSEN = frozenset(("float", "int", "uint", "bool"))


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """A branch that may run unasked.

    Attributes:
        inside: Its inside: the results of the function, and behind them what is saved of it.
        lists: For each parameter that is a list, what stands for the item that is taken off it.
        work: How many elements of simple functions it computes.
    """

    inside: StepGraph
    lists: dict[int, list[Tensor]]
    work: int


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """A condition that may be chosen from.

    Attributes:
        sides: Its branches, the one for true first.
        count: How many results it has.
    """

    sides: tuple[_Branch, _Branch]
    count: int

    def lists(self, op: Operation) -> list[tuple[int, Tensor]]:
        """Return the lists that it takes, each with the side that takes it."""
        _, then, other = op.grouped_inputs
        return [
            (side, given[index])
            for side, given in enumerate((then, other))
            for index in self.sides[side].lists
        ]


def choose_branches(step: StepGraph) -> StepGraph:
    """Return the step with small conditions that cannot fail replaced by choices of elements."""
    return _choose(step, {})


# By a branch and what is saved of it.
_Known = dict[tuple[Function, tuple[str, ...]], "_Branch | None"]


def _choose(step: StepGraph, known: _Known) -> StepGraph:
    conditions = [op for op in step.graph.operations if op.type == "If"]
    if not conditions or any(op.schema.may_be_dead for op in step.graph.operations):
        # What is dead is so for all of a condition.
        return step
    found = {op: choice for op in conditions if (choice := _choice(op, known)) is not None}
    _keep_together(step, found)
    if not found:
        return step
    rewriter = Rewriter("choose")
    waited = {c for op in step.graph.operations for c in (*op.control_inputs, *op.colocated_with)}
    waited.update(step.targets)
    saved: dict[Tensor, Tensor] = {}
    names = {op.name for op in step.graph.operations}
    for op in step.graph.operations:
        if op in found:
            _chosen(rewriter, op, found[op], saved, names, op in waited)
        else:
            rewriter.copy(op)
    return rewriter.finish(step)


def _keep_together(step: StepGraph, found: dict[Operation, _Choice]) -> None:
    """Leave conditions as they are that share a list with one that stays, or with none."""
    while True:
        takers: dict[Tensor, list[Operation | None]] = {}
        for op in step.graph.operations:
            if op in found:
                for side, tensor in found[op].lists(op):
                    alike = tensor.op in found and _side_of(tensor, found[tensor.op]) == side
                    alike = alike and tensor.op.inputs[0] is op.inputs[0]
                    takers.setdefault(tensor, []).append(op if alike else None)
            else:
                for tensor in op.inputs:
                    takers.setdefault(tensor, []).append(None)
        for tensor in step.fetches:
            takers.setdefault(tensor, []).append(None)
        apart = {
            op
            for op, choice in found.items()
            if any(None in takers[tensor] for _, tensor in choice.lists(op))
            or any(None in takers.get(tensor, ()) for tensor in op.outputs[choice.count :])
        }
        if not apart:
            return
        for op in apart:
            del found[op]


def _side_of(tensor: Tensor, choice: _Choice) -> int:
    """Return of which branch a list is, -1 for a result."""
    index = tensor.op.outputs.index(tensor) - choice.count
    then = len(choice.sides[0].inside.fetches) - choice.count
    return -1 if index < 0 else int(index >= then)


def _choice(op: Operation, known: _Known) -> _Choice | None:
    """Return a condition whose branches may both run, None if this one's may not."""
    then, other = op.attrs["then_branch"], op.attrs["else_branch"]
    if then.is_part or other.is_part or not op.outputs or op.inputs[0].spec.rank != 0:
        return None
    for a, b in zip(then.results, other.results, strict=True):
        if a.spec.shape != b.spec.shape or not a.spec.shape.is_fully_defined():
            return None
        if a.dtype.kind not in _CHOSEN:
            return None
    sides = []
    for function, saves in ((then, "then_saves"), (other, "else_saves")):
        key = function, tuple(op.attrs[saves])
        if key not in known:
            known[key] = _branch(function, key[1], known)
        found = known[key]
        if found is None or not _is_near(op, found.inside):
            return None
        sides.append(found)
    if sum(side.work for side in sides) > _MOST_WORK:
        return None
    if sum(len(side.inside.graph) for side in sides) > _MOST_OPERATIONS:
        return None
    return _Choice((sides[0], sides[1]), len(then.results))


def _is_near(op: Operation, inside: StepGraph) -> bool:
    """Whether all of a branch may run where its condition does."""
    names = {each.device_name for each in inside.graph.operations if each.type != "Parameter"}
    return all(name == op.device_name or not str(name) for name in names)


def _branch(function: Function, saves: tuple[str, ...], known: _Known) -> _Branch | None:
    # Large ones are not even looked at: those in others would be, again and again.
    if function.effects or called_size(function, {}) > _MOST_LOOKED_AT:
        return None
    saved = [function.get_tensor_by_name(name) for name in saves]
    inside = prune(inline_calls(extract((), [*function.results, *saved], ())))
    inside = _choose(inside, known)
    lists: dict[int, list[Tensor]] = {}
    listed: set[Tensor] = set()
    work = 0
    for op in inside.graph.operations:
        if op.control_inputs or op.colocated_with:
            return None
        if op.type == "Parameter":
            if op.outputs[0].dtype.kind == "list":
                lists[op.attrs["index"]] = []
                listed.add(op.outputs[0])
        elif op.type == "TensorListPop" and op.inputs[0] in listed:
            lists[op.inputs[0].op.attrs["index"]].append(op.outputs[1])
        elif op.type != "Const":
            if not is_total(op):
                return None
            work += _work(op)
    # What is left of a list is nobody's.
    read = [*(t for op in inside.graph.operations for t in op.inputs), *inside.fetches]
    if any(t.dtype.kind == "list" and t not in listed for t in read):
        return None
    if any(t in listed for t in inside.fetches):
        return None
    return _Branch(inside, lists, work)


def _work(op: Operation) -> int:
    """Return how many elements of simple functions an operation computes, not too few."""
    if op.schema.view:
        return 0
    made, taken = sum(map(_size, op.outputs)), sum(map(_size, op.inputs))
    expression = expression_of(op)
    if expression is not None:
        return max(made, 1) * len(expression.steps) * (1 if op.schema.exact else _INEXACT)
    whole = [t for t in op.inputs if (t.spec.rank or 0) > 1]
    if len(whole) == 2:
        # Each element of a product is made of a row and a column.
        return made * max(max(t.spec.shape.known) for t in whole)
    return (made + taken) * (1 if op.schema.reduction or op.schema.exact else 2)


def _size(tensor: Tensor) -> int:
    return prod(tensor.spec.shape.known)


def _chosen(
    rewriter: Rewriter,
    op: Operation,
    choice: _Choice,
    saved: dict[Tensor, Tensor],
    names: set[str],
    waited: bool,
) -> None:
    """Add both branches of a condition, and a choice for each result.

    Args:
        rewriter: What the step is rewritten by.
        op: The condition.
        choice: What it is.
        saved: What stands for the only item of each list; that of this condition is added.
        names: The names that operations have.
        waited: Whether others wait for the condition.
    """
    pred, *inputs = op.grouped_inputs
    outer = rewriter.controls(op.control_inputs)
    sides = [
        _beside(rewriter, op, side, given, saved, names)
        for side, given in zip(choice.sides, inputs, strict=True)
    ]
    then, other = (found[: choice.count] for found in sides)
    lists = [t for found in sides for t in found[choice.count :]]
    saved.update(zip(op.outputs[choice.count :], lists, strict=True))
    made = []
    for old, a, b in zip(op.outputs, then, other, strict=False):
        if a is b and not outer:
            rewriter.stand_for_tensor(old, a)
            continue
        new = rewriter.graph.add_operation(
            OPS["Select"],
            name=unique_name(f"{op.name}/chosen", names),
            inputs=[rewriter.tensor(pred), a, b],
            arity=(1, 1, 1),
            attrs={},
            specs=[TensorSpec(a.dtype, a.spec.shape)],
            control_inputs=outer,
            device=op.device_name,
            site=op.site,
            origin=f"{rewriter.name} of {op.name!r}",
        )
        made.append(new)
        rewriter.stand_for_tensor(old, new.outputs[0])
    if waited:
        gate = rewriter.graph.add_operation(
            OPS["NoOp"],
            name=op.name,
            inputs=[],
            arity=(),
            attrs={},
            specs=[],
            control_inputs=tuple(made) or outer,
            device=op.device_name,
            site=op.site,
            origin=f"{rewriter.name} of {op.name!r}",
        )
        rewriter.stand_for_operation(op, gate)


def _beside(
    rewriter: Rewriter,
    condition: Operation,
    side: _Branch,
    given: Sequence[Tensor],
    saved: dict[Tensor, Tensor],
    names: set[str],
) -> list[Tensor]:
    """Add a branch to the graph of its condition; return what stands there for what it yields."""
    graph, tensors = rewriter.graph, dict[Tensor, Tensor]()
    for op in side.inside.graph.operations:
        if op.type == "Parameter":
            index = op.attrs["index"]
            if index not in side.lists:
                tensors[op.outputs[0]] = rewriter.tensor(given[index])
                continue
            for item in side.lists[index]:
                tensors[item] = saved[given[index]]
            continue
        if op.type == "TensorListPop":
            continue
        new = graph.add_operation(
            op.schema,
            name=unique_name(f"{condition.name}/{op.name}", names),
            inputs=[tensors[t] for t in op.inputs],
            arity=op.arity,
            attrs=op.attrs,
            specs=[t.spec for t in op.outputs],
            device=condition.device_name,
            site=op.site,
            origin=op.origin or f"{rewriter.name} of {condition.name!r}",
            gradient_rule=op.gradient_rule,
        )
        tensors.update(zip(op.outputs, new.outputs, strict=True))
    return [tensors[t] for t in side.inside.fetches]
