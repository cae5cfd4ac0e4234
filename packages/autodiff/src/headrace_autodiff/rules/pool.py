"""Gradients of pooling, and of its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import Operation, Tensor
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.primitives import (
    avg_pool_grad,
    avg_pool_op,
    extract_patches_grad,
    extract_patches_op,
    max_pool_grad,
    max_pool_grad_grad,
)

RULES = GradientTable()

# Which elements of the images a pooling picks is piecewise constant in them.


@RULES.add("MaxPool")
def _max_pool(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (_of_images(op.inputs[0], grad, op.attrs),)


def _of_images(images: Tensor, grad: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    made: Tensor = max_pool_grad(images, grad, **attrs)
    made.op.graph.piecewise_constant.add(made.op.index)
    return made


@RULES.add("MaxPoolGrad")
def _max_pool_grad(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, max_pool_grad_grad(op.inputs[0], grad, **op.attrs)


@RULES.add("MaxPoolGradGrad")
def _max_pool_grad_grad(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, max_pool_grad(op.inputs[0], grad, **op.attrs)


@RULES.add("MaxPoolWithArgmax")
def _max_pool_with_argmax(
    op: Operation, grad: Tensor | None, of_places: Tensor | None
) -> tuple[Tensor | None]:
    if grad is None:
        return (None,)
    named = ("ksize", "strides", "padding", "data_format")
    return (_of_images(op.inputs[0], grad, {key: op.attrs[key] for key in named}),)


# Means and patches are linear in the images.


@RULES.add("AvgPool")
def _avg_pool(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (avg_pool_grad(shape_of(op.inputs[0]), grad, **op.attrs),)


@RULES.add("AvgPoolGrad")
def _avg_pool_grad(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, avg_pool_op(grad, **op.attrs)


@RULES.add("ExtractPatches")
def _extract_patches(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (extract_patches_grad(shape_of(op.inputs[0]), grad, **op.attrs),)


@RULES.add("ExtractPatchesGrad")
def _extract_patches_grad(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, extract_patches_op(grad, **op.attrs)
