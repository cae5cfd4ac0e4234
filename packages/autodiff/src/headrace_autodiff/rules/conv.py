"""Gradients of convolutions, and of their gradients.

A convolution is linear in its input and in its filter. Its two gradients are the transposes of
these two linear maps, and so the gradients of any of the three are built of the other two.
"""

from __future__ import annotations

from headrace import Operation, Tensor
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.ops import call_op

RULES = GradientTable()


def _family(op: Operation) -> str:
    """Return "Conv2D" or "Conv3D"."""
    return op.type[: len("Conv2D")]


def _convolved(op: Operation, images: Tensor, filters: Tensor) -> Tensor:
    result: Tensor = call_op(_family(op), images, filters, **op.attrs)
    return result


def _to_images(op: Operation, like: Tensor, filters: Tensor, grad: Tensor) -> Tensor:
    result: Tensor = call_op(
        f"{_family(op)}BackpropInput", shape_of(like), filters, grad, **op.attrs
    )
    return result


def _to_filters(op: Operation, images: Tensor, like: Tensor, grad: Tensor) -> Tensor:
    result: Tensor = call_op(
        f"{_family(op)}BackpropFilter", images, shape_of(like), grad, **op.attrs
    )
    return result


@RULES.add("Conv2D")
@RULES.add("Conv3D")
def _conv(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    images, filters = op.inputs
    return _to_images(op, images, filters, grad), _to_filters(op, images, filters, grad)


@RULES.add("Conv2DBackpropInput")
@RULES.add("Conv3DBackpropInput")
def _backprop_input(op: Operation, grad: Tensor) -> tuple[None, Tensor, Tensor]:
    _, filters, out = op.inputs
    return None, _to_filters(op, grad, filters, out), _convolved(op, grad, filters)


@RULES.add("Conv2DBackpropFilter")
@RULES.add("Conv3DBackpropFilter")
def _backprop_filter(op: Operation, grad: Tensor) -> tuple[Tensor, None, Tensor]:
    images, _, out = op.inputs
    return _to_images(op, images, grad, out), None, _convolved(op, images, grad)
