"""Components of elements: tensors, sparse and ragged ones, arrays, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import headrace as hr
from headrace import DType, Shape
from headrace.errors import DTypeError
from headrace.extend import TensorSpec
from headrace.extend.ops import list_spec


class OwnSpec(hr.TypeSpec):
    """A spec that is a component itself, for what is inside of the values has a structure.

    Programs state and see it with specs inside, pipelines have it with components inside.
    """

    __slots__ = ()

    @property
    def kind(self) -> str:
        """What it is; pipelines know by it of how many tensors it is made."""
        raise NotImplementedError

    def told(self) -> OwnSpec:
        """Return it as programs see it."""
        raise NotImplementedError

    def as_component(self) -> OwnSpec:
        """Return it as pipelines have it."""
        raise NotImplementedError

    def common(self, other: Any, what: str) -> OwnSpec:
        """Return what it has in common with another one of its kind."""
        raise NotImplementedError

    def batch(self, size: int | None) -> OwnSpec:
        """Return what several of it make.

        Raises:
            DTypeError: if they make nothing.
        """
        raise NotImplementedError

    def row(self, what: str) -> OwnSpec:
        """Return what its rows are.

        Raises:
            DTypeError: if it has none.
        """
        raise NotImplementedError

    def specs(self) -> list[TensorSpec]:
        """Return the specs of the tensors that it is made of."""
        raise NotImplementedError

    def pack(self, tensors: Sequence[Any]) -> Any:
        """Return the value that tensors make."""
        raise NotImplementedError


class Composed:
    """A value that is a component, and knows of which tensors it is made."""

    def component(self) -> OwnSpec:
        """Return what it is as a component."""
        raise NotImplementedError

    def flatten(self) -> list[Any]:
        """Return the tensors that it is made of."""
        raise NotImplementedError


@final
@dataclass(frozen=True, slots=True)
class TensorComponent:
    """A component that is a tensor."""

    dtype: DType
    shape: Shape

    kind = "tensor"

    @property
    def value_class(self) -> Any:
        """The class of its values in a graph."""
        return hr.Tensor

    def specs(self) -> list[TensorSpec]:
        """Return the specs of the tensors that it is made of."""
        return [TensorSpec(self.dtype, self.shape)]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """Return the value that tensors make."""
        return tensors[0]

    def with_shape(self, shape: Shape) -> TensorComponent:
        """Return it with another shape."""
        return TensorComponent(self.dtype, shape)

    # What several of it make, and what its rows are.
    batched = row = with_shape


@final
@dataclass(frozen=True, slots=True)
class SparseComponent:
    """A component that is a sparse tensor."""

    dtype: DType
    shape: Shape

    kind = "sparse"

    @property
    def value_class(self) -> Any:
        """The class of its values in a graph."""
        return hr.SparseTensor

    def specs(self) -> list[TensorSpec]:
        """Return the specs of the tensors that it is made of."""
        rank = self.shape.rank
        return [
            TensorSpec(hr.int64, Shape([None, rank])),
            TensorSpec(self.dtype, Shape([None])),
            TensorSpec(hr.int64, Shape([rank])),
        ]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """Return the value that tensors make."""
        made = hr.SparseTensor(*tensors)
        return made if self.shape.rank is None else made.with_static_shape(self.shape)

    def with_shape(self, shape: Shape) -> SparseComponent:
        """Return it with another shape."""
        return SparseComponent(self.dtype, shape)

    # What several of it make, and what its rows are.
    batched = row = with_shape


@final
@dataclass(frozen=True, slots=True)
class RaggedComponent:
    """A component that is a ragged tensor, or a row of one: a tensor without ragged axes.

    Attributes:
        dtype: The dtype of its values.
        shape: Its shape, None for ragged axes.
        ragged_rank: How many axes are ragged, or hold ragged ones.
        splits_dtype: The dtype of its row splits.
    """

    dtype: DType
    shape: Shape
    ragged_rank: int
    splits_dtype: DType

    @property
    def kind(self) -> str:
        """What it is: ``ragged`` with the number of ragged axes and the dtype of splits."""
        return f"ragged:{self.ragged_rank}:{self.splits_dtype.name}"

    @property
    def spec(self) -> Any:
        """What programs are told of it."""
        shape = hr.TensorShape(self.shape)
        return hr.RaggedTensorSpec(shape, self.dtype, self.ragged_rank, self.splits_dtype)

    @property
    def value_class(self) -> Any:
        """What stands for its class: the spec itself, as in TensorFlow."""
        return self.spec

    def specs(self) -> list[TensorSpec]:
        """Return the specs of the tensors that it is made of: flat values, and splits."""
        if not self.ragged_rank:
            return [TensorSpec(self.dtype, self.shape)]
        known = self.shape.rank is not None
        rows = self.shape[0] if known else None
        flat = Shape([None, *self.shape[self.ragged_rank + 1 :]]) if known else Shape(None)
        outer = TensorSpec(self.splits_dtype, Shape([None if rows is None else rows + 1]))
        inner = TensorSpec(self.splits_dtype, Shape([None]))
        return [TensorSpec(self.dtype, flat), outer, *[inner] * (self.ragged_rank - 1)]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """Return the value that tensors make."""
        return hr.RaggedTensor.unflatten(tensors) if self.ragged_rank else tensors[0]

    def with_shape(self, shape: Shape) -> RaggedComponent:
        """Return it with another shape."""
        return RaggedComponent(self.dtype, shape, self.ragged_rank, self.splits_dtype)

    def batched(self, shape: Shape) -> RaggedComponent:
        """Return what several of it make, with the shape of that."""
        return RaggedComponent(self.dtype, shape, self.ragged_rank + 1, self.splits_dtype)

    def row(self, shape: Shape) -> RaggedComponent | TensorComponent:
        """Return what its rows are, with the shape of one."""
        if not self.ragged_rank:
            return TensorComponent(self.dtype, shape)
        return RaggedComponent(self.dtype, shape, self.ragged_rank - 1, self.splits_dtype)


@final
@dataclass(frozen=True, slots=True)
class ArrayComponent:
    """A component that is a ``TensorArray``.

    Attributes:
        dtype: The dtype of its tensors.
        shape: What is known of their shape.
        dynamic_size: Whether writing beyond the end makes it longer.
        infer_shape: Whether all tensors must have one shape.
    """

    dtype: DType
    shape: Shape
    dynamic_size: bool
    infer_shape: bool

    kind = "array"

    @property
    def spec(self) -> Any:
        """What programs are told of it."""
        shape = hr.TensorShape(self.shape)
        return hr.TensorArraySpec(shape, self.dtype, self.dynamic_size, self.infer_shape)

    @property
    def value_class(self) -> Any:
        """What stands for its class: the spec itself."""
        return self.spec

    def specs(self) -> list[TensorSpec]:
        """Return the spec of the list that it is made of."""
        return [list_spec(TensorSpec(self.dtype, self.shape))]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """Return the array of a list."""
        return hr.TensorArray(
            self.dtype,
            dynamic_size=self.dynamic_size,
            flow=tensors[0],
            infer_shape=self.infer_shape,
            element_shape=self.shape,
        )

    def with_shape(self, shape: Shape) -> ArrayComponent:
        """Return it with another shape of its tensors."""
        return ArrayComponent(self.dtype, shape, self.dynamic_size, self.infer_shape)

    def batched(self, shape: Shape) -> Any:
        """Refuse: arrays make no batch.

        Raises:
            DTypeError: always.
        """
        raise DTypeError("elements that hold a TensorArray cannot be batched; stack() it first")

    def row(self, shape: Shape) -> Any:
        """Refuse: arrays have no rows.

        Raises:
            DTypeError: always.
        """
        raise DTypeError("a TensorArray has no rows; stack() it first")
