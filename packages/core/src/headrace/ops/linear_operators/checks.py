"""What is checked of the arguments of linear operators, and static shapes of parts."""

from __future__ import annotations

from typing import Any

from headrace.dimension import Dimension
from headrace.dtypes import DType
from headrace.errors import ArgumentTypeError, ShapeError, shown
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.shapes import Shape


def check_dtype(own: DType, x: Tensor) -> None:
    """Refuse what is not of an operator's own dtype.

    Raises:
        ArgumentTypeError: if it is of another one.
    """
    if x.dtype != own:
        raise ArgumentTypeError(
            f"Expected argument to have dtype {own}.  Found: {x.dtype} in tensor {shown(x)}"
        )


def check_size(own: Dimension, x: Tensor, at: int) -> None:
    """Refuse what does not fit an operator.

    Args:
        own: The operator's size along the axis over which is summed.
        x: What it is applied to.
        at: The axis of ``x``, counted from the end.

    Raises:
        ShapeError: if there is no such axis, or its size is another one.
    """
    dims = x.shape.dims
    if dims is None:
        return
    if len(dims) < -at:
        raise ShapeError(f"expected more than {len(dims)} dimensions, got {shown(x)}")
    if not own.is_compatible_with(dims[at]):
        raise ShapeError(f"dimensions {own} and {dims[at]} are not compatible")


def shape_of(*parts: Any) -> TensorShape:
    """Return a static shape of parts: shapes, lists of sizes."""
    made = Shape(())
    for part in parts:
        made = made.concatenate(Shape(part))
    return TensorShape(made)
