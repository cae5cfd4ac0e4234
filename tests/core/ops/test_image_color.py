"""The functions that recolor, measure and compare images."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, InvalidArgumentError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def draw(*shape):
    return np.random.default_rng([4, *shape]).random(shape).astype(np.float32)


COLORS = np.concatenate(
    [np.eye(3), 1 - np.eye(3), np.zeros((1, 3)), np.ones((1, 3)), draw(16, 3)]
).astype(np.float32)[None]
X = draw(2, 5, 4, 3)
BYTES = (X * 255).astype(np.uint8)
image = hr.image


def each(function, x):
    return np.array([function(*pixel) for pixel in x.reshape(-1, 3).astype(float)]).reshape(x.shape)


def with_hsv(change):
    def changed(red, green, blue):
        return colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(red, green, blue)))

    return changed


def contrast(x, factor):
    mean = x.mean((-3, -2), keepdims=True)
    return (x - mean) * factor + mean


def variation(x):
    return np.abs(np.diff(x, axis=-3)).sum((-3, -2, -1)) + np.abs(np.diff(x, axis=-2)).sum(
        (-3, -2, -1)
    )


VALUES = {
    "hsv": (lambda: image.rgb_to_hsv(COLORS), each(colorsys.rgb_to_hsv, COLORS)),
    "rgb": (lambda: image.hsv_to_rgb(COLORS), each(colorsys.hsv_to_rgb, COLORS)),
    "hue": (
        lambda: image.adjust_hue(COLORS, 0.3),
        each(with_hsv(lambda h, s, v: ((h + 0.3) % 1, s, v)), COLORS),
    ),
    "hue back": (
        lambda: image.adjust_hue(COLORS, -0.7),
        each(with_hsv(lambda h, s, v: ((h - 0.7) % 1, s, v)), COLORS),
    ),
    "saturation": (
        lambda: image.adjust_saturation(COLORS, 1.5),
        each(with_hsv(lambda h, s, v: (h, min(1.5 * s, 1), v)), COLORS),
    ),
    "brightness": (lambda: image.adjust_brightness(X, 0.25), X + 0.25),
    "contrast": (lambda: image.adjust_contrast(X, 1.5), contrast(X, 1.5)),
    "gamma": (lambda: image.adjust_gamma(X, 2.0, gain=0.5), 0.5 * X**2),
    "gray": (lambda: image.rgb_to_grayscale(X), X @ [[0.2989], [0.587], [0.114]]),
    "colors of gray": (lambda: image.grayscale_to_rgb(X[..., :1]), np.repeat(X[..., :1], 3, -1)),
    "yiq and back": (lambda: image.yiq_to_rgb(image.rgb_to_yiq(X)), X),
    "yuv and back": (lambda: image.yuv_to_rgb(image.rgb_to_yuv(X)), X),
    "yuv of white": (lambda: image.rgb_to_yuv([[[1.0, 1.0, 1.0]]]), [[[1, 0, 0]]]),
    "standard": (
        lambda: image.per_image_standardization(BYTES.astype(np.float32)),
        (BYTES - BYTES.mean((1, 2, 3), keepdims=True)) / BYTES.std((1, 2, 3), keepdims=True),
    ),
    "standard of even": (
        lambda: image.per_image_standardization(np.ones((2, 2, 1))),
        0 * X[0, :2, :2, :1],
    ),
    "variation": (lambda: image.total_variation(X), variation(X)),
    "variation of one": (lambda: image.total_variation(X[0]), variation(X[0])),
    "psnr": (
        lambda: image.psnr(X, X[::-1].copy(), 1.0),
        np.full(2, -10 * np.log10(((X[0] - X[1]) ** 2).mean())),
    ),
    "psnr of bytes": (
        lambda: image.psnr(BYTES[0], BYTES[1], max_val=255),
        -10 * np.log10((((BYTES[0] / 255.0) - BYTES[1] / 255.0) ** 2).mean()),
    ),
    "ssim of equals": (lambda: image.ssim(X, X, 1.0, filter_size=4), [1, 1]),
    "ms-ssim of equals": (
        lambda: image.ssim_multiscale(draw(1, 9, 11, 2), draw(1, 9, 11, 2), 1.0, (0.5, 0.5), 4),
        [1],
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    build, expected = VALUES[name]
    np.testing.assert_allclose(run(build()), expected, rtol=1e-4, atol=1e-4)


def test_similarity_of_one_window():
    x, y = draw(3, 3, 1), draw(3, 3, 1)[::-1].copy()
    # With so wide a Gaussian, the window's weights are equal.
    found = run(hr.image.ssim(x, y, 1.0, filter_size=3, filter_sigma=1e6))
    covariance = ((x - x.mean()) * (y - y.mean())).mean()
    c1, c2 = 0.01**2, 0.03**2
    luminance = (2 * x.mean() * y.mean() + c1) / (x.mean() ** 2 + y.mean() ** 2 + c1)
    structure = (2 * covariance + c2) / (x.var() + y.var() + c2)
    np.testing.assert_allclose(found, luminance * structure, rtol=1e-4)


def test_edges():
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    y = image.sobel_edges(x)
    assert y.shape.known == (1, 3, 4, 1, 2)
    value = run(y)[0, :, :, 0]
    # The image rises by 4 per row and by 1 per column; the border mirrors.
    np.testing.assert_array_equal(value[1, 1:3], [[32, 8], [32, 8]])
    assert value[0, :, 0].tolist() == [0, 0, 0, 0]
    down, across = run(image.image_gradients(x))
    np.testing.assert_array_equal(down[0, :, :, 0], [[4] * 4, [4] * 4, [0] * 4])
    np.testing.assert_array_equal(across[0, :, :, 0], [[1, 1, 1, 0]] * 3)


CONVERTED = {
    "bytes to floats": ([0, 51, 255], "uint8", "float32", [0, 0.2, 1]),
    "floats to bytes": ([0, 0.2, 1], "float32", "uint8", [0, 51, 255]),
    "wider": ([0, 1, 255], "uint8", "uint16", [0, 256, 65280]),
    "narrower": ([0, 256, 65535], "uint16", "uint8", [0, 1, 255]),
    "signed": ([0, 2, 127], "int8", "int16", [0, 512, 32512]),
    "floats": ([0.5, 1], "float32", "float64", [0.5, 1]),
    "same": ([7], "int32", "int32", [7]),
}


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", CONVERTED)
def test_conversion(name, saturate):
    values, source, target, expected = CONVERTED[name]
    y = image.convert_image_dtype(np.array(values, source), hr.as_dtype(target), saturate)
    assert y.dtype.name == target
    np.testing.assert_allclose(run(y), expected, rtol=1e-6)


def test_conversion_saturates():
    y = image.convert_image_dtype(hr.constant([-1.0, 2.0]), hr.uint8, saturate=True)
    assert run(y).tolist() == [0, 255]
    assert run(image.adjust_brightness(np.uint8([[[200]]]), 0.5)).tolist() == [[[255]]]


@pytest.mark.parametrize(
    ("build", "bounds"),
    [
        (lambda x: image.random_brightness(x, 0.2, seed=1), lambda x: (x - 0.2, x + 0.2)),
        (lambda x: image.random_hue(x, 0.1, seed=1), lambda x: (0 * x, 0 * x + 1)),
        (lambda x: image.random_contrast(x, 0.5, 1.5, seed=1), lambda x: (x - 1, x + 1)),
        (lambda x: image.random_saturation(x, 0.5, 1.5, seed=1), lambda x: (0 * x, 0 * x + 1)),
    ],
    ids=["brightness", "hue", "contrast", "saturation"],
)
def test_random_changes(build, bounds):
    y = run(build(X))
    low, high = bounds(X)
    assert y.shape == X.shape
    assert (y != X).any()
    assert ((low - 1e-5 <= y) & (y <= high + 1e-5)).all()


def test_gradients_of_colors_are_finite_everywhere():
    x = hr.constant(COLORS)
    for y in (image.rgb_to_hsv(x), image.adjust_hue(x, 0.1), image.adjust_saturation(x, 0.5)):
        assert np.isfinite(run(hr.gradients(y, [x])[0])).all()


ERRORS = {
    "channels": (lambda: image.rgb_to_hsv(X[..., :2]), ShapeError, "3 channels"),
    "gray channels": (lambda: image.grayscale_to_rgb(X), ShapeError, "1 channel"),
    "integers": (lambda: image.rgb_to_hsv(hr.constant(BYTES)), DTypeError, "must be floating"),
    "conversion": (
        lambda: image.convert_image_dtype(hr.constant(["a"]), hr.uint8),
        DTypeError,
        "integers or floats",
    ),
    "rank": (lambda: image.adjust_contrast([1.0], 2.0), ShapeError, "3 dimensions at least"),
    "gamma": (lambda: image.adjust_gamma(X, -1.0), AttributeValueError, ">= 0"),
    "delta": (lambda: image.random_brightness(X, -1.0), AttributeValueError, ">= 0"),
    "turn": (lambda: image.random_hue(X, 0.6), AttributeValueError, r"in \[0, 0.5\]"),
    "bounds": (lambda: image.random_contrast(X, 2.0, 1.0), AttributeValueError, "lower < upper"),
    "shapes": (lambda: image.psnr(X, X[:, :3], 1.0), ShapeError, "must match"),
    "window": (lambda: image.ssim(X, X, 1.0), ShapeError, "11 pixels"),
    "no scales": (
        lambda: image.ssim_multiscale(X, X, 1.0, ()),
        AttributeValueError,
        "not be empty",
    ),
    "edges": (lambda: image.sobel_edges(X[0]), ShapeError, "4 to 4 dimensions"),
}


@pytest.mark.parametrize("function", [image.rgb_to_yiq, image.yiq_to_rgb, image.rgb_to_yuv])
def test_colors_of_unknown_rank_are_those_of_known(function):
    unknown = hr.placeholder_with_default(X, None)
    np.testing.assert_array_equal(run(function(unknown)), run(function(X)))


IN_A_STEP = {
    "gray": lambda x: image.rgb_to_grayscale(x),
    "hsv": lambda x: image.rgb_to_hsv(x),
    "rgb": lambda x: image.hsv_to_rgb(x),
    "hue": lambda x: image.adjust_hue(x, 0.1),
    "saturation": lambda x: image.adjust_saturation(x, 0.5),
    "yiq": lambda x: image.rgb_to_yiq(x),
}


@pytest.mark.parametrize("config", [{"executor": "plain"}, {"compile_after": 0}])
@pytest.mark.parametrize("shape", [None, [2, 4, 4, None]])
@pytest.mark.parametrize("name", IN_A_STEP)
def test_a_step_refuses_other_channels(name, shape, config):
    x = hr.placeholder(hr.float32, shape)
    y = IN_A_STEP[name](x)
    with hr.Session(config=hr.Config(**config)) as session:
        session.run(y, {x: np.ones((2, 4, 4, 3))})
        for channels in (1, 4):
            with pytest.raises(InvalidArgumentError, match=r"3 channels last|shape \[2, 4, 4, 3\]"):
                session.run(y, {x: np.ones((2, 4, 4, channels))})


PAIRS = {
    "psnr": lambda x, y: image.psnr(x, y, 1.0),
    "ssim": lambda x, y: image.ssim(x, y, 1.0, filter_size=2),
    "scales": lambda x, y: image.ssim_multiscale(x, y, 1.0, (0.5, 0.5), 1),
}


@pytest.mark.parametrize("config", [{"executor": "plain"}, {"compile_after": 0}])
@pytest.mark.parametrize("name", PAIRS)
def test_a_step_refuses_images_that_do_not_match(name, config):
    x, y = (hr.placeholder(hr.float32, None) for _ in range(2))
    z = PAIRS[name](x, y)
    with hr.Session(config=hr.Config(**config)) as session:
        session.run(z, {x: X, y: X})
        for other in (X[:, :3], X[..., :1], X[0, 0]):
            with pytest.raises(InvalidArgumentError, match="images must match"):
                session.run(z, {x: X, y: other})


def test_a_step_refuses_images_smaller_than_the_window():
    x = hr.placeholder(hr.float32, None)
    with pytest.raises(InvalidArgumentError, match="5 pixels high and wide at least"):
        run(image.ssim(x, x, 1.0, filter_size=5), {x: X})


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        build()
