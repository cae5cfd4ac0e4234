"""Gradients of branching.

The gradient of a tensor is alive in a step exactly if the tensor is. A gradient that comes out of
one branch only is therefore merged with zeros that live where the branch does not; ``liveness``
does the same for every other op that takes tensors from outside its branch.
"""

from __future__ import annotations

from headrace import Operation, Tensor, merge, switch, zeros_like
from headrace.extend import GradientTable

RULES = GradientTable()


@RULES.add("Switch")
def _switch(op: Operation, if_false: Tensor | None, if_true: Tensor | None) -> tuple[Tensor, None]:
    if if_false is None or if_true is None:
        idle = switch(zeros_like(op.inputs[0]), op.inputs[1])
        if_false = idle[0] if if_false is None else if_false
        if_true = idle[1] if if_true is None else if_true
    return merge([if_false, if_true])[0], None


@RULES.add("Merge")
def _merge(op: Operation, grad: Tensor, _: None) -> list[Tensor]:
    # The walk confines each of these to the steps in which its input was alive.
    return [grad] * len(op.inputs)
