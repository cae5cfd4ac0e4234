"""Gradients of resizing, which is linear, and of its gradient."""

from __future__ import annotations

from typing import Any

from headrace import Operation, Tensor, shape
from headrace.extend import GradientTable
from headrace.extend.primitives import resize_grad, resize_op

RULES = GradientTable()


def _size(images: Tensor) -> Any:
    """Return height and width: a list where they are known, else a tensor."""
    known = [images.spec.shape[1], images.spec.shape[2]]
    return shape(images)[1:3] if None in known else known


@RULES.add("Resize")
def _resize(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return resize_grad(grad, _size(op.inputs[0]), **op.attrs), None


@RULES.add("ResizeGrad")
def _resize_grad(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return resize_op(grad, _size(op.inputs[0]), **op.attrs), None
