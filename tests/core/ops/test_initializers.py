"""Initializers: their values, scales, configurations and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")


VALUES = {
    "zeros": (hr.zeros_initializer(), [2, 3], np.zeros((2, 3))),
    "ones": (hr.ones_initializer(hr.int32), [2], [1, 1]),
    "constant": (hr.constant_initializer(7), [2, 2], [[7, 7], [7, 7]]),
    "values": (hr.constant_initializer([1, 2, 3, 4]), [2, 2], [[1, 2], [3, 4]]),
    "few": (hr.constant_initializer([1, 2, 3]), [2, 2], [[1, 2], [3, 3]]),
    "array": (hr.constant_initializer(np.eye(2), verify_shape=True), [2, 2], np.eye(2)),
    "identity": (hr.initializers.identity(2.0), [2, 3], [[2, 0, 0], [0, 2, 0]]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    made, shape, expected = VALUES[name]
    got = run(made(shape))
    np.testing.assert_array_equal(got, expected)
    assert run(made(shape, dtype=hr.float64)).dtype == np.float64


# Of a layer with 3 * 3 * 40 inputs and 3 * 3 * 60 outputs, and of its weights' shape.
SHAPE, IN, OUT = [3, 3, 40, 60], 360, 540


@pytest.mark.parametrize(
    ("made", "deviation"),
    [
        (hr.random_uniform_initializer(-1, 1), 1 / np.sqrt(3)),
        (hr.random_normal_initializer(0.0, 2.0), 2),
        (hr.truncated_normal_initializer(0.0, 2.0), 2 * 0.8796),
        (hr.uniform_unit_scaling_initializer(2.0), 2 / np.sqrt(IN)),
        (hr.variance_scaling_initializer(), 1 / np.sqrt(IN)),
        (hr.variance_scaling_initializer(3.0, "fan_out", "uniform"), np.sqrt(3 / OUT)),
        (hr.variance_scaling_initializer(1.0, "fan_avg", "untruncated_normal"), np.sqrt(1 / 450)),
        (hr.glorot_uniform_initializer(), np.sqrt(1 / 450)),
        (hr.glorot_normal_initializer(), np.sqrt(1 / 450)),
        (hr.initializers.he_normal(), np.sqrt(2 / IN)),
        (hr.initializers.he_uniform(seed=3), np.sqrt(2 / IN)),
        (hr.initializers.lecun_normal(), np.sqrt(1 / IN)),
        (hr.initializers.lecun_uniform(), np.sqrt(1 / IN)),
    ],
    ids=range(13),
)
def test_scales(made, deviation):
    drawn = run(made(SHAPE))
    assert drawn.dtype == np.float32
    assert abs(drawn.mean()) < 0.05 * deviation
    assert drawn.std() == pytest.approx(deviation, rel=0.03)


@pytest.mark.parametrize("shape", [[4, 4], [6, 3], [3, 6], [2, 3, 4]])
def test_orthogonal(shape):
    drawn = run(hr.orthogonal_initializer(gain=2.0, seed=1)(shape)).reshape(-1, shape[-1])
    product = drawn @ drawn.T if len(drawn) < drawn.shape[1] else drawn.T @ drawn
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_seeds_settle_what_is_drawn():
    made = hr.glorot_uniform_initializer(seed=3)
    np.testing.assert_array_equal(run(made([4])), run(made([4])))


@pytest.mark.parametrize("kind", [hr.variance_scaling_initializer, hr.glorot_normal_initializer])
def test_configurations_make_equal_initializers(kind):
    config = kind(seed=5, dtype=hr.float64).get_config()
    again = kind.from_config(config)
    assert again.get_config() == config
    assert config["dtype"] == "float64"
    assert run(again([2, 2])).dtype == np.float64


def test_small_shapes():
    for made in (hr.glorot_uniform_initializer(), hr.uniform_unit_scaling_initializer()):
        assert np.shape(run(made([]))) == ()
        assert run(made([0, 3])).shape == (0, 3)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: hr.constant_initializer([1, 2, 3])([2]), ShapeError, "3 values for shape"),
        (lambda: hr.constant_initializer([])([2]), ShapeError, "no values"),
        (
            lambda: hr.constant_initializer([1, 2], verify_shape=True)([2, 1]),
            ArgumentTypeError,
            "has shape",
        ),
        (lambda: hr.constant_initializer(hr), DTypeError, "must be a number"),
        (lambda: hr.orthogonal_initializer()([3]), ShapeError, "at least 2 dimensions"),
        (lambda: hr.initializers.identity()([3]), ShapeError, "must have 2 dimensions"),
        (lambda: hr.variance_scaling_initializer(-1.0), AttributeValueError, "scale must be"),
        (lambda: hr.variance_scaling_initializer(mode="x"), AttributeValueError, "mode must be"),
        (
            lambda: hr.variance_scaling_initializer(distribution="x"),
            AttributeValueError,
            "distribution must be",
        ),
        (lambda: hr.glorot_uniform_initializer(dtype=hr.int32), DTypeError, "floating dtype"),
    ],
    ids=range(10),
)
def test_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()
