"""Gradients of convolution and pooling, and of their gradients."""

from __future__ import annotations

from headrace.extend import GradientTable, Operation, Tensor
from headrace.graph.schema import call_op
from headrace.ops.constant import shape_of
from headrace.ops.conv import (
    conv2d_backprop_filter,
    conv2d_backprop_input,
    max_pool_grad,
    max_pool_grad_grad,
)

RULES = GradientTable()

# A convolution is linear in its input and in its filter. Its two gradients are the transposes of
# these two linear maps, and so the gradients of any of the three are built of the other two.


def _convolved(op: Operation, images: Tensor, filters: Tensor) -> Tensor:
    result: Tensor = call_op("Conv2D", images, filters, **op.attrs)
    return result


def _to_images(op: Operation, like: Tensor, filters: Tensor, grad: Tensor) -> Tensor:
    return conv2d_backprop_input(shape_of(like), filters, grad, **op.attrs)


def _to_filters(op: Operation, images: Tensor, like: Tensor, grad: Tensor) -> Tensor:
    return conv2d_backprop_filter(images, shape_of(like), grad, **op.attrs)


@RULES.add("Conv2D")
def _conv2d(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    images, filters = op.inputs
    return _to_images(op, images, filters, grad), _to_filters(op, images, filters, grad)


@RULES.add("Conv2DBackpropInput")
def _backprop_input(op: Operation, grad: Tensor) -> tuple[None, Tensor, Tensor]:
    _, filters, out = op.inputs
    return None, _to_filters(op, grad, filters, out), _convolved(op, grad, filters)


@RULES.add("Conv2DBackpropFilter")
def _backprop_filter(op: Operation, grad: Tensor) -> tuple[Tensor, None, Tensor]:
    images, _, out = op.inputs
    return _to_images(op, images, grad, out), None, _convolved(op, images, grad)


# Which elements of the images a pooling picks is piecewise constant in them.


@RULES.add("MaxPool")
def _max_pool(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (max_pool_grad(op.inputs[0], grad, **op.attrs),)


@RULES.add("MaxPoolGrad")
def _max_pool_grad(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, max_pool_grad_grad(op.inputs[0], grad, **op.attrs)


@RULES.add("MaxPoolGradGrad")
def _max_pool_grad_grad(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    return None, max_pool_grad(op.inputs[0], grad, **op.attrs)
