"""Which values to keep, and in which order to compute the others again.

References:
    T. Chen, B. Xu, C. Zhang, C. Guestrin, Training deep nets with sublinear memory cost,
    arXiv:1604.06174, 2016.
    O. Beaumont, L. Eyraud-Dubois, J. Herrmann, A. Joly, A. Shilova, Optimal checkpointing for
    heterogeneous chains: how to train deep neural networks with limited memory,
    arXiv:1911.13214, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace import Tensor
from headrace_autodiff.checkpointing.chain import Stage
from headrace_autodiff.checkpointing.sizes import total_bytes

# Into how many parts memory is divided: plans are exact but for the rounding of sizes to these.
_PARTS = 400


@dataclass(frozen=True, slots=True)
class Hold:
    """Have tensors, and all that is needed for them, computed; keep them until dropped."""

    tensors: frozenset[Tensor]


@dataclass(frozen=True, slots=True)
class Back:
    """Differentiate a stage."""

    stage: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Let go of what was held last."""


Action = Hold | Back | Drop


def kept_bytes(stages: Sequence[Stage]) -> int:
    """Return what the gradients of stages need of the forward pass, all at once."""
    return total_bytes({t for stage in stages for t in stage.used})


class Planner:
    """Finds the plan of least cost for a memory, by a dynamic program over the stages.

    Stages ``s`` to ``t`` remain to be run and differentiated, and what crosses into ``s`` is held.
    Either all that the gradient of ``s`` needs is kept, and ``s + 1`` to ``t`` remain; or some
    stages run up to a cut and only what crosses it is kept, those after it are run and
    differentiated, and then these again.

    Attributes:
        unit: The bytes of one part of the memory.
    """

    def __init__(self, stages: Sequence[Stage], budget: int) -> None:
        """Plan for all memories up to ``budget`` bytes."""
        self._stages = stages
        self.unit = max(1.0, budget / _PARTS)
        count = len(stages)
        self._forward = np.cumsum([0.0, *(stage.cost for stage in stages)])
        self._saved = [self._parts(self._to_save(s)) for s in range(count)]
        self._crossing = [
            [self._parts(stages[k].crossing - self._before(s)) for k in range(count)]
            for s in range(count)
        ]
        self._cost: dict[tuple[int, int], Any] = {}
        for length in range(1, count + 1):
            for s in range(count - length + 1):
                self._cost[s, s + length - 1] = self._least(s, s + length - 1)

    def _before(self, s: int) -> frozenset[Tensor]:
        return self._stages[s - 1].crossing if s else frozenset()

    def _to_save(self, s: int) -> frozenset[Tensor]:
        stage = self._stages[s]
        return (stage.used | stage.crossing) - self._before(s)

    def _parts(self, tensors: frozenset[Tensor]) -> int:
        return math.ceil(total_bytes(tensors) / self.unit)

    def _least(self, s: int, t: int) -> Any:
        """Return the least cost for each memory, infinite where it does not suffice."""
        found = self._saving(s, t)
        for k in range(s, t):
            found = np.minimum(found, self._advancing(s, k, t))
        return found

    def _saving(self, s: int, t: int) -> Any:
        rest = self._cost[s + 1, t] if s < t else np.zeros(_PARTS + 1)
        return _with_less(rest, self._saved[s]) + self._stages[s].cost

    def _advancing(self, s: int, k: int, t: int) -> Any:
        later = _with_less(self._cost[k + 1, t], self._crossing[s][k])
        return later + self._cost[s, k] + (self._forward[k + 1] - self._forward[s])

    def least_parts(self, cost: float = math.inf) -> int | None:
        """Return the least memory, in parts, in which a plan of at most ``cost`` exists."""
        costs = self._cost[0, len(self._stages) - 1]
        found = np.flatnonzero(np.isfinite(costs) & (costs <= cost))
        return int(found[0]) if found.size else None

    @property
    def parts(self) -> int:
        """How many parts the whole budget has."""
        return _PARTS

    @property
    def forward_cost(self) -> float:
        """What one forward pass costs."""
        return float(self._forward[-1])

    def plan(self, parts: int) -> list[Action]:
        """Return the plan for a memory in which there is one."""
        return list(self._actions(0, len(self._stages) - 1, parts))

    def _actions(self, s: int, t: int, parts: int) -> Iterator[Action]:
        if s > t:
            return
        best = self._cost[s, t][parts]
        if self._saving(s, t)[parts] <= best:
            yield Hold(self._stages[s].used | self._stages[s].crossing)
            yield from self._actions(s + 1, t, parts - self._saved[s])
            yield Back(s)
            yield Drop()
            return
        for k in range(s, t):
            if self._advancing(s, k, t)[parts] <= best:
                yield Hold(self._stages[k].crossing)
                yield from self._actions(k + 1, t, parts - self._crossing[s][k])
                yield Drop()
                yield from self._actions(s, k, parts)
                return
        raise AssertionError("no step of the plan has its cost")


def _with_less(costs: Any, taken: int) -> Any:
    """Return costs by memory, where ``taken`` parts of it are in use."""
    found = np.full(_PARTS + 1, np.inf)
    if taken <= _PARTS:
        found[taken:] = costs[: _PARTS + 1 - taken]
    return found


def keep_all(stages: Sequence[Stage]) -> list[Action]:
    """Return the plan that computes nothing again."""
    return [
        Hold(frozenset(t for stage in stages for t in stage.used)),
        *(Back(s) for s in reversed(range(len(stages)))),
    ]


def keep_only(stages: Sequence[Stage], tensors: frozenset[Tensor]) -> list[Action]:
    """Return the plan that keeps certain tensors, and of the last stage what it needs."""
    return [
        Hold(tensors | stages[-1].used),
        *(Back(s) for s in reversed(range(len(stages)))),
    ]
