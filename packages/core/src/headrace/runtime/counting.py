"""Loops that count: how often they run follows from what they start with.

Most loops ask in each round whether a counter has reached a number, a plan of its own for one
comparison. Where the condition only compares counters with numbers that the loop does not change,
the rounds are counted before the first one, in Python's integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.effects import has_effect
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
        step: What is added to it in each round.
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
        """Return before how many rounds the comparison holds, None where that is not known."""
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
class Count:
    """How a loop counts.

    Attributes:
        comparisons: All of them hold as long as the loop goes on.
    """

    comparisons: tuple[_Comparison, ...]

    def rounds(self, arguments: Sequence[Any]) -> int | None:
        """Return how many rounds a loop makes; None where the condition has to be asked.

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


def count_of(loop: Operation) -> Count | None:
    """Return how a ``While`` counts; None where its condition has to be asked in each round."""
    cond: Function = loop.attrs["cond"]
    if cond.is_part or cond.effects or len(cond.results) != 1:
        return None
    # One that does more than compare runs in each round.
    others = [op for op in cond.operations if op.type != "Parameter"]
    if any(has_effect(op) or op.stateful or op.control_inputs for op in others):
        return None
    found = []
    stack = [cond.results[0]]
    while stack:
        op = stack.pop().op
        if op.type == _BOTH and all(t.spec.rank == 0 for t in op.inputs):
            stack.extend(op.inputs)
            continue
        comparison = _comparison(loop, op)
        if comparison is None:
            return None
        found.append(comparison)
    return Count(tuple(found))


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
    """Return what each round adds to a counter of the condition; None where it is not one."""
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
