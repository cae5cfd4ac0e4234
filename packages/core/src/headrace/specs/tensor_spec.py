"""``TensorSpec``: the shape, dtype and name that tensors have, as programs state them."""

from __future__ import annotations

from typing import Any, final

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.specs.type_spec import TypeSpec, describe


@final
class TensorSpec(TypeSpec):
    """The shape, dtype and perhaps the name of tensors. Equal ones hash alike."""

    __slots__ = ("_dtype", "_name", "_shape")

    value_type = Tensor

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        """State them.

        Args:
            shape: The shape, None where it is unknown.
            dtype: The dtype.
            name: The name.

        Raises:
            HeadraceError: if ``shape`` is no shape, or ``dtype`` no dtype.
        """
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """Return the spec of something that has a shape and dtype.

        Args:
            spec: The object.
            name: The name; that of ``spec`` if None.
        """
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Return the spec of a tensor.

        Args:
            tensor: The tensor.
            name: The name; that of the operation if None.

        Raises:
            AttributeValueError: if it is no tensor.
        """
        if not isinstance(tensor, Tensor):
            raise AttributeValueError(f"`tensor` should be a Tensor, got {shown(tensor)}")
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, None where it has none."""
        return self._name

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Return whether a tensor, or data that make one, may be of this shape and dtype.

        Args:
            spec_or_tensor: A spec, a tensor or data.
        """
        other = spec_or_tensor
        if isinstance(other, TypeSpec) and not isinstance(other, TensorSpec):
            return False
        if not isinstance(other, TensorSpec | Tensor):
            try:
                other = convert_to_tensor(other, self._dtype)
            except (TypeError, ValueError):
                return False
        return bool(
            self._dtype.is_compatible_with(other.dtype)
            and self._shape.is_compatible_with(other.shape)
        )

    def most_specific_compatible_type(self, other: TypeSpec) -> TensorSpec:
        """Return the spec of all tensors that are of this one or another, and of as few as can be.

        Args:
            other: The other one.

        Raises:
            ArgumentTypeError: if it is no spec.
            AttributeValueError: if it has another dtype.
        """
        if not isinstance(other, TensorSpec):
            raise ArgumentTypeError(f"expected a TensorSpec, got {shown(other)}")
        if other.dtype != self._dtype:
            raise AttributeValueError(f"Types are not compatible: {shown(self)} vs {shown(other)}")
        shape = self._shape.most_specific_compatible_shape(other.shape)
        return TensorSpec(shape, self._dtype, self._name if self._name == other.name else None)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        return self._shape, self._dtype, self._name


describe(Tensor, TensorSpec.from_tensor)
