"""Trip counts: how often loops that count run follows from what they start with.

Most loops ask in each iteration whether a counter has reached a number, a plan of its own for one
comparison. Where the condition only compares counters with numbers that the loop does not change,
the iterations are counted before the first one, in Python's integers. And what only counts is left
out of the body, where it would take a kernel for one sum of two numbers.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.effects import has_effect
from headrace.passes.function_copies import function_of
from headrace.passes.prune import extract
from headrace.records import dataclass
from headrace.scalars.functions import SCALAR_FUNCTIONS

_COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_TURNED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
# The comparison that an operation is, and the one that joins them.
_COMPARISONS = {SCALAR_FUNCTIONS[name].op: name for name in _COMPARES}
_BOTH = SCALAR_FUNCTIONS["logical_and"].op
# The result of ``_Comparison.rounds`` where a counter never gets there.
_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """A counter compared with a number.

    Attributes:
        counter: The number of the counter among the loop's arguments for the condition.
        step: What is added to it in each iteration.
        compare: The name of the comparison, the counter on its left.
        bound: The number of the argument that it is compared with; else the number itself.
        given: Whether ``bound`` is an argument's.
        most: The largest number of the counter's dtype.
    """

    counter: int
    step: int
    compare: str
    bound: int
    given: bool
    most: int

    def rounds(self, arguments: Sequence[Any]) -> int | None:
        """Return before how many iterations the comparison holds, None where that is not known."""
        start = _whole(arguments[self.counter])
        bound = _whole(arguments[self.bound]) if self.given else self.bound
        if start is None or bound is None:
            return None
        if not _COMPARES[self.compare](start, bound):
            return 0
        up = self.compare.startswith("less")
        step = self.step if up else -self.step
        if step <= 0:
            # It moves away, and comes round where the dtype ends.
            return None
        distance = bound - start if up else start - bound
        count = distance // step + 1 if self.compare.endswith("equal") else -(-distance // step)
        last = start + count * self.step
        return count if -self.most - 1 <= last <= self.most else None


@dataclass(frozen=True, slots=True, eq=False)
class TripCount:
    """How a loop counts.

    Attributes:
        comparisons: All of them hold as long as the loop goes on.
    """

    comparisons: tuple[_Comparison, ...]

    def rounds(self, arguments: Sequence[Any]) -> int | None:
        """Return how many iterations a loop makes; None where the condition has to be asked.

        Args:
            arguments: What the condition takes at first.
        """
        least = _ENDLESS
        for comparison in self.comparisons:
            found = comparison.rounds(arguments)
            if found is None:
                return None
            least = min(least, found)
        return least


def trip_count_of(loop: Operation) -> TripCount | None:
    """Return how a ``While`` counts; None where its condition has to be asked in each iteration."""
    found, whole = _comparisons(loop)
    return TripCount(found) if whole else None


def trip_count_limit(loop: Operation) -> TripCount | None:
    """Return how a ``While`` counts that may end before; None where it counts nothing."""
    found, _ = _comparisons(loop)
    return TripCount(found) if found else None


def _comparisons(loop: Operation) -> tuple[tuple[_Comparison, ...], bool]:
    """Return the comparisons of counters that a loop's condition joins, and if it joins no more."""
    cond: Function = loop.attrs["cond"]
    if cond.is_part or cond.effects or len(cond.results) != 1:
        return (), False
    # One that does more than compare runs in each iteration.
    others = [op for op in cond.operations if op.type != "Parameter"]
    if any(has_effect(op) or op.stateful or op.control_inputs for op in others):
        return (), False
    found, whole = [], True
    stack = [cond.results[0]]
    while stack:
        op = stack.pop().op
        if op.type == _BOTH and all(t.spec.rank == 0 for t in op.inputs):
            stack.extend(op.inputs)
            continue
        comparison = _comparison(loop, op)
        if comparison is None:
            whole = False
        else:
            found.append(comparison)
    return tuple(found), whole


@dataclass(frozen=True, slots=True, eq=False)
class WithoutCounters:
    """The body of a loop without what only counts, which is not worth a kernel in each iteration.

    Attributes:
        body: The body; it takes the other variables, then the counters that it reads, then what it
            captured, and returns the other variables.
        saves: What is saved of it, by name.
        others: The other variables, by number, in the order in which it has them.
        read: The counters that it reads, by number, in the order in which it takes them.
        steps: What each iteration adds to each counter, by number.
    """

    body: Function
    saves: tuple[str, ...]
    others: tuple[int, ...]
    read: tuple[int, ...]
    steps: Mapping[int, Any]

    def ordered(self, current: Sequence[Any], counts: Mapping[int, Any]) -> list[Any]:
        """Return the values of all variables, in the order in which the loop has them."""
        found = {**counts, **dict(zip(self.others, current, strict=True))}
        return [found[i] for i in range(len(found))]

    def after(self, counts: Mapping[int, Any], rounds: int) -> dict[int, Any]:
        """Return the counters after some iterations; they come round where their dtype ends."""
        return {i: moved(value, self.steps[i], rounds) for i, value in counts.items()}


