"""Sparse tensors: the elements that are there, where they are, and the shape of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, final

from headrace.arguments import items
from headrace.dtypes import DType, int64
from headrace.errors import DTypeError, GraphError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.default_session import default_session
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.spec import as_shape
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.shapes import Shape

if TYPE_CHECKING:
    from headrace.graph.graph import Graph
    from headrace.graph.operation import Operation


class SparseTensorValue(NamedTuple):
    """The value of a sparse tensor, as steps take and return it.

    Attributes:
        indices: [n, rank], where each element is.
        values: [n], the elements.
        dense_shape: [rank], the shape of the whole.
    """

    indices: Any
    values: Any
    dense_shape: Any


@final
class SparseTensor:
    """A tensor of which only some elements are kept; all others are zero.

    Most functions expect the elements in row-major order, as ``hr.sparse.reorder`` brings them, and
    none of them twice. It is no tensor: ``hr.sparse.to_dense`` makes one of it.

    Attributes:
        indices: [n, rank], int64, where each element is.
        values: [n], the elements.
        dense_shape: [rank], int64, the shape of the whole.
    """

    __slots__ = ("__dict__", "__weakref__", "_hint", "dense_shape", "indices", "values")

    # NumPy arrays on the left must leave binary operators to us.
    __array_priority__ = 1000
    __array_ufunc__ = None
    # Tensors on the left leave products to us as well.
    _multiplies = True

    indices: Tensor
    values: Tensor
    dense_shape: Tensor
    _hint: Shape | None

    def flatten(self) -> list[Tensor]:
        """Return the tensors that it is made of."""
        return [self.indices, self.values, self.dense_shape]

    @staticmethod
    def unflatten(tensors: Sequence[Tensor]) -> SparseTensor:
        """Return one made of other tensors."""
        return SparseTensor(*items(tensors, "the tensors of a SparseTensor", 3))

    @staticmethod
    def value_of(parts: Sequence[Any]) -> SparseTensorValue:
        """Return what steps return for it, of the values of its tensors."""
        return SparseTensorValue(*items(parts, "the parts of a SparseTensorValue", 3))

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        """Make a sparse tensor of its parts.

        Args:
            indices: [n, rank], int64.
            values: [n], any dtype.
            dense_shape: [rank], int64.

        Raises:
            DTypeError: if indices or shape have another dtype.
            ShapeError: if the shapes of the parts do not fit each other.
        """
        with name_scope(None, "SparseTensor"):
            parts = (
                convert_to_tensor(indices, int64, name="indices"),
                convert_to_tensor(values, name="values"),
                convert_to_tensor(dense_shape, int64, name="dense_shape"),
            )
        for name, part, rank in zip(self._parts, parts, (2, 1, 1), strict=True):
            if part.shape.rank not in (None, rank):
                raise ShapeError(
                    f"the {name} of a SparseTensor must have {rank} "
                    f"dimension{'s' if rank > 1 else ''}, got shape {part.spec.shape}"
                )
        places, elements, whole = (part.spec.shape for part in parts)
        count = places[0] if places.rank is not None else None
        columns = places[1] if places.rank is not None else None
        if not elements.is_compatible_with([count]):
            raise ShapeError(
                f"a SparseTensor needs one value per index, got indices {places} and values "
                f"{elements}"
            )
        if not whole.is_compatible_with([columns]):
            raise ShapeError(
                f"a SparseTensor needs one column of indices per dimension, got indices {places} "
                f"and dense_shape {whole}"
            )
        for name, part in zip(self._parts, parts, strict=True):
            object.__setattr__(self, name, part)
        object.__setattr__(self, "_hint", Shape([None] * columns) if columns is not None else None)

    def with_static_shape(self, shape: Shape) -> SparseTensor:
        """Return it with what ``shape`` knows of its static shape besides.

        Raises:
            ShapeError: if the shapes are incompatible.
        """
        made = SparseTensor(self.indices, self.values, self.dense_shape)
        object.__setattr__(made, "_hint", self.shape.plain.merge_with(shape))
        return made

    _parts = ("indices", "values", "dense_shape")

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(SparseTensor, name):
            raise AttributeError("a SparseTensor is immutable; make another one of its parts")
        object.__setattr__(self, name, value)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Return a sparse tensor of a sparse tensor, or of the value of one.

        Args:
            sparse_tensor_value: A ``SparseTensor``, or three parts as a ``SparseTensorValue``.

        Raises:
            DTypeError: if it is something else.
        """
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise DTypeError(
                f"expected a SparseTensor or a SparseTensorValue, got {shown(sparse_tensor_value)}"
            )
        return cls(*sparse_tensor_value)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole."""
        known = as_shape(self.dense_shape.spec)
        return TensorShape(known if self._hint is None else known.merge_with(self._hint))

    def get_shape(self) -> TensorShape:
        """Return the static shape of the whole."""
        return self.shape

    @property
    def graph(self) -> Graph:
        """The graph that owns the parts."""
        return self.values.graph

    @property
    def op(self) -> Operation:
        """The operation that yields the elements."""
        return self.values.op

    @property
    def name(self) -> str:
        """The name of the elements."""
        return self.values.name

    def consumers(self) -> list[Operation]:
        """Return the operations that take one of the parts."""
        parts = (self.indices, self.values, self.dense_shape)
        return [op for op in self.graph.operations if any(t is p for t in op.inputs for p in parts)]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Fetch its ``SparseTensorValue`` from ``session``, or from the default session."""
        return (session if session is not None else default_session()).run(self, feed_dict)

    def __mul__(self, other: Any) -> SparseTensor:
        return _operated("sparse_mul", self, other)

    def __rmul__(self, other: Any) -> SparseTensor:
        return _operated("sparse_mul", self, other)

    def __truediv__(self, other: Any) -> SparseTensor:
        return _operated("sparse_truediv", self, other)

    def _as_tensor(self) -> NoReturn:
        raise DTypeError(
            f"{shown(self)} is sparse where a dense tensor is expected; convert it with "
            "hr.sparse.to_dense, or use a function of hr.sparse"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._as_tensor()

    def __iter__(self) -> NoReturn:
        raise GraphError(
            f"{shown(self)} cannot be iterated over; use its parts, or hr.sparse.split"
        )

    def __reduce__(self) -> NoReturn:
        raise GraphError(f"{shown(self)} cannot be pickled or copied: it is part of a graph")

    def __repr__(self) -> str:
        return f"<SparseTensor {self.name!r} {self.dtype}{self.shape}>"


def _operated(name: str, sparse: SparseTensor, dense: Any) -> SparseTensor:
    result: Any = OPERATORS[name](sparse, dense)
    assert isinstance(result, SparseTensor)
    return result
