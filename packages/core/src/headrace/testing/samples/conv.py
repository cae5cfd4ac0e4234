"""Samples of convolutions and pooling; the oracles loop over windows, and know no tricks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace.testing.inputs import NDArray, array, distinct, integers, uniform
from headrace.testing.sample import Reject, Row, Sample


def _images(x: NDArray, data_format: str) -> NDArray:
    """Return images with channels last, as a view."""
    return np.moveaxis(x, 1, -1) if data_format == "NCHW" else x


def _padding(size: int, reach: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the output size and the padding in front, along one axis."""
    if padding == "VALID":
        return (size - reach) // stride + 1, 0
    out = -(-size // stride)
    return out, max(0, (out - 1) * stride + reach - size) // 2


def _windows(
    image: tuple[int, ...], taps: tuple[int, int], attrs: dict[str, Any]
) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
    """Yield (output position, tap, input position) of every tap that lies inside the image."""
    strides, padding = attrs["strides"], attrs["padding"]
    spread = attrs.get("dilations", (1, 1))
    sizes = []
    for size, tap, stride, step in zip(image, taps, strides, spread, strict=True):
        sizes.append(_padding(size, (tap - 1) * step + 1, stride, padding))
    (rows, top), (columns, left) = sizes
    for row, column, i, j in itertools.product(*map(range, (rows, columns, *taps))):
        y = row * strides[0] + i * spread[0] - top
        x = column * strides[1] + j * spread[1] - left
        if 0 <= y < image[0] and 0 <= x < image[1]:
            yield (row, column), (i, j), (y, x)


def _output(image: NDArray, taps: tuple[int, int], channels: int, attrs: dict[str, Any]) -> NDArray:
    spread = attrs.get("dilations", (1, 1))
    sizes = [
        _padding(size, (tap - 1) * step + 1, stride, attrs["padding"])[0]
        for size, tap, stride, step in zip(
            image.shape[1:3], taps, attrs["strides"], spread, strict=True
        )
    ]
    return np.zeros((image.shape[0], *sizes, channels))


def _laid_out(x: NDArray, attrs: dict[str, Any]) -> NDArray:
    return np.moveaxis(x, -1, 1) if attrs["data_format"] == "NCHW" else x


def _conv(x: NDArray, taps: NDArray, **attrs: Any) -> NDArray:
    images = _images(x, attrs["data_format"])
    result = _output(images, taps.shape[:2], taps.shape[3], attrs)
    for out, tap, at in _windows(images.shape[1:3], taps.shape[:2], attrs):
        result[:, out[0], out[1]] += images[:, at[0], at[1]] @ taps[tap]
    return _laid_out(result, attrs)


def _conv_input(sizes: NDArray, taps: NDArray, gy: NDArray, **attrs: Any) -> NDArray:
    gx = np.zeros([int(s) for s in sizes])
    images, grads = _images(gx, attrs["data_format"]), _images(gy, attrs["data_format"])
    for out, tap, at in _windows(images.shape[1:3], taps.shape[:2], attrs):
        images[:, at[0], at[1]] += grads[:, out[0], out[1]] @ taps[tap].T
    return gx


def _conv_filter(x: NDArray, sizes: NDArray, gy: NDArray, **attrs: Any) -> NDArray:
    taps = np.zeros([int(s) for s in sizes])
    images, grads = _images(x, attrs["data_format"]), _images(gy, attrs["data_format"])
    for out, tap, at in _windows(images.shape[1:3], taps.shape[:2], attrs):
        taps[tap] += images[:, at[0], at[1]].T @ grads[:, out[0], out[1]]
    return taps


def _maxima(x: NDArray, attrs: dict[str, Any]) -> tuple[NDArray, dict[Any, Any]]:
    """Return the maxima of windows, and where each was found: the first of equals."""
    images = _images(x, attrs["data_format"])
    best = _output(images, attrs["ksize"], images.shape[-1], attrs)
    best[...] = -np.inf
    found: dict[Any, Any] = {}
    for out, _, at in _windows(images.shape[1:3], attrs["ksize"], attrs):
        for n, c in np.ndindex(images.shape[0], images.shape[3]):
            value = images[n, at[0], at[1], c]
            if value > best[n, out[0], out[1], c] or np.isnan(value):
                best[n, out[0], out[1], c] = value
                found[n, out[0], out[1], c] = (n, at[0], at[1], c)
    return best, found


def _pool(value: NDArray, **attrs: Any) -> NDArray:
    return _laid_out(_maxima(value, attrs)[0], attrs)


def _pool_grad(value: NDArray, grad: NDArray, **attrs: Any) -> NDArray:
    gx = np.zeros_like(value)
    images, grads = _images(gx, attrs["data_format"]), _images(grad, attrs["data_format"])
    for out, at in _maxima(value, attrs)[1].items():
        images[at] += grads[out]
    return gx


def _pool_grad_grad(value: NDArray, grad: NDArray, **attrs: Any) -> NDArray:
    best, found = _maxima(value, attrs)
    grads = _images(grad, attrs["data_format"])
    result = np.zeros_like(best)
    for out, at in found.items():
        result[out] = grads[at]
    return _laid_out(result, attrs)


def _attrs(**changes: Any) -> dict[str, Any]:
    return {"strides": (1, 1), "padding": "SAME", "data_format": "NHWC", **changes}


_CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "same": ((2, 5, 4, 3), (3, 3, 3, 2), _attrs()),
    "valid": ((1, 5, 4, 2), (3, 2, 2, 3), _attrs(padding="VALID")),
    "even_filter": ((1, 4, 5, 1), (2, 4, 1, 2), _attrs()),
    "strided": ((2, 6, 5, 2), (3, 3, 2, 2), _attrs(strides=(2, 3))),
    "strided_valid": ((1, 7, 6, 1), (2, 3, 1, 1), _attrs(strides=(3, 2), padding="VALID")),
    "dilated": ((1, 7, 6, 2), (3, 2, 2, 1), _attrs(dilations=(2, 3))),
    "dilated_valid": ((1, 7, 6, 1), (3, 2, 1, 2), _attrs(dilations=(2, 2), padding="VALID")),
    "pointwise": ((2, 3, 3, 4), (1, 1, 4, 2), _attrs()),
    "stride_over_filter": ((1, 7, 7, 1), (1, 1, 1, 2), _attrs(strides=(3, 2))),
    "channels_first": ((2, 2, 5, 4), (3, 3, 2, 3), _attrs(data_format="NCHW")),
    "channels_first_strided": (
        (1, 3, 6, 5),
        (2, 3, 3, 2),
        _attrs(data_format="NCHW", strides=(2, 2), padding="VALID"),
    ),
    "no_images": ((0, 4, 4, 2), (3, 3, 2, 2), _attrs()),
}


