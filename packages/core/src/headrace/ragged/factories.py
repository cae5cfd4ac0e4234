"""Making ragged tensors: of values and how they are cut into rows, and of other tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int
from headrace.ops.assertions import (
    assert_equal,
    assert_less,
    assert_non_negative,
    is_non_decreasing,
)
from headrace.ops.conversion import cast
from headrace.ops.joining import concat
from headrace.ops.report import assert_true
from headrace.ragged.partitions import after, as_vector, count_of, splits_of, splits_of_ids

if TYPE_CHECKING:
    from headrace.ragged.tensor import RaggedTensor


class Factories:
    """The functions that make ragged tensors of their parts."""

    __slots__ = ()

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Make a ragged tensor whose row ``i`` is ``values[row_splits[i]:row_splits[i + 1]]``.

        Args:
            values: [values, ...], a tensor or a ragged tensor.
            row_splits: [rows + 1], int32 or int64, ascending from 0 to the number of values.
            name: The name of the scope.
            validate: Whether a step checks ``row_splits``.

        Raises:
            DTypeError: if ``row_splits`` are no integers.
            ShapeError: if they are no vector, or an empty one, or values have no axis.
        """
        with name_scope(name, "RaggedFromRowSplits"):
            content = _values(values)
            splits = _of_one_dtype(content, as_vector(row_splits, "row_splits"))
            if splits.spec.shape.dims == (0,):
                raise ShapeError("row_splits must not be empty; one row needs two of them")
            if validate:
                splits = after(
                    [
                        assert_equal(splits[0], 0, message="row_splits must start with 0"),
                        assert_true(is_non_decreasing(splits), ["row_splits must ascend:", splits]),
                        assert_equal(
                            splits[-1],
                            cast(_count(content, splits), splits.dtype),
                            message="row_splits must end with the number of values",
                        ),
                    ],
                    splits,
                )
            return _made(*_fitting(content, splits))

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Make a ragged tensor of the lengths of its rows.

        Args:
            values: [values, ...], a tensor or a ragged tensor.
            row_lengths: [rows], int32 or int64, >= 0, that add up to the number of values.
            name: The name of the scope.
            validate: Whether a step checks ``row_lengths``.

        Raises:
            DTypeError: if ``row_lengths`` are no integers.
            ShapeError: if they are no vector, or values have no axis.
        """
        with name_scope(name, "RaggedFromRowLengths"):
            content = _values(values)
            lengths = _of_one_dtype(content, as_vector(row_lengths, "row_lengths"))
            splits = splits_of(lengths)
            if validate:
                checks = [
                    assert_non_negative(lengths, message="row_lengths must be >= 0"),
                    assert_equal(
                        splits[-1],
                        _count(content, splits),
                        message="row_lengths must add up to the number of values",
                    ),
                ]
                splits = after(checks, splits)
            return _made(*_fitting(content, splits))

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Make a ragged tensor of the row that each value belongs to.

        Args:
            values: [values, ...], a tensor or a ragged tensor.
            value_rowids: [values], int32 or int64, ascending from 0 on.
            nrows: How many rows there are, more than any of these; one more than the last if None.
            name: The name of the scope.
            validate: Whether a step checks ``value_rowids``.

        Raises:
            DTypeError: if ``value_rowids`` are no integers.
            ShapeError: if they are no vector, or values have no axis.
            AttributeValueError: if ``nrows`` is known to be negative, or too small.
        """
        with name_scope(name, "RaggedFromValueRowIds"):
            content = _values(values)
            ids = _of_one_dtype(content, as_vector(value_rowids, "value_rowids"))
            known = None if nrows is None else as_int(nrows, "nrows")
            if isinstance(known, int):
                _check_rows(known, ids)
            if nrows is None:
                rows = concat([convert_to_tensor([-1], ids.dtype), ids[-1:]], 0)[-1] + 1
            else:
                rows = convert_to_tensor(nrows, None, preferred_dtype=ids.dtype)
                if rows.shape.rank not in (None, 0):
                    raise ShapeError(f"nrows must be a scalar, got shape {rows.spec.shape}")
                rows = cast(rows, ids.dtype)
            if validate:
                checks = [
                    assert_non_negative(ids, message="value_rowids must be >= 0"),
                    assert_true(is_non_decreasing(ids), ["value_rowids must ascend:", ids]),
                    assert_less(ids, rows, message="value_rowids must be less than nrows"),
                    assert_equal(
                        count_of(ids, ids.dtype),
                        _count(content, ids),
                        message="there must be one of value_rowids for each value",
                    ),
                ]
                ids = after(checks, ids)
            splits = splits_of_ids(ids, rows)
            last = ids.spec.value
            if nrows is None and last is not None:
                known = int(last[-1]) + 1 if last.size else 0
            if isinstance(known, int):
                splits.set_shape([known + 1])
            return _made(content, splits, ids)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Make a ragged tensor of where its rows start.

        Args:
            values: [values, ...], a tensor or a ragged tensor.
            row_starts: [rows], int32 or int64, ascending from 0.
            name: The name of the scope.
            validate: Whether a step checks ``row_starts``.

        Raises:
            DTypeError: if ``row_starts`` are no integers.
            ShapeError: if they are no vector, or values have no axis.
        """
        with name_scope(name, "RaggedFromRowStarts"):
            content = _values(values)
            starts = _of_one_dtype(content, as_vector(row_starts, "row_starts"))
            end = cast(_count(content, starts), starts.dtype)
            splits = concat([starts, [end]], 0)
        return cls.from_row_splits(content, splits, name, validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Make a ragged tensor of where its rows end.

        Args:
            values: [values, ...], a tensor or a ragged tensor.
            row_limits: [rows], int32 or int64, ascending to the number of values.
            name: The name of the scope.
            validate: Whether a step checks ``row_limits``.

        Raises:
            DTypeError: if ``row_limits`` are no integers.
            ShapeError: if they are no vector, or values have no axis.
        """
        with name_scope(name, "RaggedFromRowLimits"):
            limits = as_vector(row_limits, "row_limits")
            splits = concat([convert_to_tensor([0], limits.dtype), limits], 0)
        return cls.from_row_splits(values, splits, name, validate)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: Any,
        nested_row_splits: Any,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Make a ragged tensor of the splits of each ragged axis.

        Args:
            flat_values: [values, ...].
            nested_row_splits: A list of the splits, from the outermost axis.
            name: The name of the scope.
            validate: Whether a step checks them.

        Returns:
            The ragged tensor; ``flat_values`` where the list is empty.

        Raises:
            AttributeValueError: if ``nested_row_splits`` is no list.
        """
        return _nested(
            cls.from_row_splits, flat_values, nested_row_splits, "nested_row_splits", name, validate
        )

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: Any,
        nested_row_lengths: Any,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Make a ragged tensor of the lengths of the rows of each ragged axis.

        Args:
            flat_values: [values, ...].
            nested_row_lengths: A list of the lengths, from the outermost axis.
            name: The name of the scope.
            validate: Whether a step checks them.

        Returns:
            The ragged tensor; ``flat_values`` where the list is empty.

        Raises:
            AttributeValueError: if ``nested_row_lengths`` is no list.
        """
        return _nested(
            cls.from_row_lengths,
            flat_values,
            nested_row_lengths,
            "nested_row_lengths",
            name,
            validate,
        )

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Make a ragged tensor of the rows of the values of each ragged axis.

        Args:
            flat_values: [values, ...].
            nested_value_rowids: A list of the row that each value belongs to, from the outermost
                axis.
            nested_nrows: A list of the numbers of rows, as long; taken from the last row if None.
            name: The name of the scope.
            validate: Whether a step checks them.

        Returns:
            The ragged tensor; ``flat_values`` where the list is empty.

        Raises:
            AttributeValueError: if these are no lists of one length.
        """
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else nested_nrows
        if not isinstance(counts, list | tuple) or len(counts) != len(nested_value_rowids):
            raise AttributeValueError(
                "nested_nrows must be a list of as many numbers as nested_value_rowids has "
                f"vectors, {len(nested_value_rowids)}; got {shown(nested_nrows)}"
            )
        rows = iter(reversed(counts))

        def level(values: Any, ids: Any, name: Any, validate: bool) -> RaggedTensor:
            return cls.from_value_rowids(values, ids, next(rows), name, validate)

        return _nested(
            level, flat_values, nested_value_rowids, "nested_value_rowids", name, validate
        )

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:
        """Make a ragged tensor of a tensor, leaving out what stands at the end of rows.

        Args:
            tensor: [rows, columns, ...], of rank ``ragged_rank + 1`` at least.
            lengths: [rows], how much of each row to keep; or a tuple of such vectors, one for each
                ragged axis.
            padding: [...], what the end of rows is filled with, which is left out. Give it or
                ``lengths``; without both, all is kept.
            ragged_rank: How many axes become ragged, >= 1.
            name: The name of the scope.
            row_splits_dtype: int32 or int64.

        Raises:
            AttributeValueError: if both of ``lengths`` and ``padding`` are given, or
                ``ragged_rank`` is less than 1.
            ShapeError: if the rank is too small.
        """
        convert = OPERATORS["ragged_from_tensor"]
        made: RaggedTensor = convert(tensor, lengths, padding, ragged_rank, name, row_splits_dtype)
        return made

    @classmethod
    def from_sparse(
        cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64
    ) -> RaggedTensor:
        """Make a ragged tensor of a sparse matrix whose rows have no gaps from the left.

        Args:
            st_input: A ``SparseTensor`` of rank 2, in row-major order.
            name: The name of the scope.
            row_splits_dtype: int32 or int64.

        Raises:
            DTypeError: if ``st_input`` is not sparse.
            ShapeError: if it is not known to have two axes.
        """
        convert = OPERATORS["ragged_from_sparse"]
        made: RaggedTensor = convert(st_input, name, row_splits_dtype)
        return made


def _made(values: Any, splits: Tensor, ids: Tensor | None = None) -> RaggedTensor:
    made: RaggedTensor = OPERATORS["ragged"](values, splits, ids)
    return made


def _fitting(content: Any, splits: Tensor) -> tuple[Any, Tensor]:
    """Return values and splits in one dtype of splits."""
    if hasattr(content, "row_splits") and content.row_splits.dtype != splits.dtype:
        return content.with_row_splits_dtype(splits.dtype), splits
    return content, splits


def _values(values: Any) -> Any:
    content = OPERATORS["as_ragged"](values)
    if content.shape.rank == 0:
        raise ShapeError("a scalar cannot be cut into rows; values need an axis at least")
    return content


def _of_one_dtype(content: Any, vector: Tensor) -> Tensor:
    """Return splits in the dtype that the splits of ragged values have, if that is the wider."""
    inner = getattr(content, "row_splits", None)
    if inner is not None and inner.dtype == dtypes.int64 and vector.dtype != dtypes.int64:
        wide: Tensor = cast(vector, dtypes.int64)
        return wide
    return vector


def _count(content: Any, like: Tensor) -> Tensor:
    if isinstance(content, Tensor):
        return count_of(content, like.dtype)
    splits: Tensor = content.row_splits
    return count_of(splits, like.dtype) - 1


def _check_rows(rows: int, ids: Tensor) -> None:
    if rows < 0:
        raise AttributeValueError(f"nrows must be >= 0, got {rows}")
    value = ids.spec.value
    if value is not None and value.size and rows <= value.max():
        raise AttributeValueError(
            f"nrows must be more than the last of value_rowids, {value.max()}; got {rows}"
        )


def _nested(
    level: Callable[..., Any],
    flat_values: Any,
    parts: Any,
    what: str,
    name: str | None,
    validate: bool,
) -> Any:
    if isinstance(parts, Tensor) or not isinstance(parts, Sequence):
        raise AttributeValueError(f"{what} must be a list of vectors, got {shown(parts)}")
    with name_scope(name, "RaggedFromNested"):
        made: Any = _values(flat_values) if parts else convert_to_tensor(flat_values)
        for part in reversed(parts):
            made = level(made, part, None, validate)
        return made
