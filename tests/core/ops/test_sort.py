"""Sorting, searching, and sets of elements, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, HeadraceError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.random.default_rng(5).permutation(24).reshape(2, 3, 4).astype(np.float64)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_sorting_along_an_axis(axis, descending, static):
    x = hr.placeholder("float64", X.shape if static else None)
    direction = "DESCENDING" if descending else "ASCENDING"
    ordered = hr.sort(x, axis=axis, direction=direction)
    indices = hr.argsort(x, axis, direction, stable=True)
    assert indices.dtype == hr.int32
    assert not static or ordered.shape == indices.shape == [2, 3, 4]
    (slope,) = hr.gradients(hr.reduce_sum(ordered * X), [x])
    expected = np.sort(X, axis)
    expected = np.flip(expected, axis) if descending else expected
    found, places, gradient = run([ordered, indices, slope], {x: X})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.take_along_axis(X, places.astype(int), axis), expected)
    # Each element gets the factor of the place to which it went.
    np.testing.assert_array_equal(np.take_along_axis(gradient, places.astype(int), axis), X)


def test_equals_keep_their_order_and_nan_is_the_largest():
    x = [2.0, np.nan, 1.0, 2.0, np.inf, 1.0]
    up, down = run([hr.argsort(x), hr.argsort(x, direction="DESCENDING")])
    assert up.tolist() == [2, 5, 0, 3, 4, 1]
    assert down.tolist() == [1, 4, 0, 3, 2, 5]
    assert run(hr.nn.top_k(x, 3).indices).tolist() == [1, 4, 0]


def test_the_extremes_of_integers_are_sorted():
    x = np.array([-(2**31), 5, 2**31 - 1], np.int32)
    assert run(hr.sort(x, direction="DESCENDING")).tolist() == [2**31 - 1, 5, -(2**31)]


def test_the_largest_elements():
    found = hr.nn.top_k([[1, 5, 5, 2], [9, 0, 9, 9]], k=2)
    assert (found.values.shape, found.indices.dtype) == ([2, 2], hr.int32)
    values, indices = run(found)
    assert values.tolist() == [[5, 5], [9, 9]]
    assert indices.tolist() == [[1, 2], [0, 2]]
    fetched = run(hr.math.top_k([3.0, 1.0]))
    assert (fetched.values.tolist(), fetched.indices.tolist()) == ([3.0], [0])


def test_how_many_may_be_computed_in_the_step():
    x, k = hr.placeholder("float64", [2, 3, 4]), hr.placeholder("int32", [])
    values, indices = hr.nn.top_k(x, k)
    assert values.shape == [2, 3, None]
    assert run(indices, {x: X, k: 3}).shape == (2, 3, 3)
    for wrong in (5, -1):
        with pytest.raises(HeadraceError, match=r"k must be in \[0, 4\]"):
            run(values, {x: X, k: wrong})


def test_ties_at_the_border_are_all_in_the_top():
    predictions = np.float32([[0.1, 0.8, 0.8, 0.8], [0.5, 0.4, np.nan, 0.0], [1, 2, 3, 4]])
    found = [run(hr.nn.in_top_k(predictions, [3, 0, 9], k)).tolist() for k in (0, 1, 4)]
    assert found == [[False] * 3, [True, False, False], [True, False, False]]


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_rows(side):
    rows, values = np.sort(X, -1), X[:, :, :2] + 0.5
    found = run(hr.searchsorted(rows, values, side=side, out_type=hr.int64))
    expected = [
        [np.searchsorted(r, v, side) for r, v in zip(*p, strict=True)]
        for p in zip(rows, values, strict=True)
    ]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int64


def test_distinct_elements_come_in_the_order_of_their_first_places():
    y, idx, count = run(hr.unique_with_counts([3, 1, 3, 2, 1], out_idx=hr.int64))
    assert (y.tolist(), idx.tolist(), count.tolist()) == ([3, 1, 2], [0, 1, 0, 2, 1], [2, 2, 1])
    assert (idx.dtype, count.dtype) == (np.int64, np.int64)
    found = hr.unique(hr.constant(["b", "a", "b"]))
    assert (found.y.shape, found.idx.shape) == ([None], [3])
    assert run(found).y.tolist() == [b"b", b"a"]


def test_nan_and_signed_zeros_in_sets():
    y, idx = run(hr.unique([np.nan, 0.0, -0.0, np.nan]))
    np.testing.assert_array_equal(y, [np.nan, 0.0, np.nan])
    assert idx.tolist() == [0, 1, 1, 2]
    out, places = run(hr.setdiff1d([np.nan, 0.0, 1.0], [np.nan, -0.0]))
    np.testing.assert_array_equal(out, [np.nan, 1.0])
    assert places.tolist() == [0, 2]


def test_differences_keep_order_and_repetitions():
    out, idx = run(hr.setdiff1d([5, 1, 5, 2], [2, 7], index_dtype=hr.int64))
    assert (out.tolist(), idx.tolist(), idx.dtype) == ([5, 1, 5], [0, 1, 2], np.int64)
    found = run(hr.listdiff(hr.constant(["a", "b"]), hr.constant(["a"])))
    assert (found.out.tolist(), found.idx.tolist()) == ([b"b"], [1])


REFUSED = {
    "direction": (lambda: hr.sort(X, direction="UP"), AttributeValueError, "'ASCENDING' or"),
    "axis": (lambda: hr.argsort(X, axis=3), ShapeError, "axis 3 is out of range"),
    "scalar": (lambda: hr.sort(1.0), ShapeError, "a scalar has no axis"),
    "side": (lambda: hr.searchsorted([1], [1], "middle"), AttributeValueError, "'left' or"),
    "matrix": (lambda: hr.unique([[1]]), ShapeError, "must be a vector"),
    "many": (lambda: hr.nn.top_k([1, 2], 3), ShapeError, "at least k columns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_order_is_refused(name):
    build, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        build()
