"""The value of a ragged tensor, as steps take and return it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, final

import numpy as np

from headrace.errors import ShapeError, shown


@final
class RaggedTensorValue:
    """The value of a ``RaggedTensor``.

    Attributes:
        values: An array [values, ...], or another ``RaggedTensorValue``.
        row_splits: [rows + 1], int32 or int64: row ``i`` is
            ``values[row_splits[i]:row_splits[i + 1]]``.
    """

    __slots__ = ("row_splits", "values")

    def __init__(self, values: Any, row_splits: Any) -> None:
        """Make a value of its parts.

        Args:
            values: An array, or a value of one ragged axis less.
            row_splits: [rows + 1], int32 or int64, ascending from 0.

        Raises:
            ShapeError: if ``row_splits`` is no vector of these integers.
        """
        try:
            splits = np.asarray(row_splits)
        except (ValueError, OverflowError, MemoryError):
            raise ShapeError(
                f"row_splits must be a vector of int32 or int64, got {shown(row_splits)}"
            ) from None
        if splits.ndim != 1 or splits.dtype not in (np.int32, np.int64):
            raise ShapeError(
                f"row_splits must be a vector of int32 or int64, got {splits.dtype}"
                f"{list(splits.shape)}"
            )
        self.values: Any = values if isinstance(values, RaggedTensorValue) else np.asarray(values)
        self.row_splits = splits

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        found: np.dtype[Any] = self.values.dtype
        return found

    @property
    def flat_values(self) -> Any:
        """The array inside of all ragged axes."""
        values = self.values
        return values.flat_values if isinstance(values, RaggedTensorValue) else values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The splits of all ragged axes, from the outermost."""
        inner = self.values
        deeper = inner.nested_row_splits if isinstance(inner, RaggedTensorValue) else ()
        return (self.row_splits, *deeper)

    @property
    def ragged_rank(self) -> int:
        """How many axes are ragged, or hold ragged ones."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, None for ragged axes."""
        return (len(self.row_splits) - 1, None, *self.values.shape[1:])

    def to_list(self) -> list[Any]:
        """Return the rows as nested lists."""
        inner = self.values
        rows = inner.to_list() if isinstance(inner, RaggedTensorValue) else inner.tolist()
        limits = self.row_splits.tolist()
        return [rows[a:b] for a, b in pairwise(limits)]

    def __repr__(self) -> str:
        return f"RaggedTensorValue(values={self.values!r}, row_splits={self.row_splits!r})"

    def __str__(self) -> str:
        return f"<RaggedTensorValue {self.to_list()}>"


def nested_value(parts: Any) -> RaggedTensorValue:
    """Return the value of flat values and the splits of each ragged axis, from the outermost."""
    flat, *splits = parts
    value: Any = flat
    for each in reversed(splits):
        value = RaggedTensorValue(value, each)
    assert isinstance(value, RaggedTensorValue)
    return value
