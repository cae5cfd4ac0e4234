"""What is known of a tensor before anything runs."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

import numpy as np

from headrace.dtypes import DType, resource, tensor_list
from headrace.records import dataclass
from headrace.shapes import MOST, SCALAR, UNKNOWN, Shape

_NDArray = np.ndarray[Any, np.dtype[Any]]
# NumPy has no arrays of more dimensions.
MAX_RANK = 64
# NumPy multiplies the sizes that are not 0, of empty arrays too, and they must fit an address.
_MAX_ELEMENTS = 2**59


def is_addressable(shape: Shape) -> bool:
    """Whether there is an array of a shape; what is too large for memory only runs out of it."""
    if not shape.is_fully_defined() or 0 not in shape.known:
        return True
    return math.prod(size for size in shape.known if size) < _MAX_ELEMENTS


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """The dtype and partially known shape of a tensor.

    Attributes:
        dtype: The element type.
        shape: The static shape.
        value: The tensor's value where it is a constant, else None.
        dims: For an integer vector: the shape that it denotes, as far as that is known.
        content: For a resource handle, the spec of what the resource holds; for a list, of its
            items.
    """

    dtype: DType
    shape: Shape = UNKNOWN
    value: _NDArray | None = field(default=None, compare=False, repr=False)
    dims: Shape | None = field(default=None, compare=False, repr=False)
    content: TensorSpec | None = None

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return self.shape.rank

    def with_shape(self, shape: Any) -> TensorSpec:
        """Return this dtype with another shape, and nothing known of the value."""
        return TensorSpec(self.dtype, Shape(shape))

    def with_dtype(self, dtype: DType) -> TensorSpec:
        """Return this shape with another dtype, and nothing known of the value."""
        return TensorSpec(dtype, self.shape)

    def sharpened(self, shape: Shape) -> TensorSpec:
        """Return this spec with what ``shape`` knows besides.

        Raises:
            ShapeError: if the shapes are incompatible.
        """
        merged = self.shape.merge_with(shape)
        if merged == self.shape:
            return self
        return TensorSpec(self.dtype, merged, self.value, self.dims, self.content)

    def __str__(self) -> str:
        if self.content is not None:
            return f"{self.dtype.kind}({self.content})"
        return f"{self.dtype}{self.shape}"


def like(spec: TensorSpec) -> TensorSpec:
    """Return the same dtype and shape, and nothing known of the value."""
    return TensorSpec(spec.dtype, spec.shape, content=spec.content)


def handle_spec(content: TensorSpec | None = None) -> TensorSpec:
    """Return the spec of a handle to a resource; ``content`` is the spec of what it holds."""
    return TensorSpec(resource, SCALAR, content=content)


def list_spec(content: TensorSpec) -> TensorSpec:
    """Return the spec of a list of tensors of the spec ``content``."""
    return TensorSpec(tensor_list, SCALAR, content=content)


def constant_spec(value: _NDArray, dtype: DType) -> TensorSpec:
    """Return the spec of a constant."""
    dims = None
    if dtype.is_integer and value.ndim == 1 and value.size <= 32:
        dims = Shape([None if d < 0 or d > MOST else int(d) for d in value])
    return TensorSpec(dtype, Shape(value.shape), value, dims)


def as_shape(spec: TensorSpec) -> Shape:
    """Return what is known of the shape that an integer vector denotes (-1 is unknown)."""
    if spec.dims is not None:
        return spec.dims
    if spec.value is not None and spec.value.ndim == 1:
        return Shape([None if d < 0 or d > MOST else int(d) for d in spec.value])
    # No tensor has more axes; a longer vector is refused where it is used.
    if spec.rank == 1 and spec.shape.is_fully_defined() and spec.shape.known[0] <= MAX_RANK:
        return Shape([None] * spec.shape.known[0])
    return UNKNOWN
