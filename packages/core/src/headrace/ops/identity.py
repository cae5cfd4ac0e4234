"""Tensors as they are: under a node of their own, without gradient, or with their shape checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Shown
from headrace.shapes import Shape


@op("Identity", total=True, elements_of="input", view=True, early=np.asarray)
def identity(input: Shown) -> Spec:
    """The tensor itself, as a node of its own.

    Args:
        input: [...], any dtype.

    Returns:
        [...], the dtype of ``input``.
    """
    return TensorSpec(input.dtype, input.shape, input.value, input.dims, input.content)


@op("IdentityN")
def identity_n(input: Sequence[Shown]) -> list[Spec]:
    """The tensors themselves, as outputs of one node.

    Args:
        input: Tensors of any dtypes.

    Returns:
        One tensor for each.
    """
    return [TensorSpec(i.dtype, i.shape, i.value, i.dims, i.content) for i in input]


@op(
    "StopGradient",
    total=True,
    elements_of="input",
    view=True,
    early=np.asarray,
    no_gradient="stopping the gradient is its purpose",
)
def stop_gradient(input: Shown) -> Spec:
    """The tensor itself, through which no gradient flows.

    Args:
        input: [...], any dtype.

    Returns:
        [...], the dtype of ``input``.
    """
    return TensorSpec(input.dtype, input.shape, input.value, input.dims, input.content)


@op("PlaceholderWithDefault", public="")
def _placeholder_with_default(input: Anything, shape: Shape) -> Spec:
    """The tensor itself, which may have other values and shapes in steps that feed it.

    Args:
        input: [...], any dtype.
        shape: What is known of the shape of whatever is fed.

    Returns:
        ``shape``, the dtype of ``input``.
    """
    if not input.shape.is_compatible_with(shape):
        raise ShapeError(f"the default has shape {input.shape}, which does not fit {shape}")
    return TensorSpec(input.dtype, shape)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor for steps to feed, which has a value where they do not.

    Args:
        input: [...], the value where none is fed.
        shape: What is known of the shape of all values; None for nothing.
        name: The name of the operation.

    Returns:
        ``shape``, the dtype of ``input``.

    Raises:
        ShapeError: if the default does not have the shape.
    """
    return _placeholder_with_default(input, Shape(shape), name=name or "PlaceholderWithDefault")


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """Return the tensor, which the caller promises not to change from step to step.

    Args:
        input: [...], any dtype.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``input``.
    """
    return identity(input, name="GuaranteeConst" if name is None else name)


@op("EnsureShape", total=True, view=True, public="")
def _ensure_shape(x: Anything, shape: Shape) -> Spec:
    """The tensor, of which the shape is checked when it runs.

    Args:
        x: [...], any dtype.
        shape: The shape that it must have, with None where any size will do.

    Returns:
        What is known of either shape, the dtype of ``x``.
    """
    return TensorSpec(x.dtype, x.shape.merge_with(shape))


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor with a shape stated, and checked when it runs.

    Args:
        x: [...], any dtype.
        shape: The shape that it must have, with None where any size will do.
        name: The name of the operation.

    Returns:
        What is known of either shape, the dtype of ``x``.

    Raises:
        ShapeError: if the shapes are known to be incompatible.
    """
    return _ensure_shape(x, Shape(shape), name=name)
