"""Gradients of what hands tensors through."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import IndexedSlices, Operation, Tensor
from headrace.extend import GradientTable

RULES = GradientTable()

Grad = Tensor | IndexedSlices | None


@RULES.add("Identity", rows=True)
def _identity(op: Operation, grad: Grad) -> tuple[Grad]:
    return (grad,)


@RULES.add("IdentityN", rows=True)
def _identity_n(op: Operation, *grads: Grad) -> Sequence[Grad]:
    return grads


@RULES.add("PlaceholderWithDefault", rows=True)
@RULES.add("EnsureShape", rows=True)
def _ensure_shape(op: Operation, grad: Grad) -> tuple[Grad]:
    return (grad,)
