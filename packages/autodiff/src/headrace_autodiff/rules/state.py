"""Gradients of reading state: what flows into a variable's handle."""

from __future__ import annotations

from headrace import IndexedSlices, Operation, Tensor
from headrace.extend import GradientTable

RULES = GradientTable()


@RULES.add("ReadVariable", rows=True)
def _read_variable(op: Operation, grad: Tensor | IndexedSlices) -> tuple[Tensor | IndexedSlices]:
    return (grad,)
