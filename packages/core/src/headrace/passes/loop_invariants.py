"""Loop-invariant code motion: what is the same in each iteration is computed before the loop.

A loop computes anew, iteration by iteration, what depends on nothing that changes: the transpose of
a weight, the part of it that a gradient multiplies with, a scale. Here such operations move in
front of the loop, and the loop is given their results. Only operations that cannot fail move
(``headrace.scalars.expression.is_total``), since the loop may make no iteration; and only those
whose results are no larger than what they are made of, since one that is broadcast where it is used
costs less than reading it.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import Any, TypeAlias

from headrace.device_name import DeviceName
from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.function_copies import function_of
from headrace.passes.inline_calls import inline_calls
from headrace.passes.liveness import is_open
from headrace.passes.narrow_products import narrow_products
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.records import dataclass
from headrace.scalars.expression import is_total


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """A loop's body with what can move out of it.

    Attributes:
        moved: What moves, in order.
        wanted: What of it is given to the loop.
        body: The body that takes it.
        saves: The names in it of what the loop saves.
    """

    moved: list[Operation]
    wanted: list[Tensor]
    body: Function
    saves: tuple[str, ...]


# By a loop's body, what it saves of it, and where it runs: loops that share a body n deep have 2^n
# ways through them, and share what becomes of it.
_Known: TypeAlias = dict[tuple[Function, tuple[str, ...], DeviceName], _Opened | None]


def hoist_invariants(step: StepGraph) -> StepGraph:
    """Return the step with what all iterations of a loop have in common computed before it."""
    return _hoist(step, {})


def _hoist(step: StepGraph, known: _Known) -> StepGraph:
    loops = [op for op in step.graph.operations if is_open(op)]
    found = {op: opened for op in loops if (opened := _opened(op, known)) is not None}
    if not found:
        return step
    rewriter = Rewriter("hoist")
    for op in step.graph.operations:
        opened = found.get(op)
        if opened is None:
            rewriter.copy(op)
        else:
            _hoisted(rewriter, op, opened)
    return rewriter.finish(step)


def _opened(loop: Operation, known: _Known) -> _Opened | None:
    """Return what can move out of a loop, None where nothing can."""
    key = loop.attrs["body"], tuple(loop.attrs["saves"]), loop.device_name
    if key not in known:
        known[key] = _open(loop, known)
    return known[key]


def _open(loop: Operation, known: _Known) -> _Opened | None:
    body: Function = loop.attrs["body"]
    count = len(body.results)
    saves = [body.get_tensor_by_name(name) for name in loop.attrs["saves"]]
    inside = prune(inline_calls(extract((), [*body.results, *saves], body.effects)))
    # A product of which one part is needed may then be one with a part of a weight.
    inside = prune(narrow_products(inside))
    # What is the same in all iterations of a loop inside may be so in those of this one.
    inside = _hoist(inside, known)
    moved = _worth_moving(inside, _invariant(loop, inside, count))
    if not moved:
        return None
    inner = set(moved)
    read = [t for op in inside.graph.operations if op not in inner for t in op.inputs]
    wanted = [t for t in dict.fromkeys((*read, *inside.fetches)) if t.op in inner]
    rest = extract(wanted, inside.fetches, inside.targets)
    new, fetched = function_of(body, rest, range(len(body.parameters)), count)
    return _Opened(moved, wanted, new, tuple(t.name for t in fetched[count:]))


def _invariant(loop: Operation, inside: StepGraph, count: int) -> dict[Operation, None]:
    """Return the operations of a body that yield the same each time and may move, in order."""
    waited = {c for op in inside.graph.operations for c in op.control_inputs}
    waited.update(inside.targets)
    same: set[Tensor] = set()
    found: dict[Operation, None] = {}
    for op in inside.graph.operations:
        if op.type == "Const":
            same.update(op.outputs)
        elif op.type == "Parameter":
            index = op.attrs["index"]
            if index >= count or inside.fetches[index] is op.outputs[0]:
                same.update(op.outputs)
        elif (
            same.issuperset(op.inputs)
            and op not in waited
            and not op.control_inputs
            and not op.colocated_with
            and op.device_name == loop.device_name
            and any(t.op.type != "Const" for t in op.inputs)
            and is_total(op)
        ):
            same.update(op.outputs)
            found[op] = None
    return found


def _worth_moving(inside: StepGraph, movable: Collection[Operation]) -> list[Operation]:
    """Return those of which what stays behind reads no views and nothing that was made larger."""
    moved = set(movable)
    stays: set[Tensor] = set(inside.fetches)
    for op in reversed(inside.graph.operations):
        if op in moved and not stays.isdisjoint(op.outputs) and not _saves_work(op):
            moved.discard(op)
        if op not in moved:
            stays.update(op.inputs)
    # What only others that stay behind have used is not there any more.
    read = {t for op in inside.graph.operations if op not in moved for t in op.inputs}
    read.update(inside.fetches)
    for op in reversed(inside.graph.operations):
        if op in moved and read.isdisjoint(op.outputs):
            moved.discard(op)
        elif op in moved:
            read.update(op.inputs)
    return [op for op in movable if op in moved]


def _saves_work(op: Operation) -> bool:
    """Whether what an operation yields is read for less than computing it anew costs."""
    # Another view of the same numbers costs nothing where it is.
    return not op.schema.view and sum(map(_size, op.outputs)) <= sum(map(_size, op.inputs))


def _size(tensor: Tensor) -> int:
    return prod(tensor.spec.shape.known) * tensor.spec.dtype.size


def _hoisted(rewriter: Rewriter, loop: Operation, opened: _Opened) -> None:
    """Add what moves, and a loop that takes the results."""
    attrs: dict[str, Any] = dict(loop.attrs)
    attrs["body"], attrs["saves"] = opened.body, opened.saves
    results = _computed_before(rewriter, loop, opened)
    made = rewriter.copy_with(
        loop,
        inputs=[*map(rewriter.tensor, loop.inputs), *results],
        arity=(*loop.arity[:2], loop.arity[2] + len(results)),
        attrs=attrs,
    )
    for old, tensor in zip(loop.outputs, made.outputs, strict=True):
        rewriter.stand_for_tensor(old, tensor)


def _computed_before(rewriter: Rewriter, loop: Operation, opened: _Opened) -> list[Tensor]:
    """Add what moves before a loop, and return what stands there for tensors of its inside."""
    count = len(loop.attrs["body"].results)
    after = loop.arity[0] + loop.arity[1] - count
    graph, tensors = rewriter.graph, dict[Tensor, Tensor]()

    def moved(op: Operation) -> None:
        for tensor in op.inputs:
            if tensor in tensors:
                continue
            if tensor.op.type == "Parameter":
                index = tensor.op.attrs["index"]
                taken = loop.inputs[index if index < count else after + index]
                tensors[tensor] = rewriter.tensor(taken)
            else:
                moved(tensor.op)
        new = graph.add_operation(
            op.schema,
            name=graph.unique_full_name(f"{loop.name}/{op.name}"),
            inputs=[tensors[t] for t in op.inputs],
            arity=op.arity,
            attrs=op.attrs,
            specs=[t.spec for t in op.outputs],
            device=op.device_name,
            site=op.site,
            origin=op.origin or f"{rewriter.name} of {op.name!r}",
            gradient_rule=op.gradient_rule,
        )
        tensors.update(zip(op.outputs, new.outputs, strict=True))

    # In their order, so that only constants are found by those who read them.
    for op in opened.moved:
        moved(op)
    return [tensors[t] for t in opened.wanted]
