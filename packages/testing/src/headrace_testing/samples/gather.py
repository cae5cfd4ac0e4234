"""Samples of picking parts of tensors by indices, and of putting them back."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array, booleans, integers, strings, uniform, whole
from headrace_testing.sample import Reject, Row, Sample

# Where values are only moved, these stand for all dtypes of their size and kind.
_MOVED = ("float64", "float32", "int8", "int64", "bool", "complex64", "string")
_ADDED = ("float16", "float32", "float64", "int16", "int64", "uint8", "complex128")


def _at(indices: Any, dtype: str = "int32") -> Any:
    return array(np.array(indices, np.int64), dtype)


def _shared(params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    lead = indices.shape[:batch_dims]
    picked = [np.take(params[b], indices[b], axis - batch_dims) for b in np.ndindex(*lead)]
    return np.reshape(np.stack(picked), (*lead, *np.shape(picked[0])))


GATHERED = [
    *(
        Sample(
            "Gather",
            [uniform(shape), array(np.array(indices, np.int64), dtype)],
            {"axis": axis},
            lambda params, indices, axis: np.take(params, indices, axis),
            label=label,
        )
        for label, shape, indices, dtype, axis in (
            ("rows", (4, 3), [3, 0, 3], "int32", 0),
            ("columns", (4, 3), [[2, 0], [1, 1]], "int64", -1),
            ("middle", (2, 4, 3), [1, 3, 0], "int32", 1),
            ("one", (4, 3), 2, "int32", 0),
            ("vector", (5,), [0, 0, 4], "int32", 0),
            ("nothing", (4, 3), [], "int32", 0),
        )
    ),
    *(
        Sample(
            "Gather",
            [uniform(shape), _at(indices, dtype)],
            {"axis": axis, "batch_dims": batch_dims},
            _shared,
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, indices, dtype, axis, batch_dims in (
            ("batch", (2, 4), [[3, 0, 3], [1, 1, 2]], "int32", 1, 1),
            ("batch_slices", (2, 4, 3), [[3], [1]], "int64", 1, 1),
            ("batch_later", (2, 3, 4), [[0, 3], [1, 1]], "int32", 2, 1),
            ("batch_both", (2, 2, 3), [[2, 1], [0, 0]], "int32", 2, 2),
            ("batch_empty", (2, 4), [[], []], "int32", 1, 1),
        )
    ),
]


def _tuples(indices: Any) -> Any:
    return tuple(np.moveaxis(indices, -1, 0).astype(np.int64))


def _added(indices: Any, updates: Any, shape: Any) -> Any:
    if updates.dtype == object:
        joined = np.full([int(d) for d in shape], b"", object)
        for place, value in zip(indices, updates, strict=True):
            joined[tuple(int(i) for i in place)] += value
        return joined
    if updates.dtype == bool:
        return _added(indices, updates.astype(np.int64), shape) > 0
    total = np.zeros([int(d) for d in shape], updates.dtype)
    np.add.at(total, _tuples(indices), updates)
    return total


def _scattered(tensor: Any, indices: Any, updates: Any, mode: str) -> Any:
    result = tensor.copy()
    if mode == "update":
        result[_tuples(indices)] = updates
    else:
        np.add.at(result, _tuples(indices), updates if mode == "add" else -updates)
    return result


BY_TUPLES = [
    *(
        Sample(
            "GatherNd",
            [uniform(shape), _at(np.reshape(indices, at), dtype)],
            {},
            lambda params, indices: params[_tuples(indices)],
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, indices, at, dtype in (
            ("elements", (3, 4), [[0, 1], [2, 3], [0, 1]], (3, 2), "int32"),
            ("slices", (3, 4), [2, 0], (2, 1), "int64"),
            ("deep", (2, 3, 4), [[1, 2], [0, 0]], (2, 1, 2), "int32"),
            ("one", (3, 4), [1, 2], (2,), "int32"),
            ("nothing", (3, 4), [], (0, 2), "int32"),
        )
    ),
    Sample(
        "GatherNd",
        [uniform((2, 3)), _at(np.zeros((2, 0)))],
        {},
        lambda params, indices: np.stack([params, params]),
        dtypes=_MOVED,
        label="whole",
    ),
    *(
        Sample(
            "ScatterNd",
            [_at(np.reshape(indices, at), dtype), uniform(part), _at(shape)],
            {},
            _added,
            dtypes=(*_ADDED, "bool", "string"),
            label=label,
        )
        for label, shape, indices, at, part, dtype in (
            ("elements", (3, 4), [[0, 1], [2, 3], [0, 1]], (3, 2), (3,), "int32"),
            ("slices", (3, 2), [2, 0, 2], (3, 1), (3, 2), "int64"),
            ("nothing", (3, 2), [], (0, 1), (0, 2), "int32"),
            ("empty", (0, 2), [], (0, 1), (0, 2), "int32"),
        )
    ),
    *(
        Sample(
            "TensorScatter",
            [uniform((3, 4)), _at(np.reshape(indices, at), dtype), uniform(part)],
            {"mode": mode},
            _scattered,
            dtypes=_MOVED if mode == "update" else _ADDED,
            label=f"{mode}_{label}",
        )
        for mode in ("update", "add", "sub")
        for label, indices, at, part, dtype in (
            ("elements", [[0, 1], [2, 3]], (2, 2), (2,), "int32"),
            ("slices", [2, 0], (2, 1), (2, 4), "int64"),
            ("nothing", [], (0, 1), (0, 4), "int32"),
        )
    ),
    Sample(
        "TensorScatter",
        [uniform((3,), 1, 5), _at([[1], [1], [1]]), uniform((3,), 1, 5)],
        {"mode": "sub"},
        _scattered,
        dtypes=_ADDED,
        label="sub_twice",
    ),
    Sample(
        "TensorScatter",
        [uniform((3,)), _at([[1], [1], [0], [1]]), uniform((4,))],
        {"mode": "update"},
        _scattered,
        dtypes=_MOVED,
        label="update_twice",
    ),
]

FOUND = [
    *(
        Sample(
            "Where",
            [maker],
            {},
            lambda condition: np.argwhere(condition),
            dtypes=("bool", "float32", "int32", "complex64"),
            label=label,
        )
        for label, maker in (
            ("matrix", whole((3, 4), 0, 1)),
            ("vector", whole((5,), 0, 2)),
            ("empty", whole((0, 2), 0, 1)),
        )
    ),
    Sample(
        "Where", [array(1.5, "float64")], {}, lambda c: np.zeros((1, 0), np.int64), label="scalar"
    ),
    Sample(
        "Where",
        [array([np.nan, 0.0, -0.0, np.inf], "float32")],
        {},
        lambda c: np.array([[0], [3]]),
        label="special",
    ),
    Sample("Where", [booleans((2, 2, 2))], {}, lambda c: np.argwhere(c), label="cube"),
]


def _parts(data: Any, partitions: Any, num_partitions: int) -> Any:
    return tuple(data[partitions == i] for i in range(num_partitions))


def _stitched(indices: Any, data: Any) -> Any:
    count = max([int(i.max()) for i in indices if i.size], default=-1) + 1
    rest = data[0].shape[indices[0].ndim :]
    whole = np.full((count, *rest), b"" if data[0].dtype == object else 0, data[0].dtype)
    for at, part in zip(indices, data, strict=True):
        for place in np.ndindex(*at.shape):
            whole[at[place]] = part[place]
    return whole


PARTS = [
    *(
        Sample(
            "DynamicPartition",
            [uniform(shape), _at(partitions)],
            {"num_partitions": parts},
            _parts,
            dtypes=_MOVED,
            label=label,
        )
        for label, shape, partitions, parts in (
            ("rows", (4, 2), [1, 0, 1, 3], 4),
            ("elements", (2, 3), [[1, 0, 1], [0, 0, 1]], 2),
            ("slices", (2, 2, 3), [[1, 0], [1, 1]], 2),
            ("scalar", (2,), 1, 2),
            ("empty", (0, 2), [], 2),
        )
    ),
    *(
        Sample(
            "DynamicStitch",
            [[_at(at) for at in indices], [uniform(shape) for shape in shapes]],
            {},
            _stitched,
            dtypes=_MOVED,
            label=label,
        )
        for label, indices, shapes in (
            ("rows", [[0, 2], [3, 1]], [(2, 3), (2, 3)]),
            ("ranks", [3, [[0, 1], [2, 4]]], [(2,), (2, 2, 2)]),
            ("gap", [[4], [1]], [(1,), (1,)]),
            ("empty", [[], []], [(0, 2), (0, 2)]),
        )
    ),
]

REJECTS: list[Row] = [
    Reject(
        "Gather",
        [integers((4, 3), 0, 9), array([0, 4], "int32")],
        {},
        ExecutionError,
        "4",
        when="run",
        label="beyond",
    ),
    Reject(
        "Gather",
        [integers((4, 3), 0, 9), array([0, -1], "int32")],
        {},
        ExecutionError,
        "-1",
        when="run",
        label="negative",
    ),
    Reject(
        "Gather",
        [integers((4, 3), 0, 9), array([0.0, 1.0], "float32")],
        {},
        DTypeError,
        "int32 or int64, got float32",
        label="dtype",
    ),
    Reject(
        "Gather",
        [integers((2, 3), 0, 9), _at([[0], [0], [0]])],
        {"axis": 1, "batch_dims": 1},
        ShapeError,
        "incompatible",
        label="batch",
    ),
    Reject(
        "GatherNd",
        [integers((4, 3), 0, 9), _at([[0, 3]])],
        {},
        ExecutionError,
        "index 3 is out of range",
        when="run",
        label="beyond",
    ),
    Reject(
        "GatherNd",
        [integers((4, 3), 0, 9), _at([[0, 1, 2]])],
        {},
        ShapeError,
        "2 axes only",
        label="deep",
    ),
    Reject(
        "ScatterNd",
        [_at([[3]]), integers((1,), 0, 9), _at([3])],
        {},
        ExecutionError,
        "index 3 is out of range",
        when="run",
        label="beyond",
    ),
    Reject(
        "ScatterNd",
        [_at([[1]]), integers((1, 2), 0, 9), _at([3])],
        {},
        ShapeError,
        "updates must have shape",
    ),
    Reject(
        "TensorScatter",
        [integers((3,), 0, 9), _at([[-1]]), integers((1,), 0, 9)],
        {"mode": "add"},
        ExecutionError,
        "index -1 is out of range",
        when="run",
        label="beyond",
    ),
    Reject(
        "TensorScatter",
        [integers((3,), 0, 9), _at([[1]]), integers((1,), 0, 9)],
        {"mode": "max"},
        AttributeValueError,
        "mode must be",
        label="mode",
    ),
    Reject(
        "TensorScatter",
        [booleans((3,)), _at([[1]]), booleans((1,))],
        {"mode": "add"},
        DTypeError,
        "must be numeric",
        label="bool",
    ),
    Reject("Where", [strings((2,))], {}, DTypeError, "bool or numeric"),
    Reject(
        "DynamicPartition",
        [integers((3,), 0, 9), _at([0, 2, 1])],
        {"num_partitions": 2},
        ExecutionError,
        "index 2 is out of range",
        when="run",
        label="beyond",
    ),
    Reject(
        "DynamicPartition",
        [integers((3,), 0, 9), _at([0, 1])],
        {"num_partitions": 2},
        ShapeError,
        "must be the leading axes",
    ),
    Reject(
        "DynamicStitch",
        [[_at([0, 1])], [integers((3,), 0, 9)]],
        {},
        ShapeError,
        "must be the leading axes",
    ),
    Reject(
        "DynamicStitch",
        [[_at([0, -1])], [integers((2,), 0, 9)]],
        {},
        ShapeError,
        ">= 0",
        label="negative",
    ),
]

SAMPLES: list[Row] = [*GATHERED, *BY_TUPLES, *FOUND, *PARTS, *REJECTS]