def moved(start: Any, step: Any, rounds: int) -> Any:
    """Return a counter after some iterations; it comes round where its dtype ends."""
    bits = 8 * step.dtype.itemsize
    value = int(start) + rounds * int(step)
    return step.dtype.type((value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))


def without_counters(loop: Operation) -> WithoutCounters | None:
    """Return the body of a ``While`` that counts without its counters; None where it has none.

    A counter is a variable to which each iteration adds a number. It is left to the loop where
    nothing else in the body reads the sum, and where it is known how the loop counts.
    """
    if trip_count_of(loop) is None:
        return None
    # Loops that share a body share what becomes of it, or there would be 2^n of them n deep.
    derived = loop.attrs["body"].derived
    key = ("counters apart", tuple(loop.attrs["saves"]))
    if key not in derived:
        derived[key] = _without_counters(loop)
    found: WithoutCounters | None = derived[key]
    return found


def _without_counters(loop: Operation) -> WithoutCounters | None:
    body: Function = loop.attrs["body"]
    if body.is_part:
        return None
    saved = [body.get_tensor_by_name(name) for name in loop.attrs["saves"]]
    uses = Counter(t for op in body.operations for t in op.inputs)
    uses.update((*body.results, *saved))
    waited = {c for op in body.operations for c in (*op.control_inputs, *op.colocated_with)}
    waited.update(body.effects)
    steps: dict[int, Any] = {}
    for i, (held, result) in enumerate(zip(body.parameters, body.results, strict=False)):
        if uses[result] == 1 and result.op not in waited and result.spec.rank == 0:
            step = _step(loop, held)
            if step is not None and result.dtype.name in ("int32", "int64"):
                steps[i] = held.dtype.numpy.type(step)
    if not steps:
        return None
    count = len(body.results)
    others = [i for i in range(count) if i not in steps]
    read = [i for i in steps if uses[body.parameters[i]] > 1]
    inside = extract((), [*(body.results[i] for i in others), *saved], body.effects)
    kept = [*others, *read, *range(count, len(body.parameters))]
    made, fetched = function_of(body, inside, kept, len(others))
    names = tuple(t.name for t in fetched[len(others) :])
    return WithoutCounters(made, names, tuple(others), tuple(read), steps)


def _comparison(loop: Operation, op: Operation) -> _Comparison | None:
    name = _COMPARISONS.get(op.type)
    if name is None or any(t.spec.rank != 0 for t in op.inputs):
        return None
    if op.inputs[0].dtype.name not in ("int32", "int64"):
        return None
    one, other = op.inputs
    for left, right, compare in ((one, other, name), (other, one, _TURNED[name])):
        step, bound = _step(loop, left), _bound(loop, right)
        if step is not None and bound is not None:
            most = int(np.iinfo(left.dtype.numpy).max)
            return _Comparison(left.op.attrs["index"], step, compare, *bound, most)
    return None


def _step(loop: Operation, counter: Tensor) -> int | None:
    """Return what each iteration adds to a counter of the condition; None where it is not one."""
    body: Function = loop.attrs["body"]
    if counter.op.type != "Parameter" or counter.op.attrs["index"] >= len(body.results):
        return None
    index = counter.op.attrs["index"]
    op = body.results[index].op
    if op.type not in ("Add", "Sub") or op.control_inputs:
        return None
    held = body.parameters[index]
    left, right = op.inputs
    if op.type == "Add" and right is held:
        left, right = right, left
    if left is not held or right.op.type != "Const":
        return None
    value = _whole(right.op.attrs["value"])
    return None if value is None else value if op.type == "Add" else -value


def _bound(loop: Operation, tensor: Tensor) -> tuple[int, bool] | None:
    """Return a number that the loop does not change, or which argument of the condition it is."""
    op = tensor.op
    if op.type == "Const":
        value = _whole(op.attrs["value"])
        return None if value is None else (value, False)
    if op.type != "Parameter":
        return None
    index = op.attrs["index"]
    body: Function = loop.attrs["body"]
    if index < len(body.results) and body.results[index] is not body.parameters[index]:
        return None
    return index, True


def _whole(value: Any) -> int | None:
    """Return a scalar of integers as an integer."""
    if not isinstance(value, np.ndarray | np.generic) or value.shape != ():
        return None
    return int(value) if value.dtype.kind == "i" else None
