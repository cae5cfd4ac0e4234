"""The backward pass over values that are held or computed again."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, final

from headrace import IndexedSlices, Operation, Tensor
from headrace.errors import AttributeValueError, NoDeviceError, shown
from headrace.extend.graphs import Graph, with_inputs
from headrace.extend.plugins import host
from headrace_autodiff.accumulate import Grad
from headrace_autodiff.checkpointing.again import Again
from headrace_autodiff.checkpointing.budget import Budget
from headrace_autodiff.checkpointing.chain import Stage, repeatable, stages_of
from headrace_autodiff.checkpointing.planning import (
    Action,
    Back,
    Hold,
    Planner,
    keep_all,
    keep_only,
    kept_bytes,
)
from headrace_autodiff.checkpointing.sizes import is_cheap, is_known
from headrace_autodiff.checkpointing.uses import find_uses, holds_functions
from headrace_autodiff.liveness import ALWAYS, Liveness
from headrace_autodiff.walk import ancestors, by_rule


@final
class Replay:
    """Differentiates operations as they were when they ran last, which may be again."""

    def __init__(
        self,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        stop: Sequence[Tensor],
        graph: Graph,
        budget: Budget,
        scope: str,
    ) -> None:
        """Plan the backward pass.

        Raises:
            AttributeValueError: if no plan fits into the budget.
            NoDeviceError: if values are to be held on the host, and no device is another one.
        """
        order = ancestors(ys)
        self._liveness = Liveness(order)
        fixed = frozenset((*ys, *xs, *stop))
        operations = repeatable(order, xs, fixed, self._liveness)
        self._uses = find_uses(ys, xs, stop, graph)
        if budget.on_host:
            _check_other_devices()
        if budget.checkpoints is not None:
            cuts = {t.op for t in budget.checkpoints}
        elif budget.cheap:
            cuts = {op for op in operations if not is_cheap(op)}
        else:
            cuts = None
        stages = stages_of(operations, order, self._uses, cuts)
        self._ends = [stage.last for stage in stages]
        self._actions = iter(_planned(stages, operations, budget) if stages else [])
        self._stage = -1
        self._again = Again(operations, f"{scope}again/", on_host=budget.on_host)
        # What waits for something that may be dead may be dead itself.
        self._again.wait_for(y.op for y in ys if self._liveness.of(y) == ALWAYS)
        self._arrived: dict[Operation, None] = {}

    def differentiate(self, op: Operation, grads: Sequence[Grad]) -> Sequence[Grad]:
        """Return the gradients of an operation's inputs; operations come last to first."""
        if self._ends:
            self._enter(min(bisect.bisect_left(self._ends, op.index), len(self._ends) - 1))
        found = by_rule(self._stand_in(op), grads)
        if self._liveness.of_operation(op) == ALWAYS:
            self._note(found)
        return found

    def _note(self, found: Sequence[Grad]) -> None:
        """Remember gradients from which no other one of the stage was computed."""
        for grad in found:
            if grad is not None:
                op = (grad.values if isinstance(grad, IndexedSlices) else grad).op
                for taken in op.inputs:
                    self._arrived.pop(taken.op, None)
                self._arrived[op] = None

    def _enter(self, stage: int) -> None:
        if self._stage != stage and self._arrived:
            # All of them, those of parameters too: they need the values that make room now.
            self._again.wait_for(self._arrived)
            self._arrived = {}
        while self._stage != stage:
            action = next(self._actions)
            if isinstance(action, Hold):
                self._again.hold(action.tensors)
            elif isinstance(action, Back):
                self._stage = action.stage
                self._again.go_back()
            else:
                self._again.drop()

    def _stand_in(self, op: Operation) -> Operation:
        """Return an operation as its rule should see it."""
        value = self._again.value
        if holds_functions(op):
            # The rule asks the very run for more of what happened inside.
            return self._again.run_of(op)
        used = self._uses.get(op, frozenset((*op.inputs, *op.outputs)))
        return with_inputs(
            op,
            [value(t) if t in used else t for t in op.inputs],
            [value(t) if t in used else t for t in op.outputs],
        )


def _planned(
    stages: Sequence[Stage], operations: Sequence[Operation], budget: Budget
) -> list[Action]:
    if budget.on_host:
        return keep_all(stages)
    if budget.checkpoints is not None:
        return keep_only(stages, frozenset(budget.checkpoints))
    if budget.cheap:
        dear = frozenset(t for op in operations if not is_cheap(op) for t in op.outputs)
        return keep_only(stages, dear)
    whole = kept_bytes(stages)
    if budget.least:
        planner = Planner(stages, whole)
        parts = planner.least_parts(2.0 * planner.forward_cost)
        return keep_all(stages) if parts is None else planner.plan(parts)
    if budget.size is not None:
        _check_sizes(stages)
        size = budget.size
    else:
        assert budget.fraction is not None
        size = int(whole * budget.fraction)
    if size >= whole:
        return keep_all(stages)
    planner = Planner(stages, size)
    if planner.least_parts() is None:
        raise _too_small(stages, whole, size)
    return planner.plan(planner.parts)


def _check_sizes(stages: Sequence[Stage]) -> None:
    for stage in stages:
        for tensor in sorted(stage.used | stage.crossing, key=lambda t: t.op.index):
            if not is_known(tensor):
                raise AttributeValueError(
                    f"gradients: a memory_budget in bytes needs the sizes of all values, and that "
                    f"of {shown(tensor)} is not known before the step; give a fraction such as "
                    "0.3 of "
                    f"what would be kept, or 'memory'\n  at {tensor.op.site}"
                )


def _too_small(stages: Sequence[Stage], whole: int, size: int) -> AttributeValueError:
    planner = Planner(stages, whole)
    parts = planner.least_parts()
    least = whole if parts is None else min(whole, int(parts * planner.unit) + 1)
    return AttributeValueError(
        f"gradients: memory_budget allows {size} bytes for values of the forward pass; these "
        f"gradients need {least} at least, and {whole} to compute nothing again"
    )


def kinds_of_devices() -> list[Any]:
    """Return the kinds of which this machine has devices."""
    return [kind for kind in host().devices if host().count_devices(kind)[0]]


def _check_other_devices() -> None:
    if all(kind.name == "cpu" for kind in kinds_of_devices()):
        raise NoDeviceError(
            "gradients: memory_budget='host' moves values out of the memory of another device; "
            "here the host's cpu is the only one, so that there is nothing to move. Use 'memory', "
            "'speed' or a number instead"
        )
