"""Convolution and pooling against loops in float64."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from headrace.ops.windows import window_padding
from headrace_cpu.kernels import conv as conv_kernels

# n, image, channels, filter, out channels, strides, dilations, padding
GEOMETRIES = [
    (2, (5, 6), 1, (3, 3), 2, (1, 1), (1, 1), "SAME"),
    (2, (5, 6), 3, (3, 2), 2, (1, 1), (1, 1), "VALID"),
    (1, (7, 5), 2, (3, 3), 4, (2, 1), (1, 1), "SAME"),
    (1, (8, 7), 2, (2, 3), 1, (3, 2), (1, 1), "SAME"),
    (2, (9, 9), 2, (3, 3), 3, (2, 2), (1, 1), "VALID"),
    (1, (9, 8), 1, (3, 2), 2, (1, 1), (2, 3), "SAME"),
    (1, (9, 8), 2, (3, 2), 2, (2, 1), (2, 3), "VALID"),
    (2, (4, 4), 20, (1, 1), 3, (1, 1), (1, 1), "VALID"),
    (1, (5, 5), 17, (2, 2), 3, (2, 2), (1, 1), "SAME"),
    (1, (3, 3), 1, (5, 5), 2, (1, 1), (1, 1), "SAME"),
    (1, (4, 5), 2, (1, 1), 2, (3, 3), (1, 1), "SAME"),
    (1, (3, 4), 2, (3, 4), 2, (1, 1), (1, 1), "VALID"),
    (0, (4, 4), 2, (3, 3), 2, (1, 1), (1, 1), "SAME"),
    (2, (4, 4), 0, (3, 3), 2, (1, 1), (1, 1), "SAME"),
    (2, (4, 4), 2, (3, 3), 0, (1, 1), (1, 1), "SAME"),
]


def places(image, window, strides, dilations, padding):
    """Yield where a window stands, where in it an element is, and where in the image."""
    rows, columns = (
        window_padding(image[a], window[a], strides[a], dilations[a], padding) for a in (0, 1)
    )
    for y, x, i, j in itertools.product(
        range(rows[0]), range(columns[0]), range(window[0]), range(window[1])
    ):
        row = y * strides[0] + i * dilations[0] - rows[1]
        column = x * strides[1] + j * dilations[1] - columns[1]
        if 0 <= row < image[0] and 0 <= column < image[1]:
            yield (y, x), (i, j), (row, column)


def out_shape(image, window, strides, dilations, padding):
    return tuple(
        window_padding(image[a], window[a], strides[a], dilations[a], padding)[0] for a in (0, 1)
    )


def naive(images, taps, grad, strides, dilations, padding):
    """Return the convolution and, for a gradient, those of images and taps."""
    geometry = (images.shape[1:3], taps.shape[:2], strides, dilations, padding)
    out = np.zeros((images.shape[0], *out_shape(*geometry), taps.shape[3]))
    to_images, to_taps = np.zeros(images.shape), np.zeros(taps.shape)
    for (y, x), (i, j), (row, column) in places(*geometry):
        out[:, y, x] += images[:, row, column] @ taps[i, j]
        to_images[:, row, column] += grad[:, y, x] @ taps[i, j].T
        to_taps[i, j] += images[:, row, column].T @ grad[:, y, x]
    return out, to_images, to_taps


def draw(geometry, dtype=np.float64):
    n, image, channels, window, out_channels, strides, dilations, padding = geometry
    rng = np.random.default_rng(7)
    images = rng.standard_normal((n, *image, channels)).astype(dtype)
    taps = rng.standard_normal((*window, channels, out_channels)).astype(dtype)
    size = out_shape(image, window, strides, dilations, padding)
    grad = rng.standard_normal((n, *size, out_channels)).astype(dtype)
    return images, taps, grad, strides, dilations, padding


def run_all(kernel, images, taps, grad, strides, dilations, padding, data_format="NHWC"):
    """Run the three kernels on images of a layout, and return their results as NHWC."""
    order, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if data_format == "NCHW" else ((0, 1, 2, 3),) * 2
    x, g = images.transpose(order), grad.transpose(order)
    attrs = {"strides": strides, "padding": padding, "data_format": data_format}
    attrs["dilations"] = dilations
    sizes, tap_sizes = np.array(x.shape, np.int32), np.array(taps.shape, np.int64)
    out = kernel("Conv2D", x, taps, **attrs)
    to_images = kernel("Conv2DBackpropInput", sizes, taps, g, **attrs)
    to_taps = kernel("Conv2DBackpropFilter", x, tap_sizes, g, **attrs)
    assert out.shape == g.shape
    assert to_images.shape == x.shape
    assert out.dtype == to_images.dtype == to_taps.dtype == images.dtype
    return out.transpose(back), to_images.transpose(back), to_taps


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_convolution_and_its_gradients(kernel, geometry, data_format):
    drawn = draw(geometry)
    for got, expected in zip(run_all(kernel, *drawn, data_format), naive(*drawn), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("limit", [1, 500, 3000])
@pytest.mark.parametrize("geometry", GEOMETRIES[:9], ids=str)
def test_blocks_of_any_size(kernel, monkeypatch, geometry, limit):
    monkeypatch.setattr(conv_kernels, "_HOST_BLOCK_BYTES", limit)
    drawn = draw(geometry)
    for got, expected in zip(run_all(kernel, *drawn), naive(*drawn), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float32, 1e-5), (np.float16, 2e-2), (ml_dtypes.bfloat16, 1e-1)],
    ids=["float32", "float16", "bfloat16"],
)
@pytest.mark.parametrize("geometry", GEOMETRIES[:9:4], ids=str)
def test_narrow_dtypes(kernel, geometry, dtype, tolerance):
    drawn = draw(geometry, dtype)
    exact = naive(*(part.astype(float) for part in drawn[:3]), *drawn[3:])
    for got, expected in zip(run_all(kernel, *drawn), exact, strict=True):
        np.testing.assert_allclose(got.astype(float), expected, rtol=tolerance, atol=tolerance)


# image, window, strides, padding
POOLS = [
    ((4, 6), (2, 2), (2, 2), "VALID"),
    ((5, 7), (2, 2), (2, 2), "SAME"),
    ((5, 7), (3, 2), (2, 1), "SAME"),
    ((6, 5), (3, 3), (1, 1), "VALID"),
    ((5, 4), (1, 1), (2, 3), "SAME"),
    ((3, 3), (5, 4), (1, 2), "SAME"),
    ((5, 5), (1, 1), (1, 1), "VALID"),
]


def naive_pool(images, grad, other, window, strides, padding):
    """Return maxima, ``grad`` moved to them, and ``other`` read at them: the first of equals."""
    geometry = (images.shape[1:3], window, strides, (1, 1), padding)
    size = out_shape(*geometry)
    maxima = np.zeros((images.shape[0], *size, images.shape[3]))
    moved, read = np.zeros(images.shape), np.zeros(maxima.shape)
    inside: dict = {}
    for place, _, pixel in places(*geometry):
        inside.setdefault(place, []).append(pixel)
    for (y, x), pixels in inside.items():
        values = np.stack([images[:, r, c] for r, c in pixels])
        first = values.argmax(0)
        for n, c in np.ndindex(first.shape):
            row, column = pixels[first[n, c]]
            maxima[n, y, x, c] = images[n, row, column, c]
            moved[n, row, column, c] += grad[n, y, x, c]
            read[n, y, x, c] = other[n, row, column, c]
    return maxima, moved, read


SPECIALS = {
    "distinct": lambda x: x,
    "ties": lambda x: np.round(x),
    "nan": lambda x: np.where(x > 0.7, np.nan, x),
    "all_nan": lambda x: np.full_like(x, np.nan),
    "minus_infinity": lambda x: np.full_like(x, -np.inf),
    "infinities": lambda x: np.where(np.abs(x) > 0.7, x * np.inf, x),
}


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("values", SPECIALS)
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_pooling_and_its_gradients(kernel, pool, values, data_format):
    image, window, strides, padding = pool
    rng = np.random.default_rng(3)
    images = SPECIALS[values](rng.standard_normal((2, *image, 3)))
    other = rng.standard_normal(images.shape)
    grad = rng.standard_normal((2, *out_shape(image, window, strides, (1, 1), padding), 3))
    order, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if data_format == "NCHW" else ((0, 1, 2, 3),) * 2
    x, g, o = (a.transpose(order) for a in (images, grad, other))
    attrs = {"ksize": window, "strides": strides, "padding": padding, "data_format": data_format}
    got = (
        kernel("MaxPool", x, **attrs),
        kernel("MaxPoolGrad", x, g, **attrs),
        kernel("MaxPoolGradGrad", x, o, **attrs),
    )
    expected = naive_pool(images, grad, other, window, strides, padding)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine.transpose(back), theirs, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_pooling_of_narrow_dtypes(kernel, dtype):
    images = np.arange(16).reshape(1, 4, 4, 1).astype(dtype)
    attrs = {"ksize": (2, 2), "strides": (2, 2), "padding": "VALID", "data_format": "NHWC"}
    out = kernel("MaxPool", images, **attrs)
    moved = kernel("MaxPoolGrad", images, out, **attrs)
    read = kernel("MaxPoolGradGrad", images, images, **attrs)
    assert out.dtype == moved.dtype == read.dtype == dtype
    assert out.ravel().astype(int).tolist() == [5, 7, 13, 15]
    assert read.ravel().astype(int).tolist() == [5, 7, 13, 15]
    assert moved.astype(int).sum() == 40


def test_gradients_of_empty_batches(kernel):
    attrs = {"ksize": (2, 2), "strides": (2, 2), "padding": "SAME", "data_format": "NHWC"}
    images, grad = np.zeros((0, 4, 4, 1)), np.zeros((0, 2, 2, 1))
    assert kernel("MaxPool", images, **attrs).shape == (0, 2, 2, 1)
    assert kernel("MaxPoolGrad", images, grad, **attrs).shape == (0, 4, 4, 1)
    assert kernel("MaxPoolGradGrad", images, images, **attrs).shape == (0, 2, 2, 1)
