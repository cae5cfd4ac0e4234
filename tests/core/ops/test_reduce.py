"""Reductions: all forms of axes, old names of arguments, and axes that only a step knows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, HeadraceError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

X = np.random.default_rng(7).uniform(-2, 2, (2, 3, 4))
FOLDS = {
    "sum": (hr.reduce_sum, np.sum),
    "mean": (hr.reduce_mean, np.mean),
    "prod": (hr.reduce_prod, np.prod),
    "max": (hr.reduce_max, np.max),
    "min": (hr.reduce_min, np.min),
}
AXES = {
    "none": (None, None),
    "int": (1, 1),
    "negative": (-1, -1),
    "list": ([0, 2], (0, 2)),
    "empty": ([], ()),
    "numpy": (np.int64(2), 2),
    "array": (np.array([1, 2]), (1, 2)),
}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("fold", FOLDS)
def test_axes_take_all_forms(fold, axis, keepdims):
    ours, theirs = FOLDS[fold]
    given, numpy_axis = AXES[axis]
    result = ours(X, axis=given, keepdims=keepdims)
    expected = theirs(X, axis=numpy_axis, keepdims=keepdims)
    assert result.shape == list(np.shape(expected))
    np.testing.assert_allclose(run(result), expected, rtol=1e-12)


@pytest.mark.parametrize("fold", FOLDS)
def test_a_constant_tensor_is_an_axis_like_a_number(fold):
    ours, theirs = FOLDS[fold]
    result = ours(X, hr.constant([0, -1]))
    assert result.shape == [3]
    np.testing.assert_allclose(run(result), theirs(X, axis=(0, 2)), rtol=1e-12)
    behind = ours(X, hr.range(1, hr.rank(hr.constant(X))))
    assert behind.shape == [2]
    np.testing.assert_allclose(run(behind), theirs(X, axis=(1, 2)), rtol=1e-12)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("fold", FOLDS)
def test_axes_may_be_computed_in_the_step(fold, keepdims, static):
    ours, theirs = FOLDS[fold]
    x = hr.placeholder("float64", X.shape if static else None)
    axis = hr.placeholder("int32", [None])
    result = ours(x, axis, keepdims)
    (slope,) = hr.gradients(hr.reduce_sum(result * result), [x])
    for axes in ((0,), (-1,), (2, 0), (), (0, 1, 2)):
        found, gradient = run([result, slope], {x: X, axis: axes})
        expected = theirs(X, axis=axes, keepdims=keepdims)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        fixed = ours(x, axes)
        (wanted,) = hr.gradients(hr.reduce_sum(fixed * fixed), [x])
        np.testing.assert_allclose(gradient, run(wanted, {x: X}), rtol=1e-10)


def test_a_scalar_tensor_is_one_axis():
    x = hr.placeholder("float64", [2, 3, 4])
    axis = hr.placeholder("int64", [])
    result = hr.reduce_max(x, axis)
    assert result.shape.rank == 2
    np.testing.assert_array_equal(run(result, {x: X, axis: 1}), X.max(1))
    everything = hr.reduce_all(x > 0, axis, keepdims=True)
    np.testing.assert_array_equal(run(everything, {x: X, axis: -1}), (X > 0).all(-1, keepdims=True))


@pytest.mark.parametrize("axes", [[3], [-4]])
def test_axes_computed_in_the_step_are_checked(axes):
    x, axis = hr.placeholder("float64", [2, 3, 4]), hr.placeholder("int32", [None])
    with pytest.raises(HeadraceError, match=r"axis .* out of range"):
        run(hr.reduce_sum(x, axis), {x: X, axis: axes})


@pytest.mark.parametrize("size", [None, 2])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [[0, 0], [0, -3], [1, 2]])
def test_axes_computed_in_the_step_may_be_one_axis(size, keepdims, axes):
    x, axis = hr.placeholder("float64", [2, 3, 4]), hr.placeholder("int32", [size])
    found = run(hr.reduce_sum(x, axis, keepdims), {x: X, axis: axes})
    expected = X.sum(tuple({a % 3 for a in axes}), keepdims=keepdims)
    np.testing.assert_allclose(found, expected)


def test_old_names_of_arguments_are_taken():
    found = run(
        [
            hr.reduce_sum(X, reduction_indices=[1], keep_dims=True),
            hr.reduce_any(X > 1, reduction_indices=0),
            hr.argmax(X, dimension=1),
            hr.arg_min(X, -1, hr.int32),
            hr.reduce_logsumexp(X, reduction_indices=0, keep_dims=True),
        ]
    )
    np.testing.assert_allclose(found[0], X.sum(1, keepdims=True))
    np.testing.assert_array_equal(found[1], (X > 1).any(0))
    np.testing.assert_array_equal(found[2], X.argmax(1))
    np.testing.assert_array_equal(found[3], X.argmin(-1))
    np.testing.assert_allclose(found[4], np.log(np.exp(X).sum(0, keepdims=True)))


BOTH_NAMES = {
    "axis": lambda: hr.reduce_sum(X, 0, reduction_indices=0),
    "keepdims": lambda: hr.reduce_max(X, 0, True, keep_dims=True),
    "dimension": lambda: hr.argmin(X, 0, dimension=0),
    "moments": lambda: hr.nn.moments(X, [0], keepdims=True, keep_dims=True),
}


@pytest.mark.parametrize("name", BOTH_NAMES)
def test_an_argument_is_not_given_under_both_names(name):
    with pytest.raises(AttributeValueError, match="two names of one argument"):
        BOTH_NAMES[name]()


REFUSED = {
    "axis": (lambda: hr.reduce_sum(X, 3), ShapeError, "axis 3 is out of range"),
    "scalar": (lambda: hr.reduce_sum(1.0, 0), ShapeError, "axis 0 is out of range"),
    "fraction": (lambda: hr.reduce_sum(X, 1.5), DTypeError, "axis must hold integers"),
    "bool": (lambda: hr.reduce_sum(X > 0), DTypeError, "got bool"),
    "number": (lambda: hr.reduce_all(hr.constant(X)), DTypeError, "must be bool"),
    "two_axes": (lambda: hr.argmax(X, [0, 1]), ShapeError, "axis must be one integer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_reduction_is_refused(name):
    build, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize("axis", [0, -1])
def test_a_scalar_of_unknown_shape_has_no_axis(axis):
    x = hr.placeholder("float32", None)
    for fold in (hr.reduce_sum, hr.reduce_max, hr.reduce_prod, hr.reduce_mean):
        with pytest.raises(HeadraceError, match="out of range"):
            run(fold(x, axis), {x: np.float32(1)})


@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [
        ([np.nan, 1.0, 2.0], 2, 1),
        ([1.0, np.nan, 0.0], 0, 2),
        ([np.nan, np.nan], 0, 0),
        ([-np.inf, np.nan, np.inf], 2, 0),
        ([3.0, 1.0, 3.0, 1.0], 0, 1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_index_is_never_that_of_nan(values, largest, smallest, dtype):
    x = np.array(values, dtype)
    assert run([hr.argmax(x), hr.argmin(x)]) == [largest, smallest]


def test_an_index_along_an_axis_of_the_step():
    x, axis = hr.placeholder("float64", None), hr.placeholder("int32", [])
    found = hr.argmax(x, axis, output_type=hr.int32)
    assert found.dtype == hr.int32
    for at in (0, 1, -1):
        np.testing.assert_array_equal(run(found, {x: X, axis: at}), X.argmax(at))


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("axis", [0, -2])
def test_cumulative_ops_along_an_axis_of_the_step(op, axis):
    x, at = hr.placeholder("float64", [2, 3, 4]), hr.placeholder("int32", [])
    result = getattr(hr, op)(x, at, reverse=True)
    assert result.shape == [2, 3, 4]
    fixed = getattr(hr, op)(x, axis, reverse=True)
    slopes = [hr.gradients(hr.reduce_sum(y * y), [x])[0] for y in (result, fixed)]
    found, expected, slope, wanted = run([result, fixed, *slopes], {x: X, at: axis})
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(slope, wanted)
    np.testing.assert_allclose(found, np.flip(getattr(np, op)(np.flip(X, axis), axis), axis))


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_cumulative_log_sum_exp(exclusive, reverse, static):
    x, at = hr.placeholder("float64", [2, 3, 4] if static else None), hr.placeholder("int32", [])
    fixed = hr.math.cumulative_logsumexp(x, 1, exclusive, reverse)
    moving = hr.cumulative_logsumexp(x, at, exclusive=exclusive, reverse=reverse)
    sums = hr.cumsum(hr.exp(x), 1, exclusive, reverse)
    (slope,), (wanted,) = (hr.gradients(y * X, [x]) for y in (fixed, hr.log(sums + 1e-300)))
    values = run([fixed, moving, sums, slope, wanted], {x: X, at: -2})
    with np.errstate(divide="ignore"):
        expected = np.maximum(np.log(values[2]), np.finfo(np.float64).min)
    np.testing.assert_allclose(values[0], expected)
    np.testing.assert_array_equal(values[1], values[0])
    np.testing.assert_allclose(values[3], values[4], atol=1e-12)
