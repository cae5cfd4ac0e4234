"""What gradients are where finite differences cannot tell: ties, corners, complex, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from tests.steps import run

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def test_ties_share_the_gradient_of_a_maximum() -> None:
    x = hr.constant([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    (grad,) = hr.gradients(hr.reduce_max(x, 1), x)
    np.testing.assert_allclose(run(grad), [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)


def test_maximum_of_equals_goes_to_the_first() -> None:
    x, y = hr.constant([1.0, 2.0]), hr.constant([1.0, 3.0])
    grads = hr.gradients(hr.maximum(x, y), [x, y])
    np.testing.assert_array_equal(run(grads), [[1, 0], [0, 1]])


def test_relu_and_abs_have_no_slope_at_zero() -> None:
    x = hr.constant([-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(run(hr.gradients(hr.nn.relu(x), x)[0]), [0, 0, 1])
    np.testing.assert_array_equal(run(hr.gradients(hr.abs(x), x)[0]), [-1, 0, 1])


def test_pow_at_its_corners() -> None:
    x = hr.constant([0.0, 0.0, 0.0, -2.0, -2.0])
    y = hr.placeholder(hr.float32, [5])
    grads = hr.gradients(x**y, [x, y])
    got = run(grads, {y: [0.0, 1.0, 2.0, 3.0, 0.0]})
    np.testing.assert_array_equal(got[0], [0, 1, 0, 12, 0])
    np.testing.assert_array_equal(got[1], [0, 0, 0, 0, 0])


def test_select_shields_from_infinities() -> None:
    x = hr.constant([0.0, 4.0])
    safe = hr.where(x > 0, x, 1)
    (grad,) = hr.gradients(hr.where(x > 0, hr.sqrt(safe), 0), x)
    np.testing.assert_array_equal(run(grad), [0, 0.25])


def test_empty_tensors_have_empty_gradients() -> None:
    x = hr.placeholder(hr.float32, [None, 2])
    ys = [hr.reduce_mean(x), hr.reduce_sum(x, 0), hr.reduce_prod(x), hr.gather(x, [])]
    for y in ys:
        (grad,) = hr.gradients(y, x)
        value = run(hr.convert_to_tensor(grad), {x: np.zeros((0, 2), np.float32)})
        assert value.shape == (0, 2)


def test_complex_gradients_are_conjugated() -> None:
    x, y = hr.constant(1 + 2j), hr.constant(3 - 1j)
    grads = hr.gradients(x * y, [x, y], grad_ys=1 + 0j)
    np.testing.assert_allclose(run(grads), [3 + 1j, 1 - 2j])


COMPLEX: dict[str, Any] = {
    "polynomial": lambda x: x * x + 3 * x,
    "quotient": lambda x: x / (x + 2),
    "exp": hr.exp,
    "log": hr.log,
    "sin": hr.sin,
    "cos": hr.cos,
    "tanh": hr.tanh,
    "sqrt": hr.sqrt,
    "square": hr.square,
    "conj": hr.conj,
    "pow": lambda x: x ** hr.constant(1.5 + 0.5j),
    "pow_base": lambda x: hr.constant(1.5 + 0.5j) ** x,
    "prod": lambda x: hr.reduce_prod(hr.stack([x, x + 1, x * x])),
    "matmul": lambda x: hr.matmul([[1 - 1j, 2.0]], hr.reshape(hr.stack([x, x * x]), [2, 1])),
    "matmul_transposed": lambda x: hr.matmul(
        hr.reshape(hr.stack([x, x * x]), [2, 1]), hr.constant([[1j], [2.0]]), transpose_a=True
    ),
}


@pytest.mark.parametrize("function", COMPLEX.values(), ids=COMPLEX.keys())
def test_complex_gradients_predict_the_change_of_the_real_part(function: Any) -> None:
    """For a real loss L, ``dL = Re(conj(g) dx)``."""
    x = hr.placeholder(hr.complex128, [])
    loss = hr.reduce_sum(hr.cast(function(x), hr.float64))
    (grad,) = hr.gradients(loss, x)
    point, step = 0.7 + 0.4j, 1e-6
    with hr.Session() as session:
        g = session.run(grad, {x: point})
        for direction in (1, 1j):
            ahead = session.run(loss, {x: point + step * direction})
            behind = session.run(loss, {x: point - step * direction})
            expected = (ahead - behind) / (2 * step)
            assert np.real(np.conj(g) * direction) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("dtype", [hr.float16, hr.bfloat16, hr.float32, hr.float64])
def test_gradients_have_the_dtype_of_x(dtype: Any) -> None:
    x = hr.cast(hr.constant([1.0, 2.0]), dtype)
    y = hr.reduce_mean(hr.nn.softplus(x) * 2 + hr.sqrt(x) - x / 3)
    (grad,) = hr.gradients(hr.cast(y, hr.float64), x)
    assert grad.dtype == dtype
    assert run(grad).dtype == dtype.as_numpy_dtype
