"""Checks of gradients: TensorFlow's Jacobians, and the check that explains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


@pytest.fixture(autouse=True)
def session() -> Any:
    with hr.Graph().as_default() as graph, hr.Session(graph=graph) as made:
        yield made


VALUE = np.arange(6.0).reshape(2, 3) / 4

# From TensorFlow 1.15.5: tf.test.compute_gradient of the same expressions at the same places.
SINE = [
    [0.75, 0.247404, 0.479426, 0.0, 0.0, 0.0],
    [0.0, 0.974088, 0.479426, 0.0, 0.0, 0.0],
    [0.0, 0.247404, 1.137612, 0.0, 0.0, 0.0],
    [0.0, 0.0, 0.0, 2.876705, 0.841471, 0.948985],
    [0.0, 0.0, 0.0, 0.681639, 2.462378, 0.948985],
    [0.0, 0.0, 0.0, 0.681639, 0.841471, 1.894952],
]
SINE_ERROR = 7.066638856301211e-07
SQUARE = [
    [2.0, 4.0, 0.0, 0.0],
    [-4.0, 2.0, 0.0, 0.0],
    [0.0, 0.0, 6.0, -2.0],
    [0.0, 0.0, 2.0, 6.0],
]
REAL_PART = [[2.0, 0.0], [-4.0, 0.0], [0.0, 6.0], [0.0, 2.0]]


def sine(x: Any) -> Any:
    return hr.sin(x) * hr.reduce_sum(x, 1, keepdims=True)


def test_jacobians_are_tensorflows() -> None:
    x = hr.placeholder(hr.float64, [2, 3])
    y = sine(x)
    exact, estimated = hr.test.compute_gradient(x, [2, 3], y, [2, 3], VALUE)
    assert exact.dtype == estimated.dtype == np.float64
    np.testing.assert_allclose(exact, SINE, atol=1e-6)
    np.testing.assert_allclose(estimated, exact, atol=1e-6)
    error = hr.test.compute_gradient_error(x, [2, 3], y, [2, 3], VALUE)
    assert error == pytest.approx(SINE_ERROR, rel=1e-4)
    assert hr.test.compute_gradient_error(x, (2, 3), y, (2, 3)) < 1e-5


@pytest.mark.parametrize(
    ("function", "columns", "expected"),
    [(lambda z: z * z, 4, SQUARE), (lambda z: hr.real(z * z), 2, REAL_PART)],
    ids=["complex", "real"],
)
def test_complex_numbers_count_as_their_parts(function: Any, columns: int, expected: Any) -> None:
    x = hr.placeholder(hr.complex128, [2])
    start = np.array([1 + 2j, 3 - 1j])
    exact, estimated = hr.test.compute_gradient(x, [2], function(x), [2], start)
    assert exact.shape == estimated.shape == (4, columns)
    np.testing.assert_allclose(exact, expected)
    np.testing.assert_allclose(estimated, expected, atol=1e-6)


def test_a_scalar_may_be_said_to_be_of_shape_one() -> None:
    x = hr.placeholder(hr.float64, [2, 3])
    exact, estimated = hr.test.compute_gradient(x, [2, 3], hr.reduce_sum(x * x), [1], VALUE)
    np.testing.assert_allclose(exact, 2 * np.reshape(VALUE, [6, 1]))
    np.testing.assert_allclose(estimated, exact, atol=1e-6)


def test_rows_of_a_sparse_gradient_are_added_up() -> None:
    x = hr.placeholder(hr.float64, [2, 3])
    exact, estimated = hr.test.compute_gradient(x, [2, 3], hr.gather(x, [1, 1]), [2, 3], VALUE)
    np.testing.assert_allclose(exact[3:], np.tile(np.eye(3), 2))
    np.testing.assert_allclose(estimated, exact, atol=1e-9)


def test_several_inputs_with_other_feeds_and_variables() -> None:
    a, b = hr.placeholder(hr.float64, [2]), hr.placeholder(hr.float64, [])
    scale = hr.placeholder(hr.float64, [])
    offset = hr.Variable(hr.constant(2.0, hr.float64))
    y = a * b * scale + offset
    found = hr.test.compute_gradient(
        [a, b],
        [[2], []],
        y,
        [2],
        [np.ones(2), np.float64(3)],
        init_targets=[offset.initializer],
        extra_feed_dict={scale: 5.0, b: 3.0, a: np.ones(2)},
    )
    assert isinstance(found, list)
    np.testing.assert_allclose(found[0][0], 15 * np.eye(2))
    np.testing.assert_allclose(found[1][0], [[5.0, 5.0]])
    assert all(np.abs(exact - estimated).max() < 1e-9 for exact, estimated in found)


def test_what_has_no_jacobian_is_refused() -> None:
    x, other = hr.placeholder(hr.float64, [2]), hr.placeholder(hr.int32, [2])
    with pytest.raises(hr.errors.GraphError, match="does not depend on"):
        hr.test.compute_gradient(x, [2], hr.constant([1.0]), [1])
    with pytest.raises(hr.errors.DTypeError, match="floating and complex tensors, got int32"):
        hr.test.compute_gradient(other, [2], x, [2])
    with pytest.raises(hr.errors.ShapeError, match=r"has shape \[3\], x_shape is \[2\]"):
        hr.test.compute_gradient(x, [2], x * 2, [2], np.ones(3))


def test_jacobians_need_a_default_session() -> None:
    from headrace.graph.default_session import use_session

    x = hr.placeholder(hr.float64, [2])
    with use_session(None), pytest.raises(hr.errors.GraphError, match="with session"):
        hr.test.compute_gradient(x, [2], x * 2, [2])


# -- the check that explains


def test_right_gradients_pass_with_both_slopes() -> None:
    report = hr.test.check_gradient(
        lambda x, w: hr.tanh(hr.matmul(x, w)), [np.ones([4, 3]), np.full([3, 2], 0.1)]
    )
    assert report.exact == pytest.approx(report.estimated, rel=1e-8)
    assert report.error < 1e-9
    assert [g.shape for g in report.gradients] == [d.shape for d in report.direction]
    assert sum((d**2).sum() for d in report.direction) == pytest.approx(1.0)


@pytest.mark.parametrize(("dtype", "eps"), [("float32", 1e-2), ("float16", 0.1)])
def test_other_dtypes_have_tolerances_of_their_own(dtype: str, eps: float) -> None:
    report = hr.test.check_gradient(hr.sin, [np.linspace(0, 1, 5)], dtype=dtype, eps=eps)
    assert report.gradients[0].dtype.name == dtype


def test_a_layer_passes() -> None:
    hr.test.check_gradient(
        lambda x: hr.layers.dense(hr.layers.flatten(x), 3, hr.nn.sigmoid), [np.ones([2, 3, 2])]
    )


@hr.custom_gradient
def wrong_in_one_place(x: Any) -> Any:
    def gradient(dy: Any) -> Any:
        return dy * (2 * x + hr.constant([0.0, 0.0, 1.0], x.dtype))

    return x * x, gradient


def test_a_wrong_gradient_is_told_by_input_and_element() -> None:
    with pytest.raises(hr.test.GradientCheckError) as caught:
        hr.test.check_gradient(lambda a, b: a + wrong_in_one_place(b), [np.ones(3), np.ones(3)])
    text = str(caught.value)
    assert "the gradient is wrong: along a random direction the slope is" in text
    assert "eps 6.1e-06" in text
    assert "input 0, shape [3]: right in the first 3 elements" in text
    assert "input 1, shape [3]: 1 of 3 derivatives are wrong: at [2]" in text
    assert len(text.splitlines()) <= 12
    assert isinstance(caught.value, AssertionError)


def test_an_input_without_a_path_is_told() -> None:
    with pytest.raises(hr.test.GradientCheckError, match="input 1: the function does not depend"):
        hr.test.check_gradient(lambda a, b: a * hr.stop_gradient(b), [np.ones(3), np.ones(3)])


def test_a_kink_is_told() -> None:
    with pytest.raises(hr.test.GradientCheckError, match="kink or jump"):
        hr.test.check_gradient(hr.nn.relu, [np.zeros(4)])


def test_what_is_not_finite_is_told() -> None:
    with pytest.raises(hr.test.GradientCheckError, match="not finite"):
        hr.test.check_gradient(hr.log, [np.zeros(3)])


def test_integers_are_refused() -> None:
    with pytest.raises(hr.errors.DTypeError, match="floating inputs, got int32"):
        hr.test.check_gradient(hr.square, [[1]], dtype=hr.int32)
    with pytest.raises(hr.errors.DTypeError, match="the function returned int32"):
        hr.test.check_gradient(lambda x: hr.cast(x, hr.int32), [[1.0]])


@pytest.mark.parametrize("dtype", [hr.float64, hr.complex128])
def test_random_places_are_those_of_numpys_seed(dtype: hr.DType) -> None:
    x = hr.placeholder(dtype, [3])
    y = x * x
    found = []
    with hr.Session():
        for seed in (1, 1, 2):
            np.random.seed(seed)  # noqa: NPY002 - the generator that old tests seed
            found.append(hr.test.compute_gradient(x, [3], y, [3])[0])
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
