"""Functions of sparse tensors against NumPy on the dense tensors that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    FeedError,
    GraphError,
    ShapeError,
)
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")


def dense_of(value: hr.SparseTensorValue) -> Any:
    """Return what a sparse value stands for; elements of one place add up."""
    whole = np.zeros(tuple(value.dense_shape), np.asarray(value.values).dtype)
    places = np.asarray(value.indices)
    if not places.shape[1]:
        return whole + np.sum(value.values)
    np.add.at(whole, tuple(places.T), value.values)
    return whole


def sparse_of(dense: Any, shuffled: bool = False) -> hr.SparseTensor:
    places = np.argwhere(dense)
    if shuffled:
        places = np.random.default_rng(0).permutation(places)
    return hr.SparseTensor(places, dense[tuple(places.T)], dense.shape)


def example(*shape: int, seed: int = 1, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 9, shape) * (rng.random(shape) < 0.5)).astype(dtype)


CUBE = example(3, 4, 2)
MATRIX = example(3, 5, seed=2)


def is_sorted(indices: Any) -> bool:
    rows = [tuple(row) for row in indices.tolist()]
    return rows == sorted(rows)


ARRANGED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reorder": (hr.sparse.reorder, lambda d: d),
    "transpose": (hr.sparse.transpose, lambda d: d.T),
    "transpose_perm": (
        lambda s: hr.sparse.transpose(s, [1, 2, 0]),
        lambda d: d.transpose(1, 2, 0),
    ),
    "reshape": (lambda s: hr.sparse.reshape(s, [6, -1]), lambda d: d.reshape(6, -1)),
    "expand_dims": (hr.sparse.expand_dims, lambda d: d[..., None]),
    "expand_dims_1": (lambda s: hr.sparse.expand_dims(s, 1), lambda d: d[:, None]),
    "slice": (lambda s: hr.sparse.slice(s, [1, 0, 1], [9, 3, 1]), lambda d: d[1:, :3, 1:2]),
    "concat": (lambda s: hr.sparse.concat(1, [s, s]), lambda d: np.concatenate([d, d], 1)),
    "retain": (
        lambda s: hr.sparse.retain(s, hr.greater(s.values, 4.5)),
        lambda d: np.where(d > 4.5, d, 0),
    ),
    "reset_shape": (
        lambda s: hr.sparse.reset_shape(s, [4, 4, 3]),
        lambda d: np.pad(d, [(0, 1), (0, 0), (0, 1)]),
    ),
    "add": (lambda s: hr.sparse.add(s, s), lambda d: d + d),
    "maximum": (lambda s: hr.sparse.maximum(s, s * -1.0), np.abs),
    "minimum": (lambda s: hr.sparse.minimum(s, s * -1.0), lambda d: -np.abs(d)),
    "times": (lambda s: s * np.array([2.0, 3.0]), lambda d: d * [2.0, 3.0]),
    "times_left": (lambda s: hr.constant([2.0, 3.0], hr.float64) * s, lambda d: d * [2.0, 3.0]),
    "over": (lambda s: s / np.full((4, 1), 2.0), lambda d: d / 2.0),
}


@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "shuffled"])
@pytest.mark.parametrize("name", ARRANGED)
def test_it_is_what_numpy_does_on_the_dense_tensor(name: str, shuffled: bool) -> None:
    function, expected = ARRANGED[name]
    result = function(sparse_of(CUBE, shuffled))
    found = run(result)
    np.testing.assert_allclose(dense_of(found), expected(CUBE))
    assert result.shape.is_compatible_with(found.dense_shape)
    assert result.shape.rank == len(found.dense_shape)
    if name in ("reorder", "transpose", "concat", "add", "maximum", "minimum"):
        assert is_sorted(found.indices)


@pytest.mark.parametrize("name", ARRANGED)
def test_gradients_reach_the_values(name: str) -> None:
    function, expected = ARRANGED[name]
    sparse = sparse_of(CUBE)
    (gradient,) = hr.gradients(hr.reduce_sum(hr.square(function(sparse).values)), [sparse.values])
    total = float((expected(CUBE) ** 2).sum())
    step = 1e-6
    found, places = run([gradient, sparse.indices])
    for i in (0, len(found) - 1):
        moved = CUBE.copy()
        moved[tuple(places[i])] += step
        slope = ((expected(moved) ** 2).sum() - total) / step
        assert found[i] == pytest.approx(slope, rel=1e-4, abs=1e-4)


REDUCTIONS = {
    "sum": (hr.sparse.reduce_sum, hr.sparse.reduce_sum_sparse, np.sum),
    "max": (hr.sparse.reduce_max, hr.sparse.reduce_max_sparse, np.max),
}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 2], [1, -1, 0], []])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, axis: Any, keepdims: bool) -> None:
    to_dense, to_sparse, fold = REDUCTIONS[name]
    axes = None if axis is None else tuple(np.atleast_1d(np.array(axis, int)).tolist())
    expected = fold(CUBE, axis=axes, keepdims=keepdims)
    sparse = sparse_of(CUBE, shuffled=True)
    dense = to_dense(sparse, axis, keepdims)
    assert dense.shape.is_compatible_with(expected.shape)
    found, parts = run([dense, to_sparse(sparse, axis, keepdims)])
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(dense_of(parts), expected)


def test_reductions_of_negative_elements_do_not_see_the_zeros() -> None:
    sparse = hr.SparseTensor([[0, 1], [2, 0]], [-3.0, -4.0], [3, 2])
    np.testing.assert_array_equal(run(hr.sparse.reduce_max(sparse, 1)), [-3.0, 0.0, -4.0])


@pytest.mark.parametrize("adjoint_b", [False, True])
@pytest.mark.parametrize("adjoint_a", [False, True])
def test_products_with_dense_matrices(adjoint_a: bool, adjoint_b: bool) -> None:
    left = MATRIX.T if adjoint_a else MATRIX
    right = np.random.default_rng(0).random((left.shape[1], 4))
    b = hr.constant(right.T.copy() if adjoint_b else right)
    product = hr.sparse.matmul(sparse_of(MATRIX), b, adjoint_a, adjoint_b)
    np.testing.assert_allclose(run(product), left @ right)
    assert product.shape == (left.shape[0], 4)


def test_the_names_of_tensorflow_are_the_same_functions() -> None:
    assert hr.sparse.sparse_dense_matmul is hr.sparse_tensor_dense_matmul
    assert hr.sparse.matmul is hr.sparse_tensor_dense_matmul
    assert hr.sparse.to_dense is hr.sparse_tensor_to_dense
    assert hr.sparse.SparseTensor is hr.SparseTensor


def test_splits_along_an_axis_that_does_not_divide() -> None:
    parts = run(hr.sparse.split(sp_input=sparse_of(MATRIX), num_split=3, axis=1))
    for part, expected in zip(parts, np.split(MATRIX, [2, 4], axis=1), strict=True):
        np.testing.assert_array_equal(dense_of(part), expected)


def test_rows_without_elements_get_the_default() -> None:
    sparse = hr.SparseTensor([[3, 1], [0, 2]], [5.0, 6.0], [5, 4])
    filled, empty = hr.sparse.fill_empty_rows(sparse, -1.0)
    found, rows = run([filled, empty])
    assert found.indices.tolist() == [[0, 2], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert found.values.tolist() == [6.0, -1.0, -1.0, 5.0, -1.0]
    assert rows.tolist() == [False, True, True, False, True]


def test_softmax_leaves_out_what_is_not_there() -> None:
    found = run(hr.sparse.softmax(sparse_of(CUBE)))
    expected = np.where(CUBE != 0, np.exp(CUBE), 0.0)
    expected /= np.maximum(expected.sum(-1, keepdims=True), 1e-300)
    np.testing.assert_allclose(dense_of(found), expected)


def test_sums_with_dense_tensors_and_thresholds() -> None:
    sparse = hr.SparseTensor([[0, 1], [1, 0]], [1.0, -3.0], [2, 2])
    other = hr.SparseTensor([[0, 1], [1, 1]], [-1.0, 2.0], [2, 2])
    both, cut, dense, swapped = run(
        [
            hr.sparse.add(sparse, other),
            hr.sparse.add(sparse, other, 2.5),
            hr.sparse.add(sparse, hr.ones([2, 2])),
            hr.sparse.add(hr.ones([2, 2]), sparse),
        ]
    )
    assert both.values.tolist() == [0.0, -3.0, 2.0]
    # Only sums are cut: the 2 stands alone.
    assert cut.indices.tolist() == [[1, 0], [1, 1]]
    np.testing.assert_array_equal(dense, [[1.0, 2.0], [-2.0, 1.0]])
    np.testing.assert_array_equal(dense, swapped)


def test_ids_and_values_merge() -> None:
    ids = hr.SparseTensor([[0, 0], [1, 0], [1, 1]], np.array([2, 5, 3]), [2, 2])
    values = hr.SparseTensor([[0, 0], [1, 0], [1, 1]], [1.0, 2.0, 3.0], [2, 2])
    merged, there = run([hr.sparse.merge(ids, values, 7), hr.sparse.to_indicator(ids, 7)])
    assert merged.indices.tolist() == [[0, 2], [1, 3], [1, 5]]
    assert merged.values.tolist() == [1.0, 3.0, 2.0]
    assert np.argwhere(there).tolist() == [[0, 2], [1, 3], [1, 5]]


def test_slices_without_some_rows() -> None:
    rows = hr.IndexedSlices(hr.constant([[1.0], [2.0], [3.0]]), hr.constant([4, 6, 1]))
    kept = run(hr.sparse.mask(rows, [6]))
    assert kept.indices.tolist() == [4, 1]
    assert kept.values.tolist() == [[1.0], [3.0]]
    assert kept.dense_shape is None


def test_making_them_of_dense_tensors_and_as_diagonals() -> None:
    made, eye, text = run(
        [
            hr.sparse.from_dense(MATRIX),
            hr.sparse.eye(2, 3, hr.int32),
            hr.sparse.from_dense(["", "a"]),
        ]
    )
    np.testing.assert_array_equal(dense_of(made), MATRIX)
    np.testing.assert_array_equal(dense_of(eye), np.eye(2, 3, dtype=np.int32))
    assert text.values.tolist() == [b"a"]


def test_placeholders_are_fed_with_values_or_tuples() -> None:
    sparse = hr.sparse.placeholder(hr.float32, [2, None], name="p")
    assert sparse.shape.as_list() == [2, None]
    assert sparse.values.name == "p/values:0"
    dense = hr.sparse.to_dense(sparse)
    value = hr.SparseTensorValue([[0, 1]], [5.0], [2, 3])
    for feed in (value, tuple(value)):
        np.testing.assert_array_equal(run(dense, {sparse: feed}), [[0, 5, 0], [0, 0, 0]])
    with pytest.raises(FeedError, match="feed a SparseTensorValue"):
        run(dense, {sparse: np.zeros((2, 3))})
    fixed = hr.sparse_placeholder(hr.float32, [2, 3])
    assert fixed.shape == (2, 3)
    echoed = run({"a": fixed}, {fixed: value})["a"]
    assert isinstance(echoed, hr.SparseTensorValue)
    with hr.Session() as session:
        call = session.make_callable(dense, [sparse])
        np.testing.assert_array_equal(call(value), [[0, 5, 0], [0, 0, 0]])


def test_row_sparse_values_are_fed_as_well() -> None:
    rows = hr.IndexedSlices(hr.placeholder(hr.float32, [None, 1]), hr.placeholder(hr.int32))
    value = hr.IndexedSlicesValue([[2.0]], [3])
    for feed in (value, ([[2.0]], [3])):
        echoed = run(rows, {rows: feed})
        assert (echoed.values.tolist(), echoed.indices.tolist()) == ([[2.0]], [3])
        assert echoed.dense_shape is None
    with pytest.raises(GraphError, match="dense_shape was not given"):
        hr.convert_to_tensor(rows)


def test_branches_return_sparse_tensors() -> None:
    pred = hr.placeholder(hr.bool, [])
    sparse = sparse_of(MATRIX)
    result = hr.cond(pred, lambda: sparse, lambda: sparse * 2.0)
    np.testing.assert_array_equal(dense_of(run(result, {pred: False})), MATRIX * 2)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "indices": (lambda: hr.SparseTensor([1], [1.0], [2]), ShapeError, "indices .* 2 dimensions"),
    "counts": (lambda: hr.SparseTensor([[0]], [1.0, 2.0], [2]), ShapeError, "one value per index"),
    "rank": (lambda: hr.SparseTensor([[0, 1]], [1.0], [2]), ShapeError, "column of indices"),
    "dtype": (lambda: hr.SparseTensor(hr.constant([[0]]), [1.0], [2]), DTypeError, "int64"),
    "no_sparse": (lambda: hr.sparse.reorder(hr.ones([2])), DTypeError, "must be a SparseTensor"),
    "dense_wanted": (lambda: hr.exp(sparse_of(MATRIX)), DTypeError, "hr.sparse.to_dense"),
    "iterated": (lambda: list(sparse_of(MATRIX)), GraphError, "cannot be iterated"),
    "both_dense": (lambda: hr.sparse.add(hr.ones([2]), hr.ones([2])), DTypeError, "hr.add"),
    "shapes": (
        lambda: hr.sparse.add(sparse_of(MATRIX), sparse_of(MATRIX.T)),
        ShapeError,
        "expected one",
    ),
    "broadcast": (lambda: sparse_of(MATRIX) * hr.ones([3]), ShapeError, "must broadcast"),
    "retain": (lambda: hr.sparse.retain(sparse_of(MATRIX), [True]), ShapeError, "one entry for"),
    "softmax": (
        lambda: hr.sparse.softmax(hr.SparseTensor([[0]], [1.0], [2])),
        ShapeError,
        "two dimensions",
    ),
    "permutation": (
        lambda: hr.sparse.transpose(sparse_of(MATRIX), [1, 1]),
        AttributeValueError,
        "permutation",
    ),
    "smaller": (
        lambda: hr.sparse.reset_shape(sparse_of(MATRIX), [1, 1]),
        ShapeError,
        "must not be less",
    ),
    "split": (
        lambda: hr.sparse.split(sp_input=sparse_of(MATRIX), num_split=9, axis=0),
        ShapeError,
        "num_split must be",
    ),
    "split_by_position": (lambda: hr.sparse.split(sparse_of(MATRIX)), AttributeValueError, "name"),
    "two_axes": (
        lambda: hr.sparse.reduce_sum(sparse_of(MATRIX), 0, reduction_axes=1),
        AttributeValueError,
        "not both",
    ),
    "half": (
        lambda: hr.sparse_matmul(hr.ones([2, 2], hr.float64), hr.ones([2, 2])),
        DTypeError,
        "float32 or bfloat16",
    ),
    "outside": (
        lambda: run(hr.sparse.to_dense(hr.SparseTensor([[9]], [1.0], [2]))),
        ExecutionError,
        "index 9 is out of range",
    ),
    "unordered": (
        lambda: run(hr.sparse.to_dense(hr.SparseTensor([[1], [0]], [1.0, 2.0], [2]))),
        ExecutionError,
        "out of order",
    ),
    "huge": (
        lambda: run(hr.sparse.to_dense(hr.SparseTensor([[1]], [1.0], [2**60]))),
        ExecutionError,
        "failed",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


def test_shapes_that_differ_when_it_runs() -> None:
    a, b = hr.sparse.placeholder(hr.float32), hr.sparse.placeholder(hr.float32)
    total = hr.sparse.add(a, b)
    feeds = {a: ([[0]], [1.0], [2]), b: ([[0]], [1.0], [3])}
    with pytest.raises(ExecutionError, match="have shapes"):
        run(total, feeds)
