"""Ranks, sizes, choices and partitions of ragged tensors."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops import constant
from headrace.ops import gather as dense
from headrace.ops.array import rank as dense_rank
from headrace.ops.array import size as dense_size
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import range as range_
from headrace.ops.constant import zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import select
from headrace.ops.joining import concat, stack
from headrace.ops.sort import argsort
from headrace.ragged.gathering import gather_rows
from headrace.ragged.joining import concat as ragged_concat
from headrace.ragged.joining import expanded
from headrace.ragged.operands import flat_operands
from headrace.ragged.partitions import after, as_vector, count_of, ids_of, within
from headrace.ragged.tensor import RaggedTensor, as_ragged
from headrace.shapes import Shape


def rank(input: Any, name: str | None = None) -> Tensor:
    """Return the number of axes; see ``hr.rank``."""
    value = as_ragged(input)
    with name_scope(name, "RaggedRank"):
        known = value.shape.rank
        if known is not None:
            return convert_to_tensor(known)
        found: Tensor = dense_rank(value.flat_values) + value.ragged_rank
        return found


def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """Return the number of elements; see ``hr.size``."""
    return dense_size(as_ragged(input).flat_values, name=name, out_type=out_type)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> RaggedTensor:
    """Return one-hot vectors of ragged indices; see ``hr.one_hot``.

    Raises:
        AttributeValueError: if the new axis would stand before a ragged one.
    """
    value = as_ragged(indices)
    at = axis
    if at is not None and at >= 0:
        if at <= value.ragged_rank:
            raise AttributeValueError(
                f"one_hot: the new axis must stand behind the {value.ragged_rank + 1} axes that "
                f"are ragged or hold ragged ones, got axis {told(axis)}"
            )
        at -= value.ragged_rank
    with name_scope(name, "RaggedOneHot"):
        flat = constant.one_hot(value.flat_values, depth, on_value, off_value, at, dtype)
        made: RaggedTensor = value.with_flat_values(flat)
        return made


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Choose elements or rows by a condition; see ``hr.where``.

    Raises:
        AttributeValueError: if only one of ``x`` and ``y`` is given.
        ShapeError: if the condition is a scalar, or of unknown rank.
    """
    if (x is None) != (y is None):
        raise AttributeValueError("where: give both of x and y, or none of them")
    with name_scope(name, "RaggedWhere"):
        choice = as_ragged(condition)
        if x is None:
            return _places(choice)
        if isinstance(choice, RaggedTensor):
            flat, like = flat_operands([choice, x, y])
            return like.with_flat_values(select(*flat))
        if choice.shape.rank != 1:
            raise ShapeError(
                "where: the condition for ragged x and y is ragged as they are, or a vector with "
                f"an element for each row; got {shown(choice)}"
            )
        left, right = as_ragged(x), as_ragged(y)
        both = ragged_concat([left, right], 0)
        dtype = both.row_splits.dtype
        rows = count_of(choice, dtype)
        check = [
            assert_equal(_rows(part, dtype), rows, message="where: as many rows as conditions")
            for part in (left, right)
        ]
        order = range_(after(check, rows), dtype=dtype)
        return gather_rows(both, order + select(choice, zeros_like(order), rows))


def _rows(value: Any, dtype: Any) -> Tensor:
    return value.nrows(dtype) if isinstance(value, RaggedTensor) else count_of(value, dtype)


def _places(condition: Any) -> Tensor:
    """Return the coordinates of elements that hold, [n, rank], int64."""
    if not isinstance(condition, RaggedTensor):
        return dense.where_indices(condition)
    wide = condition.with_row_splits_dtype(dtypes.int64)
    inner = _places(wide.values)
    ids = ids_of(wide.row_splits)
    at = inner[:, 0]
    first = stack([dense.gather(ids, at), dense.gather(within(wide.row_splits, ids), at)], 1)
    return concat([first, inner[:, 1:]], 1)


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Any]:
    """Return the rows of each partition as a list; see ``hr.dynamic_partition``."""
    if num_partitions < 0:
        raise AttributeValueError(
            "dynamic_partition: num_partitions must be an integer >= 0, got "
            f"{shown(num_partitions)}"
        )
    with name_scope(name, "RaggedPartition"):
        made = stack_dynamic_partitions(data, partitions, num_partitions)
        return [made[i] for i in range(num_partitions)]


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> RaggedTensor:
    """Put the rows of each partition into a row of a ragged tensor.

    Args:
        data: [...], a tensor or a ragged tensor.
        partitions: int32 or int64, of the shape of the first axes of ``data``: the partition that
            each row belongs to, from 0 to ``num_partitions - 1``; a scalar for all of ``data``.
        num_partitions: [], how many partitions there are.
        name: The name of the scope.

    Returns:
        [num_partitions, None, ...].

    Raises:
        ShapeError: if ``partitions`` is of unknown rank, or known to be of another length.
    """
    with name_scope(name, "SegmentStack"):
        values = as_ragged(data)
        chosen = as_ragged(partitions)
        count = convert_to_tensor(num_partitions)
        if chosen.shape.rank is None:
            raise ShapeError(f"partitions must have a known rank, got shape {chosen.shape}")
        if chosen.shape.rank == 0:
            values, chosen = expanded(values, 0), expanded(chosen, 0)
        while chosen.shape.rank > 1:
            values, chosen = _flattened(values, chosen)
        ids = as_vector(chosen, "partitions")
        there, wanted = (None if v.shape.rank is None else Shape(v.shape)[0] for v in (values, ids))
        if None not in (there, wanted) and there != wanted:
            raise ShapeError(
                "partitions must have the shape of the first axes of data, got "
                f"{wanted} of them for {there} rows"
            )
        # Sorted by partition, in their order within each.
        order = argsort(ids, stable=True)
        rows = (
            gather_rows(values, order)
            if isinstance(values, RaggedTensor)
            else dense.gather(values, order)
        )
        return RaggedTensor.from_value_rowids(rows, dense.gather(ids, order), nrows=count)


def _flattened(values: Any, chosen: Any) -> tuple[Any, Any]:
    """Return data and partitions with their first two axes made one."""
    if not isinstance(chosen, RaggedTensor):
        chosen = RaggedTensor.from_tensor(chosen)
    if not isinstance(values, RaggedTensor):
        values = RaggedTensor.from_tensor(values)
    check = assert_equal(
        cast(values.row_splits, dtypes.int64),
        cast(chosen.row_splits, dtypes.int64),
        message="partitions must have the shape of the first axes of data",
    )
    inner = chosen.values
    if isinstance(inner, RaggedTensor):
        return values.values, RaggedTensor(inner.values, after([check], inner.row_splits))
    return values.values, after([check], inner)
