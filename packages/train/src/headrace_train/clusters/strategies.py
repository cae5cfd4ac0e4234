"""Strategies: which task of a job keeps the next variable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import final

from headrace import Operation
from headrace.errors import AttributeValueError, ShapeError, told
from headrace.extend.arguments import whole

# More tasks than any cluster has.
_MOST_TASKS = 1 << 20


def _check_tasks(num_tasks: int) -> int:
    if whole(num_tasks, "num_tasks") < 1:
        raise AttributeValueError(f"a strategy needs at least one task, got {told(num_tasks)}")
    return whole(num_tasks, "num_tasks", most=_MOST_TASKS)


@final
class RoundRobinStrategy:
    """Chooses one task after the other.

    Args:
        num_tasks: How many there are.
    """

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = _check_tasks(num_tasks)
        self._next = 0

    def __call__(self, op: Operation) -> int:
        """Return the index of the task for an operation."""
        chosen, self._next = self._next, (self._next + 1) % self._num_tasks
        return chosen


@final
class GreedyLoadBalancingStrategy:
    """Chooses the task with the least load so far, the first of several.

    Args:
        num_tasks: How many there are.
        load_fn: Says how much an operation adds to the load of its task.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        self._loads = [0.0] * _check_tasks(num_tasks)
        self._load_fn = load_fn

    def __call__(self, op: Operation) -> int:
        """Return the index of the task for an operation."""
        chosen = min(range(len(self._loads)), key=self._loads.__getitem__)
        self._loads[chosen] += self._load_fn(op)
        return chosen


@final
class RandomStrategy:
    """Chooses a task by the operation's name alone: the same in every program.

    Args:
        num_ps_tasks: How many there are.
        seed: Another one gives another choice.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = _check_tasks(num_ps_tasks)
        self._seed = seed

    def __call__(self, op: Operation) -> int:
        """Return the index of the task for an operation."""
        digest = hashlib.md5(f"{op.name}_{self._seed}".encode(), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self._num_tasks


def byte_size_load_fn(op: Operation) -> int:
    """Return the bytes of a variable, or of the one output of another operation.

    Raises:
        ShapeError: if the operation has not one output, or its shape is not fully known.
    """
    if len(op.outputs) != 1:
        raise ShapeError(
            f"operation {op.name!r} ({op.type}) has {len(op.outputs)} outputs, expected one"
        )
    spec = op.outputs[0].spec
    held = spec if spec.content is None else spec.content
    count = held.shape.num_elements()
    if count is None:
        raise ShapeError(
            f"{op.outputs[0].name!r} has shape {held.shape}, of which nobody knows the bytes"
        )
    return count * held.dtype.itemsize
