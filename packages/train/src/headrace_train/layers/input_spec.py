"""Input specifications of a layer: the rank, dtype and sizes of each of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.extend import Tensor
from headrace.extend.arguments import mapping
from headrace.extend.graphs import flatten
from headrace.extend.ops import Shape, as_dtype


class InputSpec:
    """What one input of a layer must be; what is None may be anything.

    Attributes:
        dtype: The name of its dtype.
        shape: Its shape, in which None stands for any size.
        ndim: Its number of dimensions.
        max_ndim: The largest number of dimensions.
        min_ndim: The smallest number of dimensions.
        axes: The sizes of some axes; negative ones count from the last.
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
    ) -> None:
        """Say what the input must be.

        Args:
            dtype: Its dtype.
            shape: Its shape, in which None stands for any size.
            ndim: Its number of dimensions; that of ``shape`` where that is given.
            max_ndim: The largest number of dimensions.
            min_ndim: The smallest number of dimensions.
            axes: From axes to their sizes.

        Raises:
            DTypeError: if an axis is not an integer.
            AttributeValueError: if an axis is beyond the number of dimensions.
        """
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = shape
        self.ndim = ndim if shape is None else len(shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        try:
            self.axes = {int(axis): size for axis, size in mapping(axes, "axes").items()}
        except (TypeError, ValueError):
            raise DTypeError(f"axes must have integers as keys, got {shown(axes)}") from None
        most = self.ndim or self.max_ndim
        if self.axes and most is not None and max(self.axes) >= most:
            raise AttributeValueError(
                f"axis {max(self.axes)} is beyond the largest one of {most} dimensions, {most - 1}"
            )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments with which an equal one is made."""
        names = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> InputSpec:
        """Return one made with the arguments ``config``."""
        return cls(**config)

    def __repr__(self) -> str:
        given = [
            f"{name}={value if name == 'dtype' else repr(value)}"
            for name, value in self.get_config().items()
            if value
        ]
        return f"InputSpec({', '.join(given)})"

    def problem(self, tensor: Tensor) -> str | None:
        """Return what is wrong with an input, None if nothing is."""
        shape = Shape(tensor.shape)
        rank = shape.rank
        if rank is None:
            ranks = (self.ndim, self.min_ndim, self.max_ndim)
            asks = any(value is not None for value in ranks)
            return "the rank must be known; use hr.reshape or set_shape" if asks else None
        if self.ndim is not None and rank != self.ndim:
            return f"expected {self.ndim} dimensions, got shape {shape}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected at most {self.max_ndim} dimensions, got shape {shape}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected at least {self.min_ndim} dimensions, got shape {shape}"
        if self.dtype is not None and tensor.dtype.name != self.dtype:
            return f"expected {self.dtype}, got {tensor.dtype}"
        for axis, size in self.axes.items():
            if size is not None and shape[axis] not in (size, None):
                return f"expected size {size} along axis {axis}, got shape {shape}"
        if self.shape is not None and not shape.is_compatible_with(self.shape):
            return f"expected shape {list(self.shape)}, got {shape}"
        return None


def check_inputs(spec: Any, inputs: Any, layer: str) -> None:
    """Refuse inputs that a layer does not take.

    Args:
        spec: An ``InputSpec``, a nested structure of them, or None.
        inputs: A tensor, or a structure of them.
        layer: The layer's name, for the message.

    Raises:
        ShapeError: if their number, rank, dtype or sizes are others.
    """
    if not spec:
        return
    specs, tensors = flatten(spec), flatten(inputs, composites=False)
    if len(specs) != len(tensors):
        raise ShapeError(f"layer {layer!r} takes {len(specs)} inputs, got {len(tensors)}")
    for i, (wanted, tensor) in enumerate(zip(specs, tensors, strict=True)):
        wrong = None if wanted is None else wanted.problem(tensor)
        if wrong is not None:
            which = f"input {i}" if len(tensors) > 1 else "the input"
            raise ShapeError(
                f"layer {layer!r} does not take {which}: {wrong}; hr.reshape and hr.expand_dims "
                "give it other axes"
            )
