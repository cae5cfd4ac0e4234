"""The functions of pooling against views of windows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def draw(*shape):
    return np.random.default_rng([1, *shape]).standard_normal(shape)


def pooled(x, window, stride, fold):
    """Fold the windows of channels-last images that lie inside."""
    count = x.ndim - 2
    axes = tuple(range(1, 1 + count))
    views = np.lib.stride_tricks.sliding_window_view(x, window, axis=axes)
    views = views[(slice(None), *([slice(None, None, stride)] * count))]
    return fold(views, axis=tuple(range(x.ndim, x.ndim + count)))


X = {1: draw(2, 7, 3), 2: draw(2, 7, 6, 3), 3: draw(2, 5, 4, 6, 3)}
NAMED = {
    ("MAX", 1): hr.nn.max_pool1d,
    ("MAX", 2): hr.nn.max_pool2d,
    ("MAX", 3): hr.nn.max_pool3d,
    ("AVG", 1): hr.nn.avg_pool1d,
    ("AVG", 2): hr.nn.avg_pool2d,
    ("AVG", 3): hr.nn.avg_pool3d,
}


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", ["MAX", "AVG"])
def test_pooling_over_any_number_of_axes(kind, count):
    x = X[count]
    expected = pooled(x, (2, 3, 2)[:count], 2, np.max if kind == "MAX" else np.mean)
    window = list((2, 3, 2)[:count])
    generic = hr.nn.max_pool_v2 if kind == "MAX" else hr.nn.avg_pool_v2
    first = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[count]
    for y in (
        hr.nn.pool(x, window, kind, "VALID", strides=2),
        NAMED[kind, count](x, [1, *window, 1], [1] + [2] * count + [1], "VALID"),
        generic(x, window, 2, "VALID"),
    ):
        assert y.shape.known == expected.shape
        np.testing.assert_allclose(run(y), expected, rtol=1e-12)
    y = NAMED[kind, count](np.moveaxis(x, -1, 1), window, 2, "VALID", data_format=first)
    np.testing.assert_allclose(np.moveaxis(run(y), 1, -1), expected, rtol=1e-12)


def test_padding_never_counts():
    ones = hr.ones([1, 3, 3, 1])
    values = run([hr.nn.avg_pool(ones, 3, 1, "SAME"), hr.nn.max_pool(-ones, 3, 1, "SAME")])
    np.testing.assert_array_equal(values[0], np.ones((1, 3, 3, 1)))
    np.testing.assert_array_equal(values[1], -np.ones((1, 3, 3, 1)))
    spread = run(hr.nn.pool(-ones, [2, 2], "MAX", "SAME", dilation_rate=2))
    np.testing.assert_array_equal(spread, -np.ones((1, 3, 3, 1)))


def test_dilated_windows():
    x = draw(1, 6, 2)
    y = run(hr.nn.pool(x, [2], "MAX", "VALID", dilation_rate=[3]))
    np.testing.assert_allclose(y, np.maximum(x[:, :3], x[:, 3:]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_maxima_of_integers(dtype):
    x = np.array([[[-7, 3], [2, 5]]]).astype(dtype).reshape(1, 2, 2, 1)
    y = run(hr.nn.max_pool(x, 2, 1, "SAME"))
    assert y.dtype == dtype
    assert y[0, 0, 0, 0] == x.max()


def test_pooling_of_channels():
    x = draw(2, 3, 4, 6)
    y = hr.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 2], "SAME")
    np.testing.assert_array_equal(run(y), x.reshape(2, 3, 4, 3, 2).max(-1))


@pytest.mark.parametrize("batch", [False, True])
def test_places_of_maxima(batch):
    x = draw(2, 4, 6, 3)
    y, places = hr.nn.max_pool_with_argmax(
        x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", include_batch_in_index=batch
    )
    assert places.dtype == hr.int64
    values, found = run([y, places])
    if batch:
        picked = x.ravel()[found]
    else:
        picked = np.stack([x[n].ravel()[found[n]] for n in range(2)])
    np.testing.assert_array_equal(picked, values)
    np.testing.assert_array_equal(values, run(hr.nn.max_pool(x, 2, 2, "SAME")))


def test_the_gradient_of_maxima_with_places():
    x = hr.constant(draw(2, 4, 6, 3))
    y, _ = hr.nn.max_pool_with_argmax(x, 2, 2, "VALID", Targmax=hr.int32)
    grads = hr.gradients(y * y, [x]) + hr.gradients(hr.nn.max_pool(x, 2, 2, "VALID") ** 2, [x])
    mine, other = run(grads)
    np.testing.assert_array_equal(mine, other)


def test_patches():
    x = draw(2, 5, 6, 3)
    y = hr.image.extract_image_patches(
        x, ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, 2, 1, 1], padding="VALID"
    )
    assert y.shape.known == (2, 2, 4, 18)
    np.testing.assert_array_equal(run(y)[0, 1, 2], x[0, [2, 4], 2:5].ravel())
    volumes = draw(1, 2, 3, 4, 2)
    z = run(hr.extract_volume_patches(volumes, [1, 2, 2, 2, 1], [1, 1, 1, 2, 1], "SAME"))
    np.testing.assert_array_equal(z[0, 0, 1, 1], volumes[0, :, 1:3, 2:4].ravel())
    assert z[0, 1, 2, 1, -2:].tolist() == [0, 0]


ERRORS = {
    "kind": (
        lambda: hr.nn.pool(X[2], 2, "SUM", "SAME"),
        AttributeValueError,
        "must be 'MAX' or 'AVG'",
    ),
    "rank": (lambda: hr.nn.avg_pool(X[1], 2, 2, "SAME"), ShapeError, "must have 4 dimensions"),
    "window": (
        lambda: hr.nn.max_pool(X[2], [2, 0], 2, "SAME"),
        AttributeValueError,
        "integers >= 1",
    ),
    "large window": (
        lambda: hr.nn.max_pool(X[2], 9, 1, "VALID"),
        ShapeError,
        "does not fit into 7",
    ),
    "integers": (
        lambda: hr.nn.avg_pool(np.ones((1, 2, 2, 1), np.int32), 2, 2, "SAME"),
        DTypeError,
        "must be floating",
    ),
    "channels": (
        lambda: hr.nn.max_pool(X[2], [1, 1, 1, 2], [1, 1, 1, 2], "SAME"),
        ShapeError,
        "do not divide",
    ),
    "layout of places": (
        lambda: hr.nn.max_pool_with_argmax(X[2], 2, 2, "SAME", data_format="NCHW"),
        AttributeValueError,
        "takes data_format 'NHWC'",
    ),
    "both names": (
        lambda: hr.nn.max_pool(X[2], 2, 2, "SAME", input=X[2]),
        AttributeValueError,
        "under two names",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        build()
