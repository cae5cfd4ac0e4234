"""The forward pass as a chain of stages.

What may run again is put in the order of the graph and cut into stages. What crosses a cut, made
before and used after it, is all that the later stages need of the earlier ones, so that any graph
becomes a chain: where values skip stages, more than one crosses.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from headrace import Operation, Tensor
from headrace_autodiff.checkpointing.sizes import bytes_of, cost_of, total_bytes
from headrace_autodiff.checkpointing.uses import Uses
from headrace_autodiff.liveness import ALWAYS, Liveness

# More stages make better plans; planning takes the third power of their number.
MAX_STAGES = 64
# What is smaller is mostly a constant, as which it is better known to others.
_LEAST_BYTES = 256


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the forward pass.

    Attributes:
        last: The index, in the graph, of its last operation.
        cost: What a run of it costs.
        used: The tensors, its own and earlier ones, that its gradient needs.
        crossing: The tensors, its own and earlier ones, that later stages take.
    """

    last: int
    cost: float
    used: frozenset[Tensor]
    crossing: frozenset[Tensor]


def repeatable(
    order: Sequence[Operation],
    starts: Iterable[Tensor],
    fixed: Collection[Tensor],
    liveness: Liveness,
) -> list[Operation]:
    """Return the operations that may run again, in order.

    These are pure: what reads or draws yields the same value to all who take it, and effects come
    about once. What may be dead stays as it is. They depend on the xs, or are an elementwise
    function of something smaller that does not, such as the mask of a dropout, or images in bytes.

    Args:
        order: All operations on which the ys depend, in order.
        starts: The xs.
        fixed: Tensors that must stay themselves: xs, ys, and where gradients stop.
        liveness: Their conditions.
    """
    reached = set(starts)
    found = []
    # What is computed again of what no x reaches, and from what.
    roots: dict[Tensor, frozenset[Tensor]] = {}
    for op in order:
        is_reached = any(t in reached for t in op.inputs)
        if is_reached:
            reached.update(op.outputs)
        if not may_run_again(op, liveness) or any(t in fixed for t in op.outputs):
            continue
        if not is_reached:
            sources = frozenset[Tensor]().union(*(roots.get(t, {t}) for t in op.inputs))
            if not _expands(op, sources):
                continue
            roots.update(dict.fromkeys(op.outputs, sources))
        found.append(op)
    return found


def _expands(op: Operation, sources: frozenset[Tensor]) -> bool:
    """Whether an elementwise operation yields more bytes than what it is computed from has."""
    is_simple = bool(op.inputs) and op.schema.elementwise
    size = total_bytes(op.outputs)
    return is_simple and size >= _LEAST_BYTES and size > total_bytes(sources)


def may_run_again(op: Operation, liveness: Liveness) -> bool:
    """Whether an operation computes the same when it runs again, and nothing else happens."""
    pure = not (op.stateful or op.schema.may_be_dead or op.schema.blocking)
    plain = all(t.dtype.kind not in ("resource", "list") for t in op.outputs)
    # What programs feed stands for no computation.
    fed = op.type in ("Placeholder", "PlaceholderWithDefault")
    return pure and plain and not fed and liveness.of_operation(op) == ALWAYS


def stages_of(
    operations: Sequence[Operation],
    order: Sequence[Operation],
    uses: Uses,
    cut_after: Collection[Operation] | None = None,
) -> list[Stage]:
    """Return operations cut into stages.

    Args:
        operations: What may run again, in order.
        order: All operations of the forward pass, in order.
        uses: What the rules need.
        cut_after: Where to cut; where little crosses if None.
    """
    if not operations:
        return []
    own = {t for op in operations for t in op.outputs}
    last_use = {t: op.index for op in order for t in op.inputs if t in own}
    used = {t for taken in uses.values() for t in taken} & own
    if cut_after is None:
        cuts = _cuts(operations, last_use, used)
    else:
        cuts = [i for i, op in enumerate(operations[:-1]) if op in cut_after]
    return _cut(operations, cuts, last_use, {op: taken & own for op, taken in uses.items()})


def _cuts(
    operations: Sequence[Operation], last_use: dict[Tensor, int], used: set[Tensor]
) -> list[int]:
    """Return the numbers of the operations after which to cut.

    A tensor that only crosses, and that no rule needs, counts twice: keeping it serves nothing
    else.
    """
    scores = []
    weight = 0
    ending: dict[int, int] = {}
    for op in operations:
        weight -= ending.pop(op.index, 0)
        for stale in [i for i in ending if i < op.index]:
            weight -= ending.pop(stale)
        for t in op.outputs:
            end = last_use.get(t, op.index)
            if end > op.index:
                size = bytes_of(t) * (1 if t in used else 2)
                weight += size
                ending[end] = ending.get(end, 0) + size
        scores.append(weight)
    count = len(operations)
    low = [
        i
        for i in range(count - 1)
        if (i == 0 or scores[i] <= scores[i - 1]) and scores[i] <= scores[i + 1]
    ]
    return sorted(_spread(low, operations, used, scores))


def _spread(
    low: Sequence[int], operations: Sequence[Operation], used: set[Tensor], scores: Sequence[int]
) -> list[int]:
    """Return so many cuts as there may be, with about as much to keep between them."""
    if len(low) < MAX_STAGES:
        return list(low)
    kept = list(
        itertools.accumulate(sum(bytes_of(t) for t in op.outputs if t in used) for op in operations)
    )
    whole = kept[-1] + 1
    best: dict[int, int] = {}
    for i in low:
        part = kept[i] * (MAX_STAGES - 1) // whole
        if part not in best or scores[i] <= scores[best[part]]:
            best[part] = i
    return list(best.values())


def _cut(
    operations: Sequence[Operation],
    cuts: Sequence[int],
    last_use: dict[Tensor, int],
    uses: Uses,
) -> list[Stage]:
    stages: list[Stage] = []
    start = 0
    alive: set[Tensor] = set()
    waiting = sorted(uses, key=lambda op: op.index)
    for end in (*cuts, len(operations) - 1):
        part = operations[start : end + 1]
        start = end + 1
        is_last = end == len(operations) - 1
        # Where others stand between two stages, they belong to the first.
        last = operations[-1].index if is_last else operations[start].index - 1
        alive.update(t for op in part for t in op.outputs)
        alive = {t for t in alive if last_use.get(t, -1) > last}
        needed: set[Tensor] = set()
        while waiting and (waiting[0].index <= last or is_last):
            needed |= uses[waiting.pop(0)]
        stages.append(Stage(last, sum(map(cost_of, part)), frozenset(needed), frozenset(alive)))
    return stages
