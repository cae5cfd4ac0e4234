"""Ragged tensors: tensors whose rows have lengths of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, final

from headrace.dtypes import DType
from headrace.errors import DTypeError, FeedError, FeedTypeError, SymbolicTensorError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.default_session import default_session
from headrace.graph.schema import OPERATORS
from headrace.graph.tensor import Tensor, TensorOperators
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.conversion import cast
from headrace.ragged.factories import Factories
from headrace.ragged.partitions import as_splits_dtype
from headrace.ragged.rows import Rows
from headrace.ragged.value import RaggedTensorValue, nested_value
from headrace.shapes import Shape

if TYPE_CHECKING:
    from headrace.graph.graph import Graph
    from headrace.graph.operation import Operation


@final
class RaggedTensor(Factories, Rows, TensorOperators):
    """A tensor whose rows have lengths of their own.

    It is a tensor of values and a vector of splits: row ``i`` is
    ``values[row_splits[i]:row_splits[i + 1]]``. Values may be ragged themselves. Functions of each
    element, Python's operators, reductions and those that join or choose rows take ragged tensors
    as they take others; ``to_tensor`` makes a tensor of one. Made by the functions
    ``from_row_splits``, ``from_row_lengths`` and others, by ``hr.ragged`` and by ``hr.strings``.

    Attributes:
        values: [values, ...], a tensor or a ragged tensor.
        row_splits: [rows + 1], int32 or int64, ascending from 0.
    """

    __slots__ = ("__weakref__", "_row_ids", "row_splits", "values")

    values: Any
    row_splits: Tensor
    _row_ids: Tensor | None

    # NumPy arrays on the left must leave binary operators to us.
    __array_ufunc__ = None  # type: ignore[assignment]

    def __init__(self, values: Any, row_splits: Tensor, row_ids: Tensor | None = None) -> None:
        """Make one of parts that fit; the functions ``from_...`` check theirs.

        Args:
            values: [values, ...], a tensor or a ragged tensor.
            row_splits: [rows + 1], int32 or int64.
            row_ids: [values], the row of each value, where it is known already.
        """
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "row_splits", row_splits)
        object.__setattr__(self, "_row_ids", row_ids)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a RaggedTensor is immutable; make another one of its parts")

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        found: DType = self.values.dtype
        return found

    @property
    def flat_values(self) -> Tensor:
        """The tensor inside of all ragged axes."""
        values = self.values
        while isinstance(values, RaggedTensor):
            values = values.values
        assert isinstance(values, Tensor)
        return values

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of all ragged axes, from the outermost."""
        splits, values = [self.row_splits], self.values
        while isinstance(values, RaggedTensor):
            splits.append(values.row_splits)
            values = values.values
        return tuple(splits)

    @property
    def ragged_rank(self) -> int:
        """How many axes are ragged, or hold ragged ones."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> TensorShape:
        """The static shape, None for ragged axes."""
        rows = self.row_splits.spec.shape
        count = None if rows.rank is None or rows[0] is None else rows[0] - 1
        inner = self.values.shape
        if inner.rank is None:
            return TensorShape(None)
        return TensorShape([count, None, *Shape(inner)[1:]])

    def get_shape(self) -> TensorShape:
        """Return the static shape, None for ragged axes."""
        return self.shape

    @property
    def graph(self) -> Graph:
        """The graph that owns the parts."""
        return self.flat_values.graph

    @property
    def op(self) -> Operation:
        """The operation that yields the flat values."""
        return self.flat_values.op

    @property
    def name(self) -> str:
        """The name of the flat values."""
        return self.flat_values.name

    def to_list(self) -> NoReturn:
        """Refuse to make lists of rows: fetch the tensor, whose value has this method.

        Raises:
            SymbolicTensorError: always.
        """
        raise SymbolicTensorError(
            f"{shown(self)} holds no rows while the graph is built. Fetch it with session.run, and "
            "make lists of the RaggedTensorValue"
        )

    def consumers(self) -> list[Operation]:
        """Return the operations that take one of the parts."""
        parts = self.flatten()
        return [op for op in self.graph.operations if any(t is p for t in op.inputs for p in parts)]

    def with_values(self, new_values: Any) -> RaggedTensor:
        """Return one of the same rows with other values.

        Args:
            new_values: [values, ...], a tensor or a ragged tensor.

        Raises:
            ShapeError: if their number is known to differ.
        """
        made = new_values if isinstance(new_values, RaggedTensor) else convert_to_tensor(new_values)
        # Refuses another number of values where both are known.
        Shape(made.shape)[:1].merge_with(Shape(self.values.shape)[:1])
        if isinstance(made, RaggedTensor) and made.row_splits.dtype != self.row_splits.dtype:
            return RaggedTensor(made.with_row_splits_dtype("int64"), cast(self.row_splits, "int64"))
        return RaggedTensor(made, self.row_splits, self._row_ids)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Return one of the same ragged axes with other values inside of them.

        Args:
            new_values: [values, ...], a tensor or a ragged tensor.

        Raises:
            ShapeError: if their number is known to differ.
        """
        inner = self.values
        if isinstance(inner, RaggedTensor):
            return self.with_values(inner.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """Return the same with splits of another dtype.

        Args:
            dtype: int32 or int64.

        Raises:
            DTypeError: if it is another.
        """
        wanted = as_splits_dtype(dtype)
        inner = self.values
        if isinstance(inner, RaggedTensor):
            inner = inner.with_row_splits_dtype(wanted)
        if self.row_splits.dtype == wanted:
            return self if inner is self.values else RaggedTensor(inner, self.row_splits)
        return RaggedTensor(inner, cast(self.row_splits, wanted))

    def flatten(self) -> list[Tensor]:
        """Return the tensors that it is made of: the flat values, and the splits of each axis."""
        return [self.flat_values, *self.nested_row_splits]

    @staticmethod
    def unflatten(tensors: Sequence[Tensor]) -> RaggedTensor:
        """Return one made of other tensors, in the order of ``flatten``."""
        values, *splits = tensors
        made: Any = values
        for each in reversed(splits):
            made = RaggedTensor(made, each)
        assert isinstance(made, RaggedTensor)
        return made

    def loop_shapes(self, shape: Shape | None) -> list[Shape]:
        """Return the shapes that its tensors keep in a loop.

        Args:
            shape: What the whole keeps; None for the ranks, and the sizes of inner axes.
        """
        flat = self.flat_values.spec.shape
        rows = None if shape is None or shape.rank is None else shape[0]
        if shape is None:
            rows = Shape(self.shape)[0] if flat.rank else None
        inner = Shape([None, *flat[1:]]) if flat.rank else flat
        if shape is not None and shape.rank is not None:
            inner = Shape([None, *shape[self.ragged_rank + 1 :]])
        first = Shape([None if rows is None else rows + 1])
        return [inner, first, *[Shape([None])] * (self.ragged_rank - 1)]

    @staticmethod
    def value_of(parts: Sequence[Any]) -> RaggedTensorValue:
        """Return what steps return for it, of the values of its tensors."""
        return nested_value(parts)

    def parts_of(self, value: Any) -> list[Any]:
        """Return the values of its tensors out of what it is fed with.

        Raises:
            FeedError: if that is no value with as many ragged axes.
        """
        if not isinstance(value, RaggedTensorValue):
            raise FeedTypeError(
                f"cannot feed {self!r} with {shown(value)}: feed a RaggedTensorValue, which "
                "hr.ragged.constant_value makes of nested lists"
            )
        if value.ragged_rank != self.ragged_rank:
            raise FeedError(
                f"cannot feed {self!r} with a value of ragged_rank {value.ragged_rank}, expected "
                f"{self.ragged_rank}"
            )
        return [value.flat_values, *value.nested_row_splits]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Fetch its ``RaggedTensorValue`` from ``session``, or from the default session."""
        return (session if session is not None else default_session()).run(self, feed_dict)

    def __getitem__(self, key: Any) -> Any:
        return OPERATORS["ragged_getitem"](self, key)

    def _as_tensor(self) -> NoReturn:
        raise DTypeError(
            f"{self!r} is ragged where a tensor is expected; convert it with its method to_tensor, "
            "compute with its flat_values, or use hr.ragged.map_flat_values"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._as_tensor()

    def __bool__(self) -> NoReturn:
        raise SymbolicTensorError(f"{self!r} has no truth value while the graph is built")

    def __iter__(self) -> NoReturn:
        raise SymbolicTensorError(
            f"{self!r} cannot be iterated over while the graph is built; index it, or fetch it"
        )

    def __reduce__(self) -> NoReturn:
        raise SymbolicTensorError(f"{self!r} cannot be pickled or copied: it is part of a graph")

    def __repr__(self) -> str:
        return f"<RaggedTensor {self.name!r} {self.dtype}{self.shape}>"


def as_ragged(value: Any, dtype: Any = None, preferred_dtype: Any = None) -> Any:
    """Return a value as a tensor or a ragged tensor."""
    if isinstance(value, RaggedTensor):
        return value
    if isinstance(value, RaggedTensorValue):
        splits = [convert_to_tensor(each) for each in value.nested_row_splits]
        return RaggedTensor.unflatten([convert_to_tensor(value.flat_values), *splits])
    return convert_to_tensor(value, dtype, preferred_dtype=preferred_dtype)


def is_ragged(value: Any) -> bool:
    """Whether a value is a ragged tensor, or the value of one."""
    return isinstance(value, RaggedTensor | RaggedTensorValue)


# For the functions that make them, which stand below.
OPERATORS["ragged"] = RaggedTensor
OPERATORS["as_ragged"] = as_ragged
