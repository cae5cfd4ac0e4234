"""Gradients of resizing, which is linear, and of its gradient."""

from __future__ import annotations

from typing import Any

from headrace.extend import GradientTable, Operation, Tensor
from headrace.ops.array import shape
from headrace.ops.image import resize_grad, resize_op

RULES = GradientTable()


def _size(images: Tensor) -> Any:
    """Return height and width: a list where they are known, else a tensor."""
    known = [images.shape[1], images.shape[2]]
    return shape(images)[1:3] if None in known else known


@RULES.add("Resize")
def _resize(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return resize_grad(grad, _size(op.inputs[0]), **op.attrs), None


@RULES.add("ResizeGrad")
def _resize_grad(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return resize_op(grad, _size(op.inputs[0]), **op.attrs), None
