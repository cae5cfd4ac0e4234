"""Broadcasting tensors and ragged tensors to common rows.

The axes of all operands are laid over each other from the last one, as NumPy does. Axis by axis
from the outermost, each operand says for every row of the result which of its own rows stands
there, until that is known for the values. An axis of the same size in all rows repeats where that
is 1; ragged axes have to agree row by row.
"""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.ops.array import reshape, shape
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import fill, zeros
from headrace.ops.conversion import cast
from headrace.ops.elementwise import equal, logical_or
from headrace.ops.elementwise import select as where_v2
from headrace.ops.gather import gather
from headrace.ops.joining import concat
from headrace.ops.reduce import reduce_all
from headrace.ops.report import assert_true
from headrace.ragged.partitions import after, ids_of, lengths_of, splits_of, within
from headrace.ragged.tensor import RaggedTensor
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class _Operand:
    """One operand, as a stack of axes over values.

    Attributes:
        axes: For each axis of the result that is ragged, or before one that is: the splits of the
            rows, or the size that all rows have.
        ragged: Which of the axes are splits.
        flat: The values inside of them.
    """

    axes: list[Tensor]
    ragged: list[bool]
    flat: Tensor


def rank_of(value: Any) -> int:
    """Return the rank of a tensor or ragged tensor.

    Raises:
        ShapeError: if it is unknown.
    """
    rank = value.shape.rank
    if rank is None:
        raise ShapeError(
            f"broadcasting against a ragged tensor needs a known rank, got {shown(value)}"
        )
    return int(rank)


def broadcast_together(values: list[Any]) -> tuple[list[Tensor], RaggedTensor]:
    """Return the flat values of operands broadcast to common rows, and one that has these rows.

    Args:
        values: Tensors and ragged tensors, one of these at least.
    """
    ragged = [v for v in values if isinstance(v, RaggedTensor)]
    like = ragged[0]
    if all(isinstance(v, RaggedTensor) and _same_rows(v, like) for v in values):
        return [v.flat_values for v in values], like
    rank = max(map(rank_of, values))
    depth = max(v.ragged_rank + rank - rank_of(v) for v in ragged)
    dtype = dtypes.int64 if any(_is_wide(v) for v in ragged) else dtypes.int32
    operands = [_operand(v, rank, depth, dtype) for v in values]
    count = convert_to_tensor(1, dtype)
    chosen = [zeros([1], dtype) for _ in operands]
    nested: list[Tensor] = []
    for axis in range(depth + 1):
        splits, chosen, count = _step(operands, axis, chosen, count)
        nested.append(splits)
    flat = [gather(operand.flat, places) for operand, places in zip(operands, chosen, strict=True)]
    rows = RaggedTensor.unflatten([flat[0], *nested[1:]])
    for value in values:
        # A number of rows that is known and not 1 is that of the result.
        first = value.shape[0] if rank_of(value) == rank else None
        first = getattr(first, "value", first)
        if first is not None and first != 1:
            rows.row_splits.set_shape([first + 1])
    return flat, rows


def _same_rows(one: RaggedTensor, other: RaggedTensor) -> bool:
    mine, theirs = one.nested_row_splits, other.nested_row_splits
    return len(mine) == len(theirs) and all(a is b for a, b in zip(mine, theirs, strict=True))


def _is_wide(value: RaggedTensor) -> bool:
    return value.row_splits.dtype == dtypes.int64


def _operand(value: Any, rank: int, depth: int, dtype: Any) -> _Operand:
    """Return a value as axes up to number ``depth`` of the result, and what is inside of them."""
    missing = rank - rank_of(value)
    one = convert_to_tensor(1, dtype)
    axes = [one] * min(missing, depth + 1)
    ragged = [False] * len(axes)
    if isinstance(value, RaggedTensor):
        axes.append(value.nrows(out_type=dtype))
        ragged.append(False)
        flat = value.flat_values
        for splits in value.nested_row_splits:
            axes.append(cast(splits, dtype))
            ragged.append(True)
    else:
        flat = reshape(value, concat([[1], shape(value)], 0))
    sizes = shape(flat, out_type=dtype)
    merged = 0
    while len(axes) < depth + 1:
        merged += 1
        axes.append(sizes[merged])
        ragged.append(False)
    static = flat.spec.shape
    inner = rank - 1 - depth
    before = inner - (len(static) - 1 - merged)
    whole = concat([[-1], [1] * before, shape(flat)[merged + 1 :]], 0)
    return _Operand(axes, ragged, reshape(flat, whole))


def _step(
    operands: list[_Operand], axis: int, chosen: list[Tensor], count: Tensor
) -> tuple[Tensor, list[Tensor], Tensor]:
    """Go one axis inwards.

    Args:
        operands: The operands.
        axis: The axis.
        chosen: For each operand, which of its rows stands in each row of the result so far.
        count: How many rows that are.

    Returns:
        The splits of the axis in the result, which value of each operand stands where, and how
        many there are.
    """
    starts, lengths = [], []
    for operand, rows in zip(operands, chosen, strict=True):
        size = operand.axes[axis]
        if operand.ragged[axis]:
            starts.append(gather(size, rows))
            lengths.append(gather(lengths_of(size), rows))
        else:
            starts.append(rows * size)
            lengths.append(fill(reshape(count, [1]), size))
    whole = _length(operands, axis, lengths)
    checks: list[Operation | None] = []
    single: list[Tensor | None] = []
    for operand, length in zip(operands, lengths, strict=True):
        size = operand.axes[axis]
        message = "broadcasting: the rows of ragged operands have different lengths"
        if operand.ragged[axis]:
            single.append(None)
            if length is not whole:
                checks.append(assert_equal(length, whole, message=message))
        else:
            repeats = equal(size, 1)
            single.append(repeats)
            fits = logical_or(repeats, reduce_all(equal(length, whole)))
            checks.append(assert_true(fits, [f"{message}, in axis {axis}:", length, whole]))
    splits = after(checks, splits_of(whole))
    ids = ids_of(splits)
    place = within(splits, ids)
    found = []
    for start, one in zip(starts, single, strict=True):
        first = gather(start, ids)
        if one is None:
            found.append(first + place)
        else:
            found.append(first + where_v2(one, convert_to_tensor(0, place.dtype), place))
    return splits, found, splits[-1]


def _length(operands: list[_Operand], axis: int, lengths: list[Tensor]) -> Tensor:
    """Return how long the rows of the result are."""
    for operand, length in zip(operands, lengths, strict=True):
        if operand.ragged[axis]:
            return length
    whole = lengths[0]
    for length in lengths[1:]:
        whole = where_v2(equal(whole, 1), length, whole)
    return whole
