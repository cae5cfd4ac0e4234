"""Samples of ops on sparse tensors, with oracles in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import Input, array, uniform
from headrace_testing.sample import Reject, Row, Sample

_PLACES = [[1, 2], [0, 1], [1, 0], [0, 1]]
_CUBE = [[2, 0, 1], [0, 3, 1], [0, 0, 0], [2, 0, 0], [1, 2, 1]]


def _places(rows: Any, dtype: str = "int64") -> Input:
    return array(np.asarray(rows, np.int64).reshape(len(rows), -1), dtype)


def _none(rank: int) -> Input:
    return array(np.zeros((0, rank), np.int64), "int64")


def _shape(*dims: int, dtype: str = "int64") -> Input:
    return array(np.array(dims, np.int64), dtype)


def _vector(items: Any) -> Any:
    return np.array(items, np.int64)


def _matrix(rows: Any, width: int) -> Any:
    return np.array(rows, np.int64).reshape(len(rows), width)


# -- oracles


def _order(indices: Any, dense_shape: Any) -> Any:
    rows = [tuple(row) for row in indices.tolist()]
    return _vector(sorted(range(len(rows)), key=lambda i: (rows[i], i)))


def _group(indices: Any, dense_shape: Any, axes: Any, keepdims: bool = False) -> Any:
    rank = len(dense_shape)
    left_out = set(range(rank)) if axes is None else {a % rank for a in axes}
    kept = [a for a in range(rank) if a not in left_out]
    rows = [tuple(row[a] for a in kept) for row in indices.tolist()]
    found = sorted(set(rows))
    group = _vector([found.index(row) for row in rows])
    if not keepdims:
        return _matrix(found, len(kept)), group, _vector([dense_shape[a] for a in kept])
    wide = [[dict(zip(kept, row, strict=True)).get(a, 0) for a in range(rank)] for row in found]
    return (
        _matrix(wide, rank),
        group,
        _vector([1 if a in left_out else dense_shape[a] for a in range(rank)]),
    )


def _union(a: Any, a_shape: Any, b: Any, b_shape: Any) -> Any:
    indices, group, _ = _group(np.concatenate([a, b]), a_shape, ())
    return indices, group


def _reshape(indices: Any, dense_shape: Any, new_shape: Any) -> Any:
    whole = np.empty(dense_shape, bool).reshape(new_shape).shape
    flat = np.ravel_multi_index(tuple(indices.T), tuple(dense_shape))
    return np.stack(np.unravel_index(flat, whole), 1).astype(np.int64), _vector(whole)


def _concat(*inputs: Any, axis: int, expand_nonconcat_dims: bool = False) -> Any:
    indices, shapes = inputs
    at = axis % len(shapes[0])
    rows: list[tuple[int, ...]] = []
    before = 0
    for places, dims in zip(indices, shapes, strict=True):
        for row in places.tolist():
            row[at] += before
            rows.append(tuple(row))
        before += int(dims[at])
    whole = np.max(np.stack(shapes), 0)
    whole[at] = before
    order = sorted(range(len(rows)), key=lambda i: (rows[i], i))
    return _matrix([rows[i] for i in order], len(whole)), _vector(whole), _vector(order)


def _slice(indices: Any, dense_shape: Any, start: Any, size: Any) -> Any:
    end = np.minimum(start + size, dense_shape)
    chosen = [i for i, row in enumerate(indices) if (row >= start).all() and (row < end).all()]
    moved = [(indices[i] - start).tolist() for i in chosen]
    return _matrix(moved, len(start)), _vector(chosen), np.maximum(end - start, 0)


def _fill(indices: Any, dense_shape: Any) -> Any:
    rows = indices.tolist()
    rank = len(dense_shape)
    empty = [r for r in range(dense_shape[0]) if all(row[0] != r for row in rows)]
    tagged = [(row, i) for i, row in enumerate(rows)]
    tagged += [([r] + [0] * (rank - 1), len(rows)) for r in empty]
    ordered = sorted(range(len(tagged)), key=lambda i: (tagged[i][0][0], i))
    went = [ordered.index(i) for i in range(len(rows))]
    return (
        _matrix([tagged[i][0] for i in ordered], rank),
        _vector([tagged[i][1] for i in ordered]),
        np.array([r in empty for r in range(dense_shape[0])], bool),
        _vector(went),
    )


def _dense(indices: Any, shape: Any, values: Any, default: Any, **_: Any) -> Any:
    whole = np.full(tuple(shape), default, values.dtype)
    places = np.atleast_1d(indices)
    places = places[:, None] if places.ndim == 1 else places
    for i, place in enumerate(places.tolist()):
        whole[tuple(place)] = values[i] if values.ndim else values
    return whole


def _product(
    indices: Any, values: Any, shape: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False
) -> Any:
    a = np.zeros(tuple(shape), values.dtype)
    for place, value in zip(indices.tolist(), values, strict=True):
        a[tuple(place)] += value
    return (a.conj().T if adjoint_a else a) @ (b.conj().T if adjoint_b else b)


# -- rows

_DTYPES = ("float16", "float32", "float64", "bfloat16", "int32", "int64", "complex64", "complex128")

INDICES: list[Row] = [
    Sample("SparseOrder", [_places(_PLACES), _shape(2, 3)], {}, _order),
    Sample("SparseOrder", [_places(_CUBE, "int32"), _shape(3, 4, 2)], {}, _order, label="cube"),
    Sample("SparseOrder", [_none(2), _shape(2, 3)], {}, _order, label="empty"),
    Sample("SparseOrder", [_places([[], []]), _shape()], {}, _order, label="no_axes"),
    Sample(
        "SparseOrder",
        [_places([[2**62, 0], [0, 2**62]]), _shape(2**63 - 1, 2**63 - 1)],
        {},
        _order,
        label="huge",
    ),
    *(
        Sample(
            "SparseGroup",
            [_places(_CUBE), _shape(3, 4, 2)],
            {"axes": axes, "keepdims": keepdims},
            _group,
            label=f"{label}{'_kept' if keepdims else ''}",
            exact_shape=False,
        )
        for label, axes in (("all", None), ("none", ()), ("two", (0, -1)), ("one", (1,)))
        for keepdims in (False, True)
    ),
    Sample(
        "SparseGroup",
        [_none(2), _shape(2, 3)],
        {"axes": (0,)},
        _group,
        label="empty",
        exact_shape=False,
    ),
    Sample(
        "SparseUnion",
        [_places(_PLACES), _shape(2, 3), _places([[1, 1], [1, 2]]), _shape(2, 3)],
        {},
        _union,
        exact_shape=False,
    ),
    Sample(
        "SparseUnion",
        [_none(1), _shape(4), _none(1), _shape(4)],
        {},
        _union,
        label="empty",
        exact_shape=False,
    ),
    Sample("SparseReshape", [_places(_PLACES), _shape(2, 3), _shape(3, -1)], {}, _reshape),
    Sample(
        "SparseReshape",
        [_places(_CUBE), _shape(3, 4, 2), _shape(24, dtype="int32")],
        {},
        _reshape,
        label="flat",
    ),
    Sample("SparseReshape", [_none(1), _shape(0), _shape(0, 3)], {}, _reshape, label="empty"),
    Sample(
        "SparseConcat",
        [[_places(_PLACES), _places([[0, 0]])], [_shape(2, 3), _shape(2, 1)]],
        {"axis": 1},
        _concat,
    ),
    Sample(
        "SparseConcat",
        [[_places(_PLACES), _places([[4, 0]])], [_shape(2, 3), _shape(5, 1)]],
        {"axis": -1, "expand_nonconcat_dims": True},
        _concat,
        label="expanded",
    ),
    Sample(
        "SparseConcat",
        [[_places(_PLACES), _none(2)], [_shape(2, 3), _shape(0, 3)]],
        {"axis": 0},
        _concat,
        label="empty",
    ),
    Sample(
        "SparseSlice",
        [_places(_PLACES), _shape(2, 3), _shape(0, 1), _shape(2, 9)],
        {},
        _slice,
        exact_shape=False,
    ),
    Sample(
        "SparseSlice",
        [_places(_PLACES), _shape(2, 3), _shape(5, 0), _shape(2, 2**62)],
        {},
        _slice,
        label="beyond",
        exact_shape=False,
    ),
    Sample("SparseFillEmptyRows", [_places(_PLACES), _shape(4, 3)], {}, _fill, exact_shape=False),
    Sample(
        "SparseFillEmptyRows", [_none(2), _shape(2, 3)], {}, _fill, label="empty", exact_shape=False
    ),
    Sample(
        "SparseFillEmptyRows", [_none(1), _shape(0)], {}, _fill, label="no_rows", exact_shape=False
    ),
    Reject(
        "SparseOrder",
        [_places(_PLACES), _shape(2, 3, 4)],
        error=ShapeError,
        match="2 columns, dense_shape has 3",
    ),
    Reject(
        "SparseOrder",
        [array([1, 2], "int64"), _shape(2)],
        error=ShapeError,
        match="indices must have 2 dimensions",
        label="vector",
    ),
    Reject(
        "SparseGroup",
        [_places(_PLACES), _shape(2, 3)],
        {"axes": (2,)},
        ShapeError,
        "axis 2 is out of range",
    ),
    Reject(
        "SparseUnion",
        [_places(_PLACES), _shape(2, 3), _places(_PLACES), _shape(2, 4)],
        error=ShapeError,
        match="differ",
    ),
    Reject(
        "SparseReshape",
        [_places(_PLACES), _shape(2, 3), _shape(4)],
        error=ShapeError,
        match="of 6 elements",
    ),
    Reject(
        "SparseReshape",
        [_places(_PLACES), _shape(2, 3), _shape(-1, -1)],
        error=ShapeError,
        match="but for one -1",
        label="two_open",
    ),
    Reject(
        "SparseReshape",
        [_places([[5, 0]]), _shape(2, 3), _shape(6)],
        error=ExecutionError,
        match="index 5 is out of range",
        when="run",
        label="outside",
    ),
    Reject(
        "SparseConcat",
        [[_places(_PLACES), _places([[4, 0]])], [_shape(2, 3), _shape(5, 1)]],
        {"axis": 1},
        ShapeError,
        "differ in other axes",
    ),
    Reject(
        "SparseConcat",
        [[_places(_PLACES)], [_shape(2, 3), _shape(5, 1)]],
        {"axis": 1},
        AttributeValueError,
        "1 indices and 2 shapes",
        label="count",
    ),
    Reject(
        "SparseSlice",
        [_places(_PLACES), _shape(2, 3), _shape(0, -1), _shape(2, 2)],
        error=ShapeError,
        match="start must be >= 0",
    ),
    Reject(
        "SparseFillEmptyRows",
        [_places([[7, 0]]), _shape(2, 3)],
        error=ExecutionError,
        match="index 7 is out of range",
        when="run",
    ),
]

VALUES: list[Row] = [
    Sample(
        "SparseToDense",
        [_places([[0, 1], [1, 0], [1, 2]]), _shape(2, 3), uniform(3), uniform(())],
        {},
        _dense,
        grad=("sparse_values", "default_value"),
    ),
    Sample(
        "SparseToDense",
        [array([1, 1], "int32"), _shape(4, dtype="int32"), uniform(2), uniform(())],
        {"validate_indices": False},
        _dense,
        dtypes=("float64",),
        label="repeated",
    ),
    Sample(
        "SparseToDense",
        [array(2, "int64"), _shape(4), uniform(()), uniform(())],
        {},
        _dense,
        dtypes=("float32", "string"),
        grad=("sparse_values", "default_value"),
        label="one",
    ),
    Sample(
        "SparseToDense",
        [array([0, 3], "int64"), _shape(4), uniform(()), uniform(())],
        {},
        _dense,
        dtypes=("float64", "bool"),
        grad=("sparse_values", "default_value"),
        label="same",
    ),
    Sample(
        "SparseToDense",
        [_none(2), _shape(0, 3), uniform(0), uniform(())],
        {},
        _dense,
        dtypes=("float32",),
        grad=False,
        label="empty",
    ),
    *(
        Sample(
            "SparseTensorDenseMatMul",
            [
                _places(_PLACES),
                uniform(4),
                _shape(2, 3),
                uniform((4, rows) if adjoint_b else (rows, 4)),
            ],
            {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b},
            _product,
            dtypes=_DTYPES if adjoint_a == adjoint_b else ("float32", "complex128"),
            label=f"{'adjoint' if adjoint_a else 'plain'}_{'adjoint' if adjoint_b else 'plain'}",
        )
        for adjoint_a, rows in ((False, 3), (True, 2))
        for adjoint_b in (False, True)
    ),
    Sample(
        "SparseTensorDenseMatMul",
        [_none(2), uniform(0), _shape(2, 3), uniform((3, 2))],
        {},
        _product,
        dtypes=("float32", "int32"),
        grad=False,
        label="empty",
    ),
    Sample(
        "SparseTensorDenseMatMul",
        [_places([[0, 0], [1, 1]]), array([np.inf, np.nan]), _shape(2, 3), array(np.ones((3, 2)))],
        {},
        lambda *_, **__: np.array([[np.inf] * 2, [np.nan] * 2]),
        dtypes=("float32", "float64"),
        grad=False,
        label="special",
    ),
    Reject(
        "SparseToDense",
        [array([3, 1], "int64"), _shape(4), array([1, 2], "int32"), array(0, "int32")],
        error=ExecutionError,
        match="out of order",
        when="run",
        label="order",
    ),
    Reject(
        "SparseToDense",
        [array([1, 1], "int64"), _shape(4), array([1, 2], "int32"), array(0, "int32")],
        error=ExecutionError,
        match="repeated",
        when="run",
        label="repeated",
    ),
    Reject(
        "SparseToDense",
        [array([4], "int64"), _shape(4), array([1], "int32"), array(0, "int32")],
        error=ExecutionError,
        match="index 4 is out of range",
        when="run",
        label="outside",
    ),
    Reject(
        "SparseToDense",
        [array([[0, 0]], "int64"), _shape(4), array([1], "int32"), array(0, "int32")],
        error=ShapeError,
        match="2 columns, output_shape has 1",
        label="rank",
    ),
    Reject(
        "SparseToDense",
        [array([0, 1], "int64"), _shape(4), array([1, 2, 3], "int32"), array(0, "int32")],
        error=ShapeError,
        match="2 indices, but sparse_values",
        label="count",
    ),
    Reject(
        "SparseTensorDenseMatMul",
        [_places(_PLACES), array([1.0] * 4, "float32"), _shape(2, 3), array([[1.0]], "float32")],
        error=ShapeError,
        match="have no product",
        label="sizes",
    ),
    Reject(
        "SparseTensorDenseMatMul",
        [_places(_CUBE), array([1.0] * 5, "float32"), _shape(3, 4, 2), array([[1.0]], "float32")],
        error=ShapeError,
        match="must have 2 dimensions",
        label="rank",
    ),
    Reject(
        "SparseTensorDenseMatMul",
        [_places([[2, 0]]), array([1.0], "float32"), _shape(2, 1), array([[1.0]], "float32")],
        error=ExecutionError,
        match="index 2 is out of range",
        when="run",
        label="outside",
    ),
    Reject(
        "SparseTensorDenseMatMul",
        [_places([[0, 0]]), array([True], "bool"), _shape(1, 1), array([[True]], "bool")],
        error=DTypeError,
        match="must be numeric",
        label="bool",
    ),
]

SAMPLES: list[Row] = [*INDICES, *VALUES]
