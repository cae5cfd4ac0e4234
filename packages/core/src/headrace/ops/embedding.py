"""Looking up rows of tables, whole or divided into shards."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import colocate_with, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, identity, reshape, shape, size, stack
from headrace.ops.constant import ones_like
from headrace.ops.constant import range as range_
from headrace.ops.conversion import cast
from headrace.ops.elementwise import greater, less, maximum, select
from headrace.ops.gather import dynamic_partition, dynamic_stitch, gather
from headrace.ops.partitioned_variable import PartitionedVariable
from headrace.ops.reduce import reduce_sum
from headrace.ops.transcendental import sqrt
from headrace.shapes import Shape


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """Look up rows of a table, or of the shards of one.

    Gradients are row-sparse, for each shard by itself.

    Args:
        params: [rows, ...], a variable, a tensor, a partitioned variable, or a list of the shards
            of a table.
        ids: [...], int32 or int64, each in [0, rows of the whole table).
        partition_strategy: Which shard has a row: "mod", the row's number modulo the number of
            shards; "div", consecutive rows are together, the first shards having one more where
            they do not divide evenly.
        name: The name of the operations.
        validate_indices: Without effect: ids are always checked.
        max_norm: Scale rows down to this length where they are longer.

    Returns:
        The shape of ``ids`` followed by that of a row, the dtype of ``params``.

    Raises:
        AttributeValueError: if there are no shards, or the strategy is unknown.
    """
    del validate_indices
    shards = shards_of(params)
    if params is None or not shards:
        raise AttributeValueError("embedding_lookup needs a table, or a list of its shards")
    if partition_strategy not in ("mod", "div"):
        raise AttributeValueError(
            f"partition_strategy must be 'mod' or 'div', got {shown(partition_strategy)}"
        )
    with name_scope(name, "embedding_lookup", [ids]):
        wanted = convert_to_tensor(ids)
        tables = [t if hasattr(t, "op") else convert_to_tensor(t) for t in shards]
        if len(tables) == 1:
            with colocate_with(tables[0]):
                rows = _clipped(gather(tables[0], wanted), wanted, max_norm)
            return identity(rows)
        return _clipped(_from_shards(tables, wanted, partition_strategy), wanted, max_norm)


def shards_of(params: Any) -> list[Any]:
    """Return the shards of a table: a list of them, those of a partitioned variable, or itself."""
    if isinstance(params, list | tuple | PartitionedVariable):
        return list(params)
    return [params]


def _from_shards(tables: list[Any], ids: Tensor, strategy: str) -> Tensor:
    """Return the rows ``ids``, each looked up where its shard is."""
    count = len(tables)
    flat = reshape(ids, [-1])
    if strategy == "mod":
        shards, places = flat % count, flat // count
    else:
        shards, places = _consecutive(tables, flat)
    shards = cast(shards, dtypes.int32)
    order = dynamic_partition(range_(size(flat)), shards, count)
    parts = dynamic_partition(places, shards, count)
    rows = []
    for table, part in zip(tables, parts, strict=True):
        with colocate_with(table):
            rows.append(gather(table, part))
    joined = dynamic_stitch(order, rows)
    row = Shape(tables[0].shape)[1:]
    for table in tables[1:]:
        row = row.merge_with(Shape(table.shape)[1:])
    if ids.shape.is_fully_defined() and row.is_fully_defined():
        return reshape(joined, [*ids.shape.known, *row.known])
    # Where there are no ids, only a table knows how large a row is.
    return reshape(joined, concat([shape(ids), _row_dims(tables[0], row)], 0))


def _row_dims(table: Any, row: Shape) -> Any:
    return np.array(row.known, np.int32) if row.is_fully_defined() else shape(table)[1:]


def _consecutive(tables: list[Any], flat: Tensor) -> tuple[Tensor, Tensor]:
    """Return the shards of rows, and their places there, where consecutive rows are together."""
    count = len(tables)
    if any(t.shape.rank == 0 for t in tables):
        raise ShapeError("params must have dimensions, got a scalar")
    sizes = [Shape(t.shape)[0] for t in tables]
    total: Any
    if None not in sizes:
        total = sum(s for s in sizes if s is not None)
        each: Any = max(total // count, 1)
    else:
        total = reduce_sum(stack([shape(t, out_type=flat.dtype)[0] for t in tables]))
        each = maximum(total // count, 1)
    more = total % count
    # The first ``more`` shards have one row more than the others.
    shards = maximum(flat // (each + 1), (flat - more) // each)
    places = select(less(shards, more), flat % (each + 1), (flat - more) % each)
    return shards, places


def _clipped(rows: Tensor, ids: Tensor, max_norm: float | None) -> Tensor:
    """Return rows, those longer than ``max_norm`` scaled down to it."""
    if max_norm is None:
        return rows
    if rows.shape.rank is None or ids.shape.rank is None:
        raise ShapeError("max_norm needs ids and a table whose numbers of dimensions are known")
    axes = list(range(ids.shape.rank, rows.shape.rank))
    squares = reduce_sum(rows * rows, axes, keepdims=True)
    some = greater(squares, 0)
    # The gradient of a square root has no limit at 0.
    length = select(some, sqrt(select(some, squares, ones_like(squares))), squares)
    return rows * max_norm / maximum(length, max_norm)
