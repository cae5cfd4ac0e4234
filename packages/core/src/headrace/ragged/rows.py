"""What is known of the rows of a ragged tensor, and what it converts to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import ShapeError, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import shape
from headrace.ops.constant import fill
from headrace.ops.conversion import cast
from headrace.ops.gather import gather
from headrace.ops.joining import concat, stack
from headrace.ops.reduce import reduce_max
from headrace.ragged.partitions import as_splits_dtype, count_of, ids_of, lengths_of
from headrace.shapes import normalize_axis

if TYPE_CHECKING:
    from headrace.graph.sparse_tensor import SparseTensor


class Rows:
    """Views of the splits of a ragged tensor."""

    __slots__ = ()

    values: Any
    row_splits: Tensor
    _row_ids: Tensor | None

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """Return how many rows there are, [].

        Args:
            out_type: int32 or int64; the dtype of the splits if None.
            name: The name of the scope.
        """
        wanted = self.row_splits.dtype if out_type is None else as_splits_dtype(out_type)
        with name_scope(name, "RaggedNRows"):
            return count_of(self.row_splits, wanted) - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Return where each row starts among the values, [rows].

        Args:
            name: The name of the scope.
        """
        with name_scope(name, "RaggedRowStarts"):
            return self.row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Return where each row ends among the values, [rows].

        Args:
            name: The name of the scope.
        """
        with name_scope(name, "RaggedRowLimits"):
            return self.row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """Return how long the rows along an axis are.

        Args:
            axis: 1 for the lengths of the rows, [rows]; a larger number for those of the axis
                inside of them, which are ragged as the axes before it; negative from the end.
            name: The name of the scope.

        Raises:
            ShapeError: if there is no such axis, or it counts from the end of an unknown rank.
        """
        if axis < 0:
            rank = self.shape.rank  # type: ignore[attr-defined]
            if rank is None:
                raise ShapeError(f"row_lengths: axis {told(axis)} needs a known rank")
            axis = normalize_axis(axis, rank, "row_lengths: axis")
        with name_scope(name, "RaggedRowLengths"):
            if axis == 0:
                return self.nrows()
            lengths = lengths_of(self.row_splits)
            if axis == 1:
                return lengths
            if isinstance(self.values, Rows):
                return self.with_values(self.values.row_lengths(axis - 1))  # type: ignore[attr-defined]
            sizes = shape(self.values, out_type=self.row_splits.dtype)
            rank = self.values.shape.rank
            if rank is not None and axis > rank:
                raise ShapeError(f"row_lengths: there is no axis {told(axis)} in rank {rank + 1}")
            inner = fill(sizes[: axis - 1], sizes[axis - 1])
            return self.with_values(inner)  # type: ignore[attr-defined]

    def value_rowids(self, name: str | None = None) -> Tensor:
        """Return the row that each value belongs to, [values].

        Args:
            name: The name of the scope.
        """
        if self._row_ids is not None:
            return self._row_ids
        with name_scope(name, "RaggedValueRowIds"):
            return ids_of(self.row_splits)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Return the lengths of the rows of each ragged axis, from the outermost.

        Args:
            name: The name of the scope.
        """
        with name_scope(name, "RaggedNestedRowLengths"):
            deeper = self.values.nested_row_lengths() if isinstance(self.values, Rows) else ()
            return (lengths_of(self.row_splits), *deeper)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Return the row of each value, for each ragged axis, from the outermost.

        Args:
            name: The name of the scope.
        """
        with name_scope(name, "RaggedNestedValueRowIds"):
            deeper = self.values.nested_value_rowids() if isinstance(self.values, Rows) else ()
            return (self.value_rowids(), *deeper)

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: Any = None
    ) -> Tensor:
        """Return the shape of the smallest tensor that holds it, [rank].

        Args:
            axis: An axis, or a vector of them, whose sizes alone are wanted.
            name: The name of the scope.
            out_type: int32 or int64; the dtype of the splits if None.
        """
        dtype = self.row_splits.dtype
        wanted = dtype if out_type is None else as_splits_dtype(out_type)
        with name_scope(name, "RaggedBoundingBox"):
            sizes: list[Tensor] = [count_of(self.row_splits, dtype) - 1]
            values: Any = self
            while isinstance(values, Rows):
                # An array of no rows has no longest one.
                longest = concat([lengths_of(values.row_splits), convert_to_tensor([0], dtype)], 0)
                sizes.append(reduce_max(longest))
                values = values.values
            inner = shape(values, out_type=dtype)[1:]
            found: Tensor = cast(concat([stack(sizes), inner], 0), wanted)
            if axis is None:
                return found
            chosen: Tensor = gather(found, axis)
            return chosen

    def to_tensor(self, default_value: Any = None, name: str | None = None) -> Tensor:
        """Return a tensor of the rows, filled up at their ends.

        Args:
            default_value: What to fill with, [] or of the shape of one flat value; 0, false or an
                empty string if None.
            name: The name of the scope.

        Returns:
            [rows, longest row, ...].

        Raises:
            ShapeError: if ``default_value`` is known not to broadcast to a flat value.
        """
        made: Tensor = OPERATORS["ragged_to_tensor"](self, default_value, name)
        return made

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Return a sparse tensor of the same elements.

        Args:
            name: The name of the scope.
        """
        made: SparseTensor = OPERATORS["ragged_to_sparse"](self, name)
        return made
