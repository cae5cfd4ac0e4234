"""Which values of the forward pass the gradient rules need.

Nobody declares that: a trial run of the rules tells. It builds the backward pass in a function of
its own that is thrown away, and sees which tensors of the graph come in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace import Graph, Operation, Tensor, device, name_scope
from headrace.extend.graphs import Function, inside
from headrace_autodiff.accumulate import Grad
from headrace_autodiff.backward import carries, gradient_spec
from headrace_autodiff.walk import Walk, by_rule

Uses = dict[Operation, frozenset[Tensor]]


def holds_functions(op: Operation) -> bool:
    """Whether an operation is a call, a condition or a loop."""
    return any(isinstance(value, Function) for value in op.attrs.values())


class _Trial(Function):
    """A function that remembers what it was asked to take in."""

    def __init__(self, outer: Graph) -> None:
        super().__init__("gradients_trial", outer)
        self.seen: set[Tensor] = set()

    def capture(self, tensor: Tensor) -> Tensor:
        if tensor.op.graph is not self:
            self.seen.add(tensor)
        return super().capture(tensor)


def find_uses(
    ys: Sequence[Tensor], xs: Sequence[Tensor], stop: Sequence[Tensor], graph: Graph
) -> Uses:
    """Return for each operation that will be differentiated the tensors that its rule takes.

    Operations that hold functions are taken to need all that goes in and comes out.
    """
    trial = _Trial(graph)
    uses: Uses = {}

    @contextmanager
    def scopes(op: Operation) -> Iterator[None]:
        with name_scope(op.name), device(op.device_name):
            yield

    def differentiate(op: Operation, grads: Sequence[Grad]) -> Sequence[Grad]:
        if holds_functions(op):
            uses[op] = frozenset((*op.inputs, *op.outputs))
            return [_some(trial, t) if carries(t) else None for t in op.inputs]
        trial.seen.clear()
        found = by_rule(op, grads)
        uses[op] = frozenset(trial.seen)
        return found

    with inside(trial):
        walk = Walk(ys, xs, stop, scopes, differentiate)
        for y in ys:
            if y.dtype.is_differentiable:
                walk.start(y, _some(trial, y))
        walk.run()
    return uses


def _some(trial: _Trial, tensor: Tensor) -> Any:
    return trial.add_parameter(gradient_spec(tensor), "grad")
