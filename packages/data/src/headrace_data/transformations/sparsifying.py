"""Sparse batches of tensors of many shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DataLossError, DTypeError, InvalidArgumentError, shown, told
from headrace_data import structure
from headrace_data.build import make
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, stream
from headrace_data.structure import Described
from headrace_data.transformations.batching import Batches, batch_arguments


def dense_to_sparse(dataset: Described, batch_size: Any, row_shape: Any) -> Described:
    """Return a data set of sparse batches."""
    spec = dataset.spec
    if not isinstance(spec, structure.TensorComponent):
        raise DTypeError(
            "dense_to_sparse_batch takes elements that are one tensor, got "
            f"{shown(structure.dtypes_of(spec))}"
        )
    shape = _open_shape(row_shape)
    size, drop = batch_arguments(batch_size, False)
    sizes = np.array([-1 if d is None else d for d in shape.as_list()], np.int64)
    return make(
        "dense_to_sparse",
        structure.SparseComponent(spec.dtype, hr.Shape([None]).concatenate(shape)),
        sources=[dataset],
        arguments=[size, drop, hr.constant(sizes, hr.int64, name="row_shape")],
    )


def _open_shape(row_shape: Any) -> Any:
    """Return a shape in which None and -1 both leave a size open."""
    if isinstance(row_shape, list | tuple | np.ndarray):
        row_shape = [None if d is None or d == -1 else d for d in row_shape]
    return structure.as_shape(row_shape)


@stream("dense_to_sparse")
class DenseToSparseStream(Batches):
    """So many tensors at a time, as one sparse tensor that has all their elements."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._row_shape = [int(size) for size in value.arguments[2]]

    def _joined(self, columns: list[Sequence[Any]]) -> Element:
        (rows,) = columns
        for i, row in enumerate(rows):
            self._check(i, row.shape)
        largest = np.max([row.shape for row in rows], axis=0, initial=0).tolist()
        shape = [b if a < 0 else a for a, b in zip(self._row_shape, largest, strict=True)]
        places = [
            np.concatenate([np.full((row.size, 1), i), _places(row.shape)], axis=1)
            for i, row in enumerate(rows)
        ]
        values = np.concatenate([row.reshape(-1) for row in rows])
        return (
            np.concatenate(places).astype(np.int64, copy=False),
            values,
            np.array([len(rows), *shape], np.int64),
        )

    def _check(self, number: int, shape: tuple[int, ...]) -> None:
        wanted = self._row_shape
        if len(shape) != len(wanted):
            raise InvalidArgumentError(
                f"dense_to_sparse_batch: element {told(number)} has shape {told(list(shape))}, "
                f"which is incompatible with the row shape {told(wanted)}"
            )
        if any(0 <= room < have for have, room in zip(shape, wanted, strict=True)):
            raise DataLossError(
                f"dense_to_sparse_batch: element {told(number)} has shape {told(list(shape))}, "
                f"which is larger than the row shape {told(wanted)}"
            )


def _places(shape: tuple[int, ...]) -> Any:
    """Return the indices of all elements of a tensor, in order."""
    return np.indices(shape).reshape(len(shape), math.prod(shape)).T
