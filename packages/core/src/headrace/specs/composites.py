"""Specs of values that are made of several tensors: sparse and ragged ones, rows and arrays."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.tensor_array import TensorArray
from headrace.ragged.tensor import RaggedTensor
from headrace.specs.type_spec import TypeSpec, describe


class SparseTensorSpec(TypeSpec):
    """The dtype and shape of sparse tensors."""

    __slots__ = ("_dtype", "_shape")

    value_type = SparseTensor

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        """State them.

        Args:
            shape: The shape, None where it is unknown.
            dtype: The dtype.

        Raises:
            HeadraceError: if ``shape`` is no shape, or ``dtype`` no dtype.
        """
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return self._dtype

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """Return the spec of a sparse tensor.

        Args:
            value: A ``SparseTensor``, or the value of one.

        Raises:
            AttributeValueError: if it is neither.
        """
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        if isinstance(value, SparseTensorValue):
            return cls([int(n) for n in value.dense_shape], value.values.dtype)
        raise AttributeValueError(f"Expected SparseTensor or SparseTensorValue, got {shown(value)}")

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        return self._shape, self._dtype


class IndexedSlicesSpec(TypeSpec):
    """The dtypes and shapes of ``IndexedSlices``."""

    __slots__ = ("_dense_shape_dtype", "_dtype", "_indices_dtype", "_indices_shape", "_shape")

    value_type = IndexedSlices

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        """State them.

        Args:
            shape: The shape of the whole, None where it is unknown.
            dtype: The dtype of the rows.
            indices_dtype: The dtype of the indices.
            dense_shape_dtype: The dtype of the tensor ``dense_shape``, None where there is none.
            indices_shape: The shape of the indices, None where it is unknown.

        Raises:
            HeadraceError: if a shape is no shape, or a dtype no dtype.
        """
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        dtypes_ = (self._dtype, self._indices_dtype, self._dense_shape_dtype)
        return self._shape, *dtypes_, self._indices_shape


class RaggedTensorSpec(TypeSpec):
    """The dtypes, the shape and the number of ragged axes of ragged tensors."""

    __slots__ = ("_dtype", "_ragged_rank", "_row_splits_dtype", "_shape")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: Any = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:
        """State them.

        Args:
            shape: The shape, None where it is unknown.
            dtype: The dtype of the values.
            ragged_rank: The number of ragged axes; all but the first if None.
            row_splits_dtype: int32 or int64.

        Raises:
            ArgumentTypeError: if ``ragged_rank`` is no integer.
            AttributeValueError: if neither shape nor ``ragged_rank`` is known, or there are too few
                axes for so many ragged ones.
            HeadraceError: if ``shape`` is no shape, or a dtype no dtype.
        """
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._row_splits_dtype = as_dtype(row_splits_dtype)
        rank = self._shape.ndims
        if ragged_rank is None:
            if rank is None:
                raise AttributeValueError(
                    "Must specify ragged_rank or a shape with a known rank, got neither"
                )
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int) or isinstance(ragged_rank, bool):
            raise ArgumentTypeError(f"ragged_rank must be an int, got {shown(ragged_rank)}")
        if rank is not None and ragged_rank >= rank:
            raise AttributeValueError(
                f"ragged_rank must be less than the rank {rank}, got {shown(ragged_rank)}"
            )
        self._ragged_rank: int = ragged_rank

    @property
    def value_type(self) -> Any:
        """The class of the values: tensors, where no axis is ragged."""
        return RaggedTensor if self._ragged_rank > 0 else Tensor

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """Return the spec of a ragged tensor.

        Args:
            value: A ``RaggedTensor``.
        """
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype


class TensorArraySpec(TypeSpec):
    """The dtype and the shape of the tensors of a ``TensorArray``."""

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    value_type = TensorArray

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        """State them.

        Args:
            element_shape: The shape of each tensor, None where it is unknown.
            dtype: The dtype of the tensors.
            dynamic_size: Whether writing beyond the end makes the array longer.
            infer_shape: Whether all tensors must have one shape.

        Raises:
            HeadraceError: if ``element_shape`` is no shape, or ``dtype`` no dtype.
        """
        self._element_shape = TensorShape(element_shape)
        self._dtype = as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = bool(infer_shape)

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """Return the spec of a ``TensorArray``.

        Args:
            value: The array.

        Raises:
            ArgumentTypeError: if it is none.
        """
        if not isinstance(value, TensorArray):
            raise ArgumentTypeError(f"expected a TensorArray, got {shown(value)}")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value.infers_shape)

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether an array, or one of another spec, may be of this one.

        Args:
            other: A spec, or a value; whether it infers a shape does not matter.
        """
        return super().is_compatible_with(_inferring(other, self._infer_shape))

    def most_specific_compatible_type(self, other: TypeSpec) -> TensorArraySpec:
        """Return the spec of all arrays that are of this one or another, and of as few as can be.

        Args:
            other: The other one.

        Raises:
            ArgumentTypeError: if it is no spec.
            AttributeValueError: if no array is of both kinds.
        """
        infers = isinstance(other, TensorArraySpec) and other.facts()[-1] and self._infer_shape
        made = super().most_specific_compatible_type(_inferring(other, self._infer_shape))
        shape, dtype, dynamic_size, _ = made.facts()
        return TensorArraySpec(shape, dtype, dynamic_size, bool(infers))

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape


def _inferring(spec_or_value: Any, infer_shape: bool) -> Any:
    """Return the spec of an array that infers shapes or not; anything else as it is."""
    spec = spec_or_value
    if isinstance(spec, TensorArray):
        spec = TensorArraySpec.from_value(spec)
    if not isinstance(spec, TensorArraySpec):
        return spec
    shape, dtype, dynamic_size, _ = spec.facts()
    return TensorArraySpec(shape, dtype, dynamic_size, infer_shape)


def _spec_of_rows(value: IndexedSlices) -> IndexedSlicesSpec:
    whole = value.dense_shape
    rows = value.values.spec.shape
    shape = TensorShape(rows if rows.rank is None else [None, *rows[1:]])
    indices = value.indices.shape.merge_with(TensorShape(rows[:1] if rows.rank else None))
    dtype = None if whole is None else whole.dtype
    if whole is not None:
        shape = shape.merge_with(value.shape)
    return IndexedSlicesSpec(shape, value.dtype, value.indices.dtype, dtype, indices)


describe(SparseTensor, SparseTensorSpec.from_value)
describe(SparseTensorValue, SparseTensorSpec.from_value)
describe(IndexedSlices, _spec_of_rows)
describe(RaggedTensor, RaggedTensorSpec.from_value)
describe(TensorArray, TensorArraySpec.from_value)
