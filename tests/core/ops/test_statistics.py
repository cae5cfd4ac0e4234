"""Statistics that are built of reductions, against NumPy and SciPy's definitions."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(11)
X = RNG.uniform(-2, 2, (2, 3, 4))
C = RNG.uniform(-2, 2, (3, 4)) + 1j * RNG.uniform(-2, 2, (3, 4))
W = RNG.uniform(0.1, 2, (2, 3, 1))
INF, NAN = np.inf, np.nan


def logsumexp(x, axis=None, keepdims=False):
    return np.log(np.exp(x).sum(axis, keepdims=keepdims))


RESULTS = {
    "logsumexp": (lambda: hr.reduce_logsumexp(X), logsumexp(X)),
    "logsumexp-axis": (lambda: hr.reduce_logsumexp(X, [0, 2], True), logsumexp(X, (0, 2), True)),
    "logsumexp-large": (lambda: hr.reduce_logsumexp([1000.0, 1000.0]), 1000 + float(np.log(2))),
    "logsumexp-infinite": (
        lambda: hr.reduce_logsumexp([[INF, 1.0], [-INF, 1.0], [-INF, -INF], [NAN, 1.0]], 1),
        [INF, 1.0, -INF, NAN],
    ),
    "logsumexp-empty": (lambda: hr.reduce_logsumexp(np.zeros((2, 0)), 1), [-INF, -INF]),
    "euclidean": (lambda: hr.reduce_euclidean_norm(X, 1), np.sqrt((X**2).sum(1))),
    "euclidean-complex": (lambda: hr.reduce_euclidean_norm(C), np.linalg.norm(C) + 0j),
    "euclidean-integers": (lambda: hr.reduce_euclidean_norm([5, -3, 2, -7, -2]), 9),
    "euclidean-half": (lambda: hr.reduce_euclidean_norm(np.float16([300, 400])), 500),
    "variance": (lambda: hr.reduce_variance(X, [0, 1], True), X.var((0, 1), keepdims=True)),
    "variance-complex": (lambda: hr.reduce_variance(C, 0), C.var(0)),
    "std": (lambda: hr.reduce_std(X, -1), X.std(-1)),
    "std-empty": (lambda: hr.reduce_std(np.zeros((0,))), NAN),
    "count": (lambda: hr.count_nonzero([[0, 1, -2], [0, 0, 3]], axis=1), [2, 1]),
    "count-keepdims": (
        lambda: hr.count_nonzero([[0, 1], [0, 0]], 0, True, hr.int32),
        np.int32([[0, 1]]),
    ),
    "count-bool": (lambda: hr.count_nonzero(input=[True, False, True]), 2),
    "count-strings": (lambda: hr.count_nonzero(hr.constant(["", "a", "b"])), 2),
    "count-nan": (lambda: hr.count_nonzero([NAN, 0.0, -0.0, 1.0]), 2),
    "zero_fraction": (lambda: hr.nn.zero_fraction([0.0, 1.0, 0.0, -0.0]), np.float32(0.75)),
    "zero_fraction-integers": (lambda: hr.nn.zero_fraction([[0, 1], [2, 3]]), np.float32(0.25)),
    "zero_fraction-empty": (lambda: hr.nn.zero_fraction(np.zeros((0,))), np.float32(NAN)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result(name):
    build, expected = RESULTS[name]
    found = run(build())
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.shape(found) == np.shape(expected)
    if isinstance(expected, np.ndarray | np.generic):
        assert found.dtype == expected.dtype


VECTOR_NORMS = ["euclidean", 1, 2, INF, 3, 2.5, 0.5]
MATRIX_NORMS = {"euclidean": "fro", "fro": "fro", 1: 1, 2: 2, INF: INF}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 1, -1])
@pytest.mark.parametrize("order", VECTOR_NORMS)
def test_norms_of_vectors(order, axis, keepdims):
    p = 2 if order == "euclidean" else order
    sizes = np.abs(X)
    if p == INF:
        expected = sizes.max(axis, keepdims=keepdims)
    else:
        expected = (sizes**p).sum(axis, keepdims=keepdims) ** (1 / p)
    result = hr.norm(X, order, axis, keepdims)
    assert result.shape == list(np.shape(expected))
    np.testing.assert_allclose(run(result), expected)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [(0, 2), [-2, -1], (2, 1)])
@pytest.mark.parametrize("order", MATRIX_NORMS)
def test_norms_of_matrices(order, axis, keepdims):
    expected = np.linalg.norm(X, MATRIX_NORMS[order], tuple(axis), keepdims)
    result = hr.linalg.norm(X, ord=order, axis=axis, keep_dims=keepdims)
    np.testing.assert_allclose(run(result), expected)


def test_norms_of_complex_vectors():
    euclidean, first = run([hr.norm(C), hr.norm(C, 1, 0)])
    np.testing.assert_allclose(euclidean, np.linalg.norm(C) + 0j)
    np.testing.assert_allclose(first, np.abs(C).sum(0))
    assert (euclidean.dtype, first.dtype) == (np.complex128, np.float64)


REFUSED = {
    "fro": (lambda: hr.norm(X, "fro"), AttributeValueError, "ord of vectors"),
    "array": (lambda: hr.norm(X, X), AttributeValueError, "ord must be a number"),
    "zero": (lambda: hr.norm(X, 0), AttributeValueError, "ord of vectors"),
    "negative": (lambda: hr.norm(X, -1, 0), AttributeValueError, "ord of vectors"),
    "nuc": (lambda: hr.norm(X, "nuc", (0, 1)), AttributeValueError, "ord of matrices"),
    "three": (lambda: hr.norm(X, 3, (0, 1)), AttributeValueError, "ord of matrices"),
    "one_axis": (
        lambda: hr.norm(X, axis=[0]),
        AttributeValueError,
        "one integer, or two different",
    ),
    "same_axes": (
        lambda: hr.norm(X, axis=[1, 1]),
        AttributeValueError,
        "one integer, or two different",
    ),
    "axis": (lambda: hr.norm(X, axis=5), ShapeError, "axis 5 is out of range"),
    "norm_integers": (lambda: hr.norm([1, 2]), DTypeError, "floating or complex"),
    "std_bool": (lambda: hr.reduce_std([True]), DTypeError, "must be numeric, got bool"),
    "logsumexp_integers": (lambda: hr.reduce_logsumexp([1, 2]), DTypeError, "floating"),
    "nothing": (lambda: hr.count_nonzero(), AttributeValueError, "needs input_tensor"),
    "both": (lambda: hr.count_nonzero([1], input=[1]), AttributeValueError, "two names"),
    "moments": (lambda: hr.nn.moments(X, [3]), ShapeError, "axis 3 is out of range"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_statistics_is_refused(name):
    build, error, match = REFUSED[name]
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [[0, 1], [2], 1, []])
def test_moments(axes, keepdims):
    at = tuple(axes) if isinstance(axes, list) else axes
    mean, variance = hr.nn.moments(X, axes, keep_dims=keepdims)
    expected = X.mean(at, keepdims=keepdims), X.var(at, keepdims=keepdims)
    assert mean.shape == list(expected[0].shape)
    for found, wanted in zip(run([mean, variance]), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-15)


def test_moments_along_axes_of_the_step():
    x, axes = hr.placeholder("float64", None), hr.placeholder("int32", [None])
    found = run(list(hr.nn.moments(x, axes)), {x: X, axes: [0, -1]})
    np.testing.assert_allclose(found[0], X.mean((0, 2)))
    np.testing.assert_allclose(found[1], X.var((0, 2)))


def test_moments_of_narrow_floats_are_computed_in_float32():
    x = np.float16([[300.0], [-300.0]])
    mean, variance = run(list(hr.nn.moments(x, [0])))
    assert (mean.dtype, variance.dtype) == (np.float16, np.float16)
    assert (mean.tolist(), variance.tolist()) == ([0.0], [INF])
    assert run(hr.nn.moments(x / 10, [0])[1]).tolist() == [900.0]


@pytest.mark.parametrize("keepdims", [False, True])
def test_weighted_moments(keepdims):
    weights = np.broadcast_to(W, X.shape)
    mean, variance = run(list(hr.nn.weighted_moments(X, [0, 1], W, keepdims=keepdims)))
    expected = np.average(X, (0, 1), weights, keepdims=True)
    spread = np.average((X - expected) ** 2, (0, 1), weights, keepdims=keepdims)
    np.testing.assert_allclose(mean, expected if keepdims else expected[0, 0])
    np.testing.assert_allclose(variance, spread)


@pytest.mark.parametrize("shift", [None, 0.5])
@pytest.mark.parametrize("static", [True, False])
def test_moments_of_sufficient_statistics(shift, static):
    x = hr.placeholder("float64", X.shape if static else None)
    count, total, squares, moved = hr.nn.sufficient_statistics(x, [0, -1], shift)
    assert (moved is None) == (shift is None)
    mean, variance = hr.nn.normalize_moments(count, total, squares, moved)
    found = run([count, mean, variance], {x: X})
    assert found[0] == 8
    np.testing.assert_allclose(found[1], X.mean((0, 2)))
    np.testing.assert_allclose(found[2], X.var((0, 2)))


def numeric_slope(build, value, step=1e-6):
    x = hr.placeholder("float64", value.shape)
    y = hr.reduce_sum(build(x))
    (slope,) = hr.gradients(y, [x])
    with hr.Session() as session:
        analytic = session.run(slope, {x: value})
        numeric = np.zeros_like(value)
        for at in np.ndindex(*value.shape):
            moved = value.copy()
            moved[at] += step
            above = session.run(y, {x: moved})
            moved[at] -= 2 * step
            numeric[at] = (above - session.run(y, {x: moved})) / (2 * step)
    return analytic, numeric


SLOPES = {
    "logsumexp": lambda x: hr.reduce_logsumexp(x, 1),
    "euclidean": lambda x: hr.reduce_euclidean_norm(x, [0, 2]),
    "variance": lambda x: hr.reduce_variance(x, 2) * [[1.0, 2.0, 3.0]],
    "std": lambda x: hr.reduce_std(x, 0),
    "norm_3": lambda x: hr.norm(x, 3, 1),
    "norm_2": lambda x: hr.norm(x, 2, (0, 2)),
    "norm_1": lambda x: hr.norm(x, 1, (0, 1)),
    "moments": lambda x: hr.nn.moments(x, [0, 1])[1] * [1.0, -1.0, 2.0, 0.5],
    "weighted_moments": lambda x: hr.nn.weighted_moments(x, [0], W)[1],
    # The slope of the variance has the mean in it.
    "second": lambda x: hr.gradients(hr.nn.moments(x, [1])[1] ** 2, [x])[0] ** 2,
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name):
    analytic, numeric = numeric_slope(SLOPES[name], X)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-5, atol=1e-6)


def test_slopes_of_logsumexp_with_infinities():
    x = hr.placeholder("float64", [3])
    (slope,) = hr.gradients(hr.reduce_logsumexp(x), [x])
    np.testing.assert_allclose(run(slope, {x: [-INF, 0.0, 0.0]}), [0.0, 0.5, 0.5])
