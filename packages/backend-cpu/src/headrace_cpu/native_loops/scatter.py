"""Scatter: slices put into tensors by tuples of indices, and rows sorted into parts.

Tuples become numbers of rows, and what is put there is a fold of the rows with each number: their
sum, or the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.native_loops.gather import (
    flatten_native_loop,
    flattened,
    pick_native_loop,
    picked,
)
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, code_of
from headrace_cpu.native_loops.segment_reductions import Folding, fold_native_loop, folded

# As many elements as other folds allow.
_MOST_ELEMENTS = 1 << 29
_MOST_DENSE = 1 << 26
# Numbers of parts that NumPy sorts by their digits.
_MOST_PARTS = 1 << 16
_MODES = {"update": "last", "add": "sum", "sub": "difference"}


def _native_loops(fold: str, values: Any, indices: Any) -> list[NativeLoop] | None:
    """Return the native loops that fold values by tuples of indices, given their specs."""
    code, index = code_of(values.dtype.numpy), code_of(indices.dtype.numpy)
    dims = indices.spec.shape.dims
    if code in (None, "b8") or index is None or not dims or dims[-1] is None:
        return None
    rows = index if dims[-1] == 1 else "i64"
    return [
        fold_native_loop(fold, code, rows, "i32", 1, False, runs=False),
        flatten_native_loop(index, dims[-1]),
    ]


def _folded(
    calls: Sequence[Call], threads: int, result: Any, indices: Any, updates: Any, fresh: bool
) -> Any:
    """Fold slices into a result, and return it; None where they do not fit."""
    dims = result.shape
    if not indices.size or not updates.size or not 0 < result.size <= _MOST_ELEMENTS:
        return None
    depth = indices.shape[-1]
    if depth > len(dims) or updates.shape != (*indices.shape[:-1], *dims[depth:]):
        return None
    rows = flattened(calls[1], threads, indices, dims)
    if rows is None:
        return None
    table = result.reshape((prod(dims[:depth]), prod(dims[depth:])))
    values = np.ascontiguousarray(updates).reshape((rows.size, table.shape[1]))
    done = folded(calls[0], threads, Folding(rows, rows.size, values), table, fresh=fresh)
    return result if done else None


def _scatter_job(op: Operation) -> Job | None:
    indices, updates = op.inputs[:2]
    native_loops = _native_loops("sum", updates, indices)
    if native_loops is None:
        return None

    def run(calls: Sequence[Call], threads: int, indices: Any, updates: Any, shape: Any) -> Any:
        dims = tuple(int(d) for d in shape.tolist())
        if not dims or min(dims) < 1 or prod(dims) > _MOST_ELEMENTS:
            return None
        return _folded(calls, threads, np.empty(dims, updates.dtype), indices, updates, True)

    return Job(native_loops, run)


def _tensor_job(op: Operation) -> Job | None:
    native_loops = _native_loops(_MODES[op.attrs["mode"]], op.inputs[0], op.inputs[1])
    if native_loops is None:
        return None

    def run(calls: Sequence[Call], threads: int, x: Any, indices: Any, updates: Any) -> Any:
        return _folded(calls, threads, np.array(x, order="C"), indices, updates, False)

    return Job(native_loops, run)


def _dense_job(op: Operation) -> Job | None:
    native_loops = _native_loops("last", op.inputs[2], op.inputs[0])
    if native_loops is None:
        return None
    ascending = op.attrs["validate_indices"]

    def run(
        calls: Sequence[Call], threads: int, indices: Any, shape: Any, values: Any, default: Any
    ) -> Any:
        dims = tuple(int(d) for d in shape.tolist()) if shape.ndim else ()
        fits = indices.ndim == 2 and indices.shape[1] == len(dims) and not default.ndim
        # A tensor that is large for its few elements is refused by the plain kernel.
        if not fits or not dims or min(dims) < 1 or prod(dims) > _MOST_DENSE:
            return None
        rows = flattened(calls[1], threads, indices, dims)
        if rows is None or (ascending and not (rows[1:] > rows[:-1]).all()):
            return None
        if values.shape != rows.shape or not rows.size:
            return None
        result = np.full(dims, default[()], values.dtype)
        folding = Folding(rows, rows.size, np.ascontiguousarray(values)[:, None])
        return (
            result
            if folded(calls[0], threads, folding, result.reshape((-1, 1)), fresh=False)
            else None
        )

    return Job(native_loops, run)


def _partition_job(op: Operation) -> Job | None:
    dtype, parts = op.inputs[0].dtype, op.attrs["num_partitions"]
    known = dtype.kind not in ("string", "resource", "list")
    size = dtype.numpy.itemsize if known else 0
    if size not in (1, 2, 4, 8) or not 0 < parts <= _MOST_PARTS:
        return None
    narrow = np.uint8 if parts <= 1 << 8 else np.uint16

    def run(calls: Sequence[Call], threads: int, data: Any, partitions: Any) -> Any:
        lead, rest = partitions.ndim, data.shape[partitions.ndim :]
        if not data.size or data.shape[:lead] != partitions.shape or not lead:
            return None
        numbers = partitions.reshape(-1)
        if numbers.min() < 0 or numbers.max() >= parts:
            return None
        numbers = numbers.astype(narrow)
        order = numbers.argsort(kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=parts))
        count, width = numbers.size, prod(rest)
        table, shape = np.ascontiguousarray(data), (count, *rest)
        rows = picked(calls[0], threads, table, order, shape, (1, 1, count, count, width))
        return None if rows is None else np.split(rows, ends[:-1])

    return Job((pick_native_loop(size, "i64"),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "ScatterNd": _scatter_job,
    "TensorScatter": _tensor_job,
    "SparseToDense": _dense_job,
    "DynamicPartition": _partition_job,
}
