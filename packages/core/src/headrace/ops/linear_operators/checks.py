"""What is checked of the arguments of linear operators, and static shapes of parts."""

from __future__ import annotations

from typing import Any

from headrace.dimension import Dimension
from headrace.dtypes import DType
from headrace.errors import ArgumentTypeError, ShapeError, shown
from headrace.graph.tensor_shape import TensorShape
from headrace.shapes import Shape


class Checks:
    """Checks of what an operator is applied to."""

    @property
    def dtype(self) -> DType:
        """The dtype of the matrix."""
        raise NotImplementedError

    def _dimension(self, axis: int) -> Dimension:
        raise NotImplementedError

    def _check_dtype(self, x: Any) -> None:
        if x.dtype != self.dtype:
            raise ArgumentTypeError(
                f"Expected argument to have dtype {self.dtype}.  Found: {x.dtype} in tensor "
                f"{shown(x)}"
            )

    def _check_size(self, axis: int, x: Any, at: int) -> None:
        dims = x.shape.dims
        if dims is None:
            return
        if len(dims) < -at:
            raise ShapeError(f"expected more than {len(dims)} dimensions, got {shown(x)}")
        own = self._dimension(axis)
        if not own.is_compatible_with(dims[at]):
            raise ShapeError(f"dimensions {own} and {dims[at]} are not compatible")


def shape_of(*parts: Any) -> TensorShape:
    """Return a static shape of parts: shapes, lists of sizes."""
    made = Shape(())
    for part in parts:
        made = made.concatenate(Shape(part))
    return TensorShape(made)
