"""The functions of convolution against sums over windows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ExecutionError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def correlate(image, taps):
    """Correlate one channel with one of a filter, where the filter lies inside."""
    views = np.lib.stride_tricks.sliding_window_view(image, taps.shape)
    return np.tensordot(views, taps, taps.ndim)


def correlated(images, taps):
    """Correlate images [n, ..., c] with a filter [..., c, out], at stride 1."""
    out = [
        [
            sum(correlate(image[..., c], taps[..., c, o]) for c in range(taps.shape[-2]))
            for o in range(taps.shape[-1])
        ]
        for image in images
    ]
    return np.moveaxis(np.array(out), 1, -1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_convolution_over_any_number_of_axes(count):
    x, w = draw(2, *(5, 6, 4)[:count], 3), draw(*(2, 3, 2)[:count], 3, 4)
    expected = correlated(x, w)
    named = {1: hr.nn.conv1d, 2: hr.nn.conv2d, 3: hr.nn.conv3d}[count]
    for y in (hr.nn.convolution(x, w, "VALID"), named(x, w, 1, "VALID")):
        assert y.shape.known == expected.shape
        np.testing.assert_allclose(run(y), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_layouts_strides_and_dilations_agree(count):
    x, w = draw(2, *(7, 6, 5)[:count], 3), draw(*(2, 3, 2)[:count], 3, 4)
    first = np.moveaxis(x, -1, 1)
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[count]
    for options in ({"strides": 2}, {"dilation_rate": 2}, {"strides": [1] * count}):
        last = run(hr.nn.convolution(x, w, "SAME", **options))
        other = run(hr.nn.convolution(first, w, "SAME", data_format=layout, **options))
        np.testing.assert_allclose(np.moveaxis(other, 1, -1), last, rtol=1e-12, atol=1e-12)
    # A dilated filter is one with zeros between its elements.
    spread = np.zeros((*(2 * s - 1 for s in w.shape[:count]), 3, 4))
    spread[(slice(None, None, 2),) * count] = w
    np.testing.assert_allclose(
        run(hr.nn.convolution(x, w, "SAME", dilation_rate=2)),
        run(hr.nn.convolution(x, spread, "SAME")),
        rtol=1e-12,
        atol=1e-12,
    )


def test_explicit_padding():
    x, w = draw(1, 4, 5, 2), draw(3, 2, 2, 3)
    padded = np.pad(x, [(0, 0), (2, 1), (0, 3), (0, 0)])
    y = hr.nn.conv2d(x, filters=w, padding=[[0, 0], [2, 1], [0, 3], [0, 0]])
    np.testing.assert_allclose(run(y), correlated(padded, w), rtol=1e-12)
    line = hr.nn.conv1d(draw(1, 5, 2), draw(3, 2, 2), 1, [[0, 0], [2, 0], [0, 0]])
    assert line.shape.known == (1, 5, 2)


def test_groups_are_convolutions_of_their_own():
    x, w = draw(2, 4, 5, 6), draw(2, 3, 2, 9)
    parts = [correlated(x[..., 2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3]) for g in range(3)]
    y = run(hr.nn.conv2d(x, w, 1, "VALID"))
    np.testing.assert_allclose(y, np.concatenate(parts, -1), rtol=1e-12)


def test_depthwise_and_separable():
    x, w, mix = draw(2, 5, 4, 3), draw(2, 3, 3, 2), draw(1, 1, 6, 4)
    parts = [
        correlated(x[..., c : c + 1], w[:, :, c : c + 1, m : m + 1])
        for c in range(3)
        for m in range(2)
    ]
    expected = np.concatenate(parts, -1)
    steps = [1, 1, 1, 1]
    np.testing.assert_allclose(
        run(hr.nn.depthwise_conv2d(x, w, steps, "VALID")), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        run(hr.nn.depthwise_conv2d_native(x, w, steps, "VALID")), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        run(hr.nn.separable_conv2d(x, w, mix, steps, "VALID")), expected @ mix[0, 0], rtol=1e-11
    )


def test_depthwise_gradients_are_the_backprop_functions():
    x, w = hr.constant(draw(2, 5, 4, 3)), hr.constant(draw(2, 3, 3, 2))
    steps = [1, 2, 2, 1]
    y = hr.nn.depthwise_conv2d_native(x, w, steps, "SAME")
    g = hr.constant(draw(*y.shape.known))
    expected = run(hr.gradients(y, [x, w], [g]))
    to_x = hr.nn.depthwise_conv2d_native_backprop_input([2, 5, 4, 3], w, g, steps, "SAME")
    to_w = hr.nn.depthwise_conv2d_native_backprop_filter(x, [2, 3, 3, 2], g, steps, "SAME")
    for mine, theirs in zip(run([to_x, to_w]), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_transposes_are_gradients():
    cases = [
        (hr.nn.conv1d, hr.nn.conv1d_transpose, (2, 7, 3), (3, 3, 4), 2),
        (hr.nn.conv2d, hr.nn.conv2d_transpose, (2, 7, 6, 3), (3, 2, 3, 4), 2),
        (hr.nn.conv3d, hr.nn.conv3d_transpose, (2, 5, 4, 3, 3), (2, 2, 2, 3, 4), 2),
    ]
    for forward, back, shape, taps, stride in cases:
        x, w = hr.constant(draw(*shape)), hr.constant(draw(*taps))
        y = forward(x, w, stride, "SAME")
        g = hr.constant(draw(*y.shape.known))
        (expected,) = hr.gradients(y, [x], [g])
        found = back(g, w, list(shape), stride)
        assert found.shape.known == shape
        again = hr.nn.conv_transpose(g, w, list(shape), stride)
        values = run([found, expected, again])
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12)
        np.testing.assert_allclose(values[2], values[1], rtol=1e-12)


def test_atrous_and_its_transpose():
    x, w = hr.constant(draw(1, 7, 8, 2)), hr.constant(draw(3, 2, 2, 3))
    y = hr.nn.atrous_conv2d(x, w, 2, "SAME")
    same = hr.nn.conv2d(x, w, 1, "SAME", dilations=[1, 2, 2, 1])
    (expected,) = hr.gradients(y, [x])
    back = hr.nn.atrous_conv2d_transpose(hr.ones_like(y), w, [1, 7, 8, 2], rate=2, padding="SAME")
    values = run([y, same, back, expected])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)
    np.testing.assert_allclose(values[2], values[3], rtol=1e-12)


def test_shapes_that_are_known_in_a_step_only():
    x = hr.placeholder(hr.float64)
    w = hr.placeholder(hr.float64, [None, None, None, None])
    y = hr.nn.conv2d(x, w, 1, "VALID")
    d = hr.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID")
    grads = hr.gradients([y, d], [x, w])
    feeds = {x: draw(2, 5, 4, 3), w: draw(2, 3, 3, 2)}
    values = run([y, d, *grads], feeds)
    np.testing.assert_allclose(values[0], correlated(feeds[x], feeds[w]), rtol=1e-12)
    assert [v.shape for v in values[1:]] == [(2, 4, 2, 6), (2, 5, 4, 3), (2, 3, 3, 2)]
    with pytest.raises(ExecutionError, match="Reshape"):
        run(d, {x: draw(2, 5, 4, 2), w: draw(2, 3, 4, 1)})


def test_dilation_and_erosion():
    x, w = draw(1, 4, 5, 2), draw(2, 2, 2)
    y = run(hr.nn.dilation2d(x, w, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"))
    parts = [x[:, i : i + 3, j : j + 4] + w[i, j] for i in range(2) for j in range(2)]
    np.testing.assert_allclose(y, np.max(parts, 0))
    lower = run(hr.nn.erosion2d(x, w, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"))
    parts = [x[:, i : i + 3, j : j + 4] - w[1 - i, 1 - j] for i in range(2) for j in range(2)]
    np.testing.assert_allclose(lower, np.min(parts, 0))
    # At the border only what is there counts, however low it is.
    edge = run(hr.nn.dilation2d(x - 100, w, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"))
    assert edge.shape == x.shape
    assert edge.max() < -90
    whole = hr.nn.dilation2d(hr.constant([[[[1], [5]]]]), hr.constant([[[1], [2]]]), 1, 1, "SAME")
    assert run(whole).ravel().tolist() == [7, 6]


ERRORS = {
    "no filter": (lambda: hr.nn.conv2d(draw(1, 3, 3, 1)), AttributeValueError, "filter is missing"),
    "two filters": (
        lambda: hr.nn.conv2d(draw(1, 3, 3, 1), draw(1, 1, 1, 1), filters=draw(1, 1, 1, 1)),
        AttributeValueError,
        "under two names",
    ),
    "strides along channels": (
        lambda: hr.nn.conv2d(draw(1, 3, 3, 1), draw(1, 1, 1, 1), [1, 1, 1, 2], "SAME"),
        AttributeValueError,
        "must be 1 along batch and channels",
    ),
    "padding of channels": (
        lambda: hr.nn.conv2d(
            draw(1, 3, 3, 1), draw(1, 1, 1, 1), 1, [[0, 0], [0, 0], [0, 0], [1, 0]]
        ),
        AttributeValueError,
        "must be 0 along batch and channels",
    ),
    "negative padding": (
        lambda: hr.nn.conv2d(
            draw(1, 3, 3, 1), draw(1, 1, 1, 1), 1, [[0, 0], [-1, 0], [0, 0], [0, 0]]
        ),
        AttributeValueError,
        "integers >= 0",
    ),
    "layout": (
        lambda: hr.nn.conv3d(draw(1, 3, 3, 3, 1), draw(1, 1, 1, 1, 1), data_format="NHWC"),
        AttributeValueError,
        "'NDHWC' or 'NCDHW'",
    ),
    "rank": (lambda: hr.nn.convolution(draw(3, 3), draw(3, 3), "SAME"), ShapeError, "3, 4 or 5"),
    "rank of lines": (
        lambda: hr.nn.conv1d(draw(1, 3, 3, 1), draw(1, 1, 1), 1, "SAME"),
        ShapeError,
        "must have 3 dimensions",
    ),
    "depthwise channels": (
        lambda: hr.nn.depthwise_conv2d(draw(1, 3, 3, 2), draw(2, 2, 4, 1), [1] * 4, "SAME"),
        ShapeError,
        "has 2 channels, the filter .* takes 4",
    ),
    "pointwise filter": (
        lambda: hr.nn.separable_conv2d(
            draw(1, 3, 3, 2), draw(2, 2, 2, 1), draw(2, 1, 2, 1), [1] * 4, "SAME"
        ),
        ShapeError,
        r"must be \[1, 1, in, out\]",
    ),
    "transposed shape": (
        lambda: hr.nn.conv2d_transpose(draw(1, 3, 3, 2), draw(2, 2, 1, 2), [1, 9, 6, 1], 2),
        ShapeError,
        "out_backprop must have the shape",
    ),
    "no target": (
        lambda: hr.nn.conv2d_transpose(draw(1, 3, 3, 2), draw(2, 2, 1, 2)),
        AttributeValueError,
        "output_shape is missing",
    ),
    "kernel": (
        lambda: hr.nn.dilation2d(draw(1, 3, 3, 2), draw(2, 2, 3), 1, 1, "SAME"),
        ShapeError,
        "as many channels",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    build, error, match = ERRORS[name]
    with pytest.raises(error, match=match):
        build()
