"""Normalizations and dropout."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def draw(*shape):
    return np.random.default_rng([2, *shape]).standard_normal(shape)


X, SCALE, OFFSET = draw(4, 5, 3, 2), draw(2), draw(2)
MEAN, VARIANCE = draw(2), draw(2) ** 2
MOMENTS = X.mean((0, 1, 2)), X.var((0, 1, 2))


def normalized(x, mean, variance, epsilon):
    return (x - mean) / np.sqrt(variance + epsilon)


def squares(x, radius):
    return np.stack(
        [(x[..., max(0, c - radius) : c + radius + 1] ** 2).sum(-1) for c in range(x.shape[-1])],
        -1,
    )


VALUES = {
    "batch": (
        lambda: hr.nn.batch_normalization(X, MEAN, VARIANCE, OFFSET, SCALE, 0.1),
        normalized(X, MEAN, VARIANCE, 0.1) * SCALE + OFFSET,
    ),
    "batch alone": (
        lambda: hr.nn.batch_normalization(X, MEAN, VARIANCE, None, None, 0.1),
        normalized(X, MEAN, VARIANCE, 0.1),
    ),
    "global": (
        lambda: hr.nn.batch_norm_with_global_normalization(
            X, MEAN, VARIANCE, OFFSET, SCALE, 0.1, scale_after_normalization=False
        ),
        normalized(X, MEAN, VARIANCE, 0.1) + OFFSET,
    ),
    "fused training": (
        lambda: hr.nn.fused_batch_norm(X, SCALE, OFFSET)[0],
        normalized(X, *MOMENTS, 1e-3) * SCALE + OFFSET,
    ),
    "fused mean": (lambda: hr.nn.fused_batch_norm(X, SCALE, OFFSET)[1], MOMENTS[0]),
    "fused variance": (
        lambda: hr.nn.fused_batch_norm(X, SCALE, OFFSET)[2],
        X.var((0, 1, 2), ddof=1),
    ),
    "fused running": (
        lambda: hr.nn.fused_batch_norm(
            X, SCALE, OFFSET, MEAN, VARIANCE, exponential_avg_factor=0.25
        )[1],
        0.75 * MEAN + 0.25 * MOMENTS[0],
    ),
    "fused inference": (
        lambda: hr.nn.fused_batch_norm(
            X, SCALE, OFFSET, MEAN, VARIANCE, epsilon=0.1, is_training=False
        )[0],
        normalized(X, MEAN, VARIANCE, 0.1) * SCALE + OFFSET,
    ),
    "fused channels first": (
        lambda: hr.transpose(
            hr.nn.fused_batch_norm(np.moveaxis(X, -1, 1), SCALE, OFFSET, data_format="NCHW")[0],
            [0, 2, 3, 1],
        ),
        normalized(X, *MOMENTS, 1e-3) * SCALE + OFFSET,
    ),
    "fused least epsilon": (
        lambda: hr.nn.fused_batch_norm(
            X, SCALE, OFFSET, MEAN, np.zeros(2), epsilon=0.0, is_training=False
        )[0],
        normalized(X, MEAN, 0.0, 1.001e-5) * SCALE + OFFSET,
    ),
    "layer": (
        lambda: hr.nn.layer_norm(X, SCALE, OFFSET, epsilon=0.1),
        normalized(X, X.mean(-1, keepdims=True), X.var(-1, keepdims=True), 0.1) * SCALE + OFFSET,
    ),
    "layer axes": (
        lambda: hr.nn.layer_norm(X, axis=[1, 2, 3], epsilon=0.0),
        normalized(X, X.mean((1, 2, 3), keepdims=True), X.var((1, 2, 3), keepdims=True), 0.0),
    ),
    "local": (
        lambda: hr.nn.lrn(draw(1, 2, 3, 7), 2, bias=2.0, alpha=0.5, beta=0.75),
        draw(1, 2, 3, 7) / (2 + 0.5 * squares(draw(1, 2, 3, 7), 2)) ** 0.75,
    ),
    "local wide": (
        lambda: hr.nn.local_response_normalization(draw(1, 1, 1, 3), depth_radius=10**12),
        draw(1, 1, 1, 3) / np.sqrt(1 + (draw(1, 1, 1, 3) ** 2).sum()),
    ),
    "l2": (lambda: hr.nn.l2_normalize([[3.0, 4.0], [0.0, 0.0]], 1), [[0.6, 0.8], [0, 0]]),
    "l2 dim": (lambda: hr.math.l2_normalize([[3.0], [4.0]], dim=0), [[0.6], [0.8]]),
    "l2 epsilon": (lambda: hr.linalg.l2_normalize([3.0, 4.0], epsilon=100.0), [0.3, 0.4]),
    "softmax dim": (lambda: hr.nn.softmax([[0.0], [np.log(3.0)]], dim=0), [[0.25], [0.75]]),
    "log softmax": (lambda: hr.nn.log_softmax([0.0, 0.0], axis=-1), np.log([0.5, 0.5])),
    "bias": (lambda: hr.nn.bias_add([[1, 2]], [3, 4]), [[4, 6]]),
    "bias of channels": (
        lambda: hr.nn.bias_add(X, draw(5), data_format="NCHW"),
        X + draw(5)[:, None, None],
    ),
    "matrix and bias": (lambda: hr.nn.xw_plus_b([[1.0, 2.0]], [[1.0], [3.0]], [5.0]), [[12.0]]),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    build, expected = VALUES[name]
    np.testing.assert_allclose(run(build()), expected, rtol=1e-6, atol=1e-7)


def test_gradients_of_both_layouts_agree():
    x = hr.constant(draw(2, 3, 4, 5))
    scale, offset, weights = draw(5), draw(5), draw(2, 3, 4, 5)
    last = hr.nn.fused_batch_norm(x, scale, offset)[0] * weights
    first = hr.nn.fused_batch_norm(
        hr.transpose(x, [0, 3, 1, 2]), scale, offset, data_format="NCHW"
    )[0] * np.moveaxis(weights, -1, 1)
    mine, other = run([hr.gradients(y, [x])[0] for y in (last, first)])
    np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


def test_half_floats_are_normalized_in_float32():
    x = np.full((2, 64, 64, 1), 300.0, np.float16)
    y, mean, variance = hr.nn.fused_batch_norm(x, [1.0], [0.0])
    assert (y.dtype, mean.dtype, variance.dtype) == (hr.float16, hr.float32, hr.float32)
    assert run(mean) == 300
    assert run(variance) == 0


def test_dropout_keeps_the_mean_and_its_noise_shape():
    x = hr.ones([200, 100])
    kept = run(hr.nn.dropout(x, 0.25, seed=3))
    assert set(np.unique(kept)) == {0.0, 4.0}
    assert abs(kept.mean() - 1) < 0.05
    rows = run(hr.nn.dropout(x, rate=0.5, noise_shape=[None, 1], seed=3))
    assert (rows == rows[:, :1]).all()
    assert (run(hr.nn.dropout(x, rate=hr.constant(0.0))) == 1).all()


def test_nothing_is_dropped_at_rate_0():
    x = hr.ones([2])
    assert hr.nn.dropout(x, rate=0.0) is x
    assert hr.nn.dropout(x, keep_prob=1.0) is x


ERRORS = {
    "both": (lambda: hr.nn.dropout([1.0], 0.5, rate=0.5), AttributeValueError, "one of"),
    "none": (lambda: hr.nn.dropout([1.0]), AttributeValueError, "one of"),
    "rate": (lambda: hr.nn.dropout([1.0], rate=1.0), AttributeValueError, r"in \[0, 1\)"),
    "rate vector": (
        lambda: hr.nn.dropout([1.0], rate=hr.constant([0.5])),
        ShapeError,
        "must be a scalar",
    ),
    "integers": (lambda: hr.nn.dropout([1], rate=0.5), DTypeError, "must be floating"),
    "moments": (
        lambda: hr.nn.fused_batch_norm(X, SCALE, OFFSET, is_training=False),
        AttributeValueError,
        "give mean and variance",
    ),
    "scale": (
        lambda: hr.nn.fused_batch_norm(X, draw(3), OFFSET),
        ShapeError,
        r"scale must have shape \[2\]",
    ),
    "rank": (lambda: hr.nn.fused_batch_norm(X[0], SCALE, OFFSET), ShapeError, "4 dimensions"),
    "local rank": (lambda: hr.nn.lrn(X[0]), ShapeError, "4 dimensions"),
    "bias": (lambda: hr.nn.bias_add([[1.0, 2.0]], [1.0]), ShapeError, "one element for each"),
    "bias of a vector": (lambda: hr.nn.bias_add([1.0], [1.0]), ShapeError, "2 dimensions at least"),
    "axis and dim": (
        lambda: hr.nn.l2_normalize([1.0], 0, dim=0),
        AttributeValueError,
        "not both",
    ),
    "softmax axis and dim": (
        lambda: hr.nn.softmax([1.0], 0, dim=0),
        AttributeValueError,
        "not both",
    ),
    "softmax axis": (
        lambda: hr.nn.softmax([1.0], "last"),
        AttributeValueError,
        "must be an integer",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        build()


def test_variances_of_batches_whose_size_only_a_step_knows():
    x = hr.placeholder(hr.float32, [None, None, 3, 2])
    values = np.random.default_rng(0).normal(size=(4, 5, 3, 2)).astype(np.float32)
    _, mean, variance = hr.nn.fused_batch_norm(x, np.ones(2), np.zeros(2))
    with hr.Session() as session:
        found = session.run([mean, variance], {x: values})
    np.testing.assert_allclose(found[0], values.mean((0, 1, 2)), atol=1e-6)
    np.testing.assert_allclose(found[1], values.var((0, 1, 2), ddof=1), rtol=1e-5)


def test_a_rate_of_unknown_rank_is_a_scalar_in_the_step():
    x = hr.constant(np.ones(3, np.float32))
    rate = hr.placeholder(hr.float32)
    with hr.Session() as session:
        dropped = hr.nn.dropout(x, rate=rate, seed=1)
        assert session.run(dropped, {rate: 0.0}).tolist() == [1, 1, 1]
        with pytest.raises(hr.errors.InvalidArgumentError, match="3 elements"):
            session.run(dropped, {rate: [0.1, 0.2, 0.3]})


def test_a_bias_of_unknown_rank_is_a_vector() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        bias = hr.placeholder(hr.float32, None)
        y = hr.nn.bias_add(hr.ones([1, 3]), bias)
        assert y.shape == (1, 3)
        assert session.run(y, {bias: [1.0, 2.0, 3.0]}).tolist() == [[2.0, 3.0, 4.0]]
        with pytest.raises(hr.errors.InvalidArgumentError, match="EnsureShape"):
            session.run(y, {bias: np.ones((5, 3))})
