"""Reductions by segment, and counting, against loops over the rows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, HeadraceError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

D = np.random.default_rng(3).uniform(0.5, 2, (5, 2))
SORTED = [0, 0, 1, 3, 3]
MIXED = [2, 0, -1, 2, 0]
FOLDS = {
    "sum": (lambda rows: rows.sum(0), 0),
    "mean": (lambda rows: rows.mean(0), 0),
    "prod": (lambda rows: rows.prod(0), 1),
    "max": (lambda rows: rows.max(0), None),
    "min": (lambda rows: rows.min(0), None),
    "sqrt_n": (lambda rows: rows.sum(0) / np.sqrt(len(rows)), 0),
}


def by_loop(fold, data, ids, count, empty):
    members = [data[[i for i, at in enumerate(ids) if at == k]] for k in range(count)]
    nothing = np.full(data.shape[1:], empty, np.float64)
    return np.stack([fold(rows) if len(rows) else nothing for rows in members])


def feeds_of(static):
    shape, length = ((5, 2), [5]) if static else (None, None)
    return hr.placeholder("float64", shape), hr.placeholder("int32", length)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("fold", ["sum", "mean", "prod", "max", "min"])
def test_sorted_ids(fold, static):
    apply, empty = FOLDS[fold]
    x, ids = feeds_of(static)
    result = getattr(hr, f"segment_{fold}")(x, ids)
    assert not static or result.shape == [None, 2]
    # Extremes of nothing are 0 here, and the limits of the dtype where ids are unsorted.
    expected = by_loop(apply, D, SORTED, 4, empty or 0 if fold != "prod" else 1)
    np.testing.assert_allclose(run(result, {x: D, ids: SORTED}), expected)
    assert getattr(hr, f"segment_{fold}")(D, SORTED).shape == [4, 2]
    nothing = run(result, {x: D[:0], ids: []}) if not static else np.zeros((0, 2))
    assert nothing.shape == (0, 2)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("fold", FOLDS)
def test_ids_in_any_order(fold, static):
    apply, empty = FOLDS[fold]
    x, ids = feeds_of(static)
    result = getattr(hr, f"unsorted_segment_{fold}")(x, ids, num_segments=4)
    assert not static or result.shape == [4, 2]
    limits = {"max": np.finfo(np.float64).min, "min": np.finfo(np.float64).max}
    expected = by_loop(apply, D, MIXED, 4, limits.get(fold, empty))
    found = run(result, {x: D, ids: MIXED})
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("count", [None, 6])
@pytest.mark.parametrize("fold", ["sum", "mean", "sqrt_n"])
def test_rows_that_are_gathered_first(fold, count):
    apply, empty = FOLDS[fold]
    result = getattr(hr, f"sparse_segment_{fold}")(D, [4, 0, 4], [0, 0, 2], num_segments=count)
    assert result.shape == [count or 3, 2]
    expected = by_loop(apply, D[[4, 0, 4]], [0, 0, 2], count or 3, empty)
    np.testing.assert_allclose(run(result), expected, rtol=1e-14)
    assert getattr(hr.sparse, f"segment_{fold}") is getattr(hr, f"sparse_segment_{fold}")


def test_means_of_integers():
    data = np.array([-1, -2, 5, 4])
    whole, exact = run(
        [hr.segment_mean(data, [0, 0, 1, 1]), hr.unsorted_segment_mean(data, [0, 0, 1, 1], 2)]
    )
    assert (whole.tolist(), whole.dtype) == ([-1, 4], np.int64)
    assert (exact.tolist(), exact.dtype) == ([-1.5, 4.5], np.float64)


@pytest.mark.parametrize("fold", ["max", "min"])
def test_equal_extremes_share_the_gradient(fold):
    x = hr.placeholder("float64", [4])
    for function in (hr.segment_max, hr.segment_min):
        (slope,) = hr.gradients(function(x, [0, 0, 0, 1]) * [6.0, 1.0], [x])
        assert run(slope, {x: [2, 2, 2, 5]}).tolist() == [2, 2, 2, 1]


def test_the_gradient_of_a_product_with_zeros():
    x = hr.placeholder("float64", [5])
    product = hr.segment_prod(x, [0, 0, 0, 1, 1])
    (slope,) = hr.gradients(product, [x])
    (curvature,) = hr.gradients(slope * [1.0, 0, 0, 0, 1.0], [x])
    found = run([product, slope, curvature], {x: [2, 0, 5, 0, 0]})
    assert [part.tolist() for part in found] == [
        [0, 0],
        [0, 10, 0, 0, 0],
        [0, 5, 0, 1, 0],
    ]


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize(
    ("ids", "match"),
    [
        ([0, 2, 1, 3, 3], "ascending order"),
        ([-1, 0, 1, 3, 3], "must be >= 0"),
        ([0, 1], "leading axes"),
    ],
    ids=["descending", "negative", "short"],
)
def test_ids_that_are_not_sorted_are_refused(name, ids, match):
    function = getattr(hr, f"segment_{name}")
    with pytest.raises(HeadraceError, match=match):
        function(D, ids)
    x, fed = feeds_of(static=False)
    with pytest.raises(HeadraceError, match=match):
        run(function(x, fed), {x: D, fed: ids})


REFUSED = {
    "integers": (
        lambda: hr.unsorted_segment_sqrt_n([1, 2], [0, 1], 2),
        DTypeError,
        "floating or complex, got int32",
    ),
    "sparse_integers": (
        lambda: hr.sparse_segment_mean([1, 2], [0, 1], [0, 1]),
        DTypeError,
        "floating or complex, got int32",
    ),
    "few": (
        lambda: hr.sparse_segment_sum(D, [0, 1], [0, 2], num_segments=2),
        AttributeValueError,
        "num_segments is 2",
    ),
    "indices": (
        lambda: hr.sparse_segment_sum(D, [[0, 1]], [0, 2]),
        ShapeError,
        "indices must be a vector",
    ),
    "matrix": (lambda: hr.segment_sum(D, [[0, 1]]), ShapeError, "must be a vector"),
    "weights": (lambda: hr.bincount([1, 2], [1.0]), ShapeError, "must begin with the shape of arr"),
    "halves": (lambda: hr.bincount([0.5, 1.0]), DTypeError, "expected int32"),
    "halves in an array": (
        lambda: hr.bincount(np.float32([0.5, 1.0])),
        DTypeError,
        "an array float32.2. is float32, expected int32",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_segments_is_refused(name):
    build, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        build()


def test_rows_out_of_range_are_refused():
    for rows in ([0, 5], [0, -1]):
        with pytest.raises(HeadraceError, match="out of range"):
            run(hr.sparse_segment_sum(D, rows, [0, 1]))


# -- counts


def test_equal_bounds_fix_how_many_weighted_counts_there_are():
    arr, weights = hr.placeholder("int64", [None]), hr.placeholder("float64", [None, 2])
    fixed = hr.bincount(arr, weights, minlength=4, maxlength=4)
    assert fixed.shape.as_list() == [4, 2]
    assert hr.bincount(arr, weights, minlength=3, maxlength=4).shape.as_list() == [None, 2]
    with hr.Session() as session:
        feeds = {arr: [3, 9, 3], weights: [[1, 2], [3, 4], [5, 6]]}
        want = [[0, 0], [0, 0], [0, 0], [6, 8]]
        assert session.run(fixed, feeds).tolist() == want
        with pytest.raises(HeadraceError, match="negative"):
            session.run(fixed, {**feeds, arr: [3, -1, 3]})


COUNTS = {
    "plain": (lambda: hr.bincount([1, 1, 2, 5]), np.int32([0, 2, 1, 0, 0, 1])),
    "whole_floats": (lambda: hr.bincount(np.float64([1, 1, 2])), np.int32([0, 2, 1])),
    "weights": (lambda: hr.bincount([1, 1, 3], [1.0, 0.5, 2.0]), np.float32([0, 1.5, 0, 2])),
    "minlength": (lambda: hr.bincount([1], minlength=4), np.int32([0, 1, 0, 0])),
    "maxlength": (lambda: hr.bincount([1, 5, 2, 1], maxlength=3), np.int32([0, 2, 1])),
    "weights_cut": (
        lambda: hr.bincount([1, 5], [1.0, 2.0], maxlength=2),
        np.float32([0, 1]),
    ),
    "weights_fixed": (
        lambda: hr.bincount([[1, 5], [0, 1]], [[1.0, 2.0], [4.0, 0.5]], 3, 3),
        np.float32([4, 1.5, 0]),
    ),
    "both": (lambda: hr.math.bincount([1], None, 3, 9, hr.int64), np.int64([0, 1, 0])),
    "matrix": (lambda: hr.bincount([[1, 2], [3, 1]], dtype=hr.float64), np.float64([0, 2, 1, 1])),
    "empty": (lambda: hr.bincount(np.zeros((0,), np.int32)), np.zeros((0,), np.int32)),
    "none_kept": (lambda: hr.bincount([1, 2], maxlength=0), np.zeros((0,), np.int32)),
    "histogram": (
        lambda: hr.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5),
        np.int32([2, 1, 1, 0, 2]),
    ),
    "histogram_integers": (
        lambda: hr.histogram_fixed_width([1, 2, 9], [0, 8], nbins=4, dtype=hr.int64),
        np.int64([1, 1, 0, 1]),
    ),
    "bins": (
        lambda: hr.histogram_fixed_width_bins([[-1.0, 0.0], [1.5, 15.0]], [0.0, 5.0], 5),
        np.int32([[0, 0], [1, 4]]),
    ),
    "confusion": (
        lambda: hr.confusion_matrix([1, 2, 2], [2, 2, 0]),
        np.int32([[0, 0, 0], [0, 0, 1], [1, 0, 1]]),
    ),
    "confusion_weights": (
        lambda: hr.math.confusion_matrix([0, 1], [1, 1], 2, hr.float32, weights=[0.5, 2.0]),
        np.float32([[0, 0.5], [0, 2]]),
    ),
    "confusion_columns": (
        lambda: hr.confusion_matrix([[1], [0]], [1, 1], num_classes=2),
        np.int32([[0, 1], [0, 1]]),
    ),
    "confusion_empty": (
        lambda: hr.confusion_matrix(np.zeros((0,), int), np.zeros((0,), int), 2),
        np.zeros((2, 2), np.int32),
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    build, expected = COUNTS[name]
    result = build()
    assert result.shape.is_compatible_with(expected.shape)
    found = run(result)
    np.testing.assert_array_equal(found, expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)


def test_counts_of_what_a_step_computes():
    labels, predictions = (hr.placeholder("int32", None) for _ in range(2))
    matrix = hr.confusion_matrix(labels, predictions)
    found = run([hr.bincount(labels), matrix], {labels: [3, 1, 1], predictions: [0, 1, 1]})
    assert found[0].tolist() == [0, 2, 0, 1]
    assert found[1].tolist() == [[0] * 4, [0, 2, 0, 0], [0] * 4, [1, 0, 0, 0]]
    columns = run(matrix, {labels: [[1], [0]], predictions: [1, 0]})
    assert columns.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(HeadraceError, match="Reshape"):
        run(matrix, {labels: [[1, 0], [0, 1]], predictions: [1, 0]})


@pytest.mark.parametrize(
    ("labels", "predictions"), [([3], [0]), ([0], [3]), ([-1], [0]), ([0], [-1])]
)
def test_classes_out_of_range_are_refused(labels, predictions):
    with pytest.raises(HeadraceError, match=r"out of range \[0, 3\)"):
        run(hr.confusion_matrix(labels, predictions, 3))


def test_negative_numbers_are_not_counted():
    with pytest.raises(HeadraceError, match="must not be negative, got -2"):
        run(hr.bincount([1, -2]))


def test_weights_get_gradients():
    weights = hr.placeholder("float32", [3])
    (slope,) = hr.gradients(hr.bincount([1, 1, 2], weights) * [5.0, 6.0, 7.0], [weights])
    assert run(slope, {weights: [1, 1, 1]}).tolist() == [6, 6, 7]