def _conv_samples(
    label: str, shape: tuple[int, ...], taps: tuple[int, ...], given: dict[str, Any]
) -> list[Sample]:
    attrs = {"dilations": (1, 1), **given}
    x, w = uniform(shape), uniform(taps)
    out = _conv(np.zeros(shape), np.zeros(taps), **attrs).shape
    gy = uniform(out)
    # The sums are long for float16: kernels may round each product or only the total.
    common: dict[str, Any] = {"attrs": attrs, "label": label}
    sizes, tap_sizes = array(np.array(shape), "int32"), array(np.array(taps), "int32")
    return [
        Sample("Conv2D", [x, w], oracle=_conv, **common),
        Sample("Conv2DBackpropInput", [sizes, w, gy], oracle=_conv_input, **common),
        Sample("Conv2DBackpropFilter", [x, tap_sizes, gy], oracle=_conv_filter, **common),
    ]


_POOLS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "halves": ((2, 4, 6, 2), _attrs(ksize=(2, 2), strides=(2, 2))),
    "overlapping": ((1, 5, 4, 2), _attrs(ksize=(3, 3), strides=(1, 2))),
    "valid": ((1, 5, 5, 1), _attrs(ksize=(2, 3), strides=(2, 2), padding="VALID")),
    "gaps": ((1, 5, 6, 1), _attrs(ksize=(1, 2), strides=(2, 3), padding="VALID")),
    "channels_first": ((1, 2, 4, 5), _attrs(ksize=(2, 2), strides=(2, 2), data_format="NCHW")),
    "no_images": ((0, 4, 4, 1), _attrs(ksize=(2, 2), strides=(2, 2))),
}


def _pool_samples(label: str, shape: tuple[int, ...], attrs: dict[str, Any]) -> list[Sample]:
    value = distinct(shape)
    out = _pool(np.zeros(shape), **attrs).shape
    return [
        Sample("MaxPool", [value], attrs, _pool, label=label),
        Sample("MaxPoolGrad", [value, uniform(out)], attrs, _pool_grad, label=label),
        Sample("MaxPoolGradGrad", [value, uniform(shape)], attrs, _pool_grad_grad, label=label),
    ]


_TIES = array(np.zeros((1, 2, 4, 1)))
_HALVES = _attrs(ksize=(2, 2), strides=(2, 2))
TIES = [
    Sample("MaxPool", [_TIES], _HALVES, _pool, grad=False, label="ties"),
    Sample(
        "MaxPoolGrad",
        [_TIES, array(np.ones((1, 1, 2, 1)))],
        _HALVES,
        _pool_grad,
        grad=False,
        label="ties",
    ),
    Sample(
        "MaxPool",
        [array(np.full((1, 2, 2, 1), -np.inf))],
        _HALVES,
        _pool,
        grad=False,
        label="minus_infinity",
    ),
]

_IMAGE = integers((1, 3, 3, 2), 0, 9, "float32")
_PLAIN = {"dilations": (1, 1), **_attrs()}
REJECTS: list[Row] = [
    Reject(
        "Conv2D",
        [_IMAGE, integers((2, 2, 3, 1), 0, 9, "float32")],
        _PLAIN,
        ShapeError,
        "has 2 channels .* takes 3",
        label="channels",
    ),
    Reject(
        "Conv2D",
        [integers((3, 3, 2), 0, 9, "float32"), integers((2, 2, 2, 1), 0, 9, "float32")],
        _PLAIN,
        ShapeError,
        "input must have 4 dimensions",
        label="rank",
    ),
    Reject(
        "Conv2D",
        [_IMAGE, integers((4, 1, 2, 1), 0, 9, "float32")],
        {**_PLAIN, "padding": "VALID"},
        ShapeError,
        "does not fit into 3",
        label="large_filter",
    ),
    Reject(
        "MaxPool",
        [_IMAGE],
        _attrs(ksize=(1, 5), padding="VALID"),
        ShapeError,
        "does not fit into 3",
        label="large_window",
    ),
]

SAMPLES: list[Row] = [
    *(row for label, case in _CONVOLUTIONS.items() for row in _conv_samples(label, *case)),
    *(row for label, case in _POOLS.items() for row in _pool_samples(label, *case)),
    *TIES,
    *REJECTS,
]
