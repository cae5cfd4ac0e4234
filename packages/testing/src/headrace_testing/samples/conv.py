"""Samples of convolutions; the oracles loop over windows, and know no tricks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ExecutionError, ShapeError
from headrace_testing.inputs import NDArray, array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample

Place = tuple[int, ...]


def images_of(x: NDArray, data_format: str) -> NDArray:
    """Return images with channels last, as a view."""
    return np.moveaxis(x, 1, -1) if data_format.startswith("NC") else x


def laid_out(x: NDArray, attrs: dict[str, Any]) -> NDArray:
    """Return images with channels last in the layout of attributes, as a view."""
    return np.moveaxis(x, -1, 1) if attrs["data_format"].startswith("NC") else x


def _padding(size: int, reach: int, stride: int, padding: Any) -> tuple[int, int]:
    """Return the output size and the padding in front, along one axis."""
    if padding == "SAME":
        out = -(-size // stride)
        return out, max(0, (out - 1) * stride + reach - size) // 2
    before, after = (0, 0) if padding == "VALID" else padding
    return (before + size + after - reach) // stride + 1, before


def _along(image: Place, taps: Place, attrs: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the output size and the padding in front, along each axis."""
    padding, spread = attrs["padding"], attrs.get("dilations") or (1,) * len(image)
    rules = [padding] * len(image) if isinstance(padding, str) else padding
    return [
        _padding(size, (tap - 1) * step + 1, stride, rule)
        for size, tap, stride, step, rule in zip(
            image, taps, attrs["strides"], spread, rules, strict=True
        )
    ]


def windows(
    image: Place, taps: Place, attrs: dict[str, Any]
) -> Iterator[tuple[Place, Place, Place]]:
    """Yield (output position, tap, input position) of every tap that lies inside the image."""
    strides, spread = attrs["strides"], attrs.get("dilations") or (1,) * len(image)
    sizes = _along(image, taps, attrs)
    for out in itertools.product(*(range(size) for size, _ in sizes)):
        for tap in itertools.product(*map(range, taps)):
            at = tuple(
                o * stride + t * step - before
                for o, t, stride, step, (_, before) in zip(
                    out, tap, strides, spread, sizes, strict=True
                )
            )
            if all(0 <= p < size for p, size in zip(at, image, strict=True)):
                yield out, tap, at


def output(image: NDArray, taps: Place, channels: int, attrs: dict[str, Any]) -> NDArray:
    """Return zeros of the shape of the output, channels last."""
    sizes = [size for size, _ in _along(image.shape[1:-1], taps, attrs)]
    return np.zeros((image.shape[0], *sizes, channels))


def every(place: Place) -> tuple[Any, ...]:
    """Return the index of a place in all images, with all channels."""
    return (slice(None), *place)


def _split(x: NDArray, taps: Place) -> list[tuple[slice, slice]]:
    """Return the channels of input and output in each group."""
    groups = x.shape[-1] // taps[-2]
    gives = taps[-1] // groups
    return [
        (slice(g * taps[-2], (g + 1) * taps[-2]), slice(g * gives, (g + 1) * gives))
        for g in range(groups)
    ]


def _conv(x: NDArray, taps: NDArray, **attrs: Any) -> NDArray:
    images = images_of(x, attrs["data_format"])
    result = output(images, taps.shape[:-2], taps.shape[-1], attrs)
    for out, tap, at in windows(images.shape[1:-1], taps.shape[:-2], attrs):
        for mine, theirs in _split(images, taps.shape):
            result[every(out)][:, theirs] += images[every(at)][:, mine] @ taps[tap][:, theirs]
    return laid_out(result, attrs)


def _conv_input(sizes: NDArray, taps: NDArray, gy: NDArray, **attrs: Any) -> NDArray:
    gx = np.zeros([int(s) for s in sizes])
    images, grads = images_of(gx, attrs["data_format"]), images_of(gy, attrs["data_format"])
    for out, tap, at in windows(images.shape[1:-1], taps.shape[:-2], attrs):
        for mine, theirs in _split(images, taps.shape):
            images[every(at)][:, mine] += grads[every(out)][:, theirs] @ taps[tap][:, theirs].T
    return gx


def _conv_filter(x: NDArray, sizes: NDArray, gy: NDArray, **attrs: Any) -> NDArray:
    taps = np.zeros([int(s) for s in sizes])
    images, grads = images_of(x, attrs["data_format"]), images_of(gy, attrs["data_format"])
    for out, tap, at in windows(images.shape[1:-1], taps.shape[:-2], attrs):
        for mine, theirs in _split(images, taps.shape):
            taps[tap][:, theirs] += images[every(at)][:, mine].T @ grads[every(out)][:, theirs]
    return taps


def attrs_of(**changes: Any) -> dict[str, Any]:
    """Return the attributes of an op on windows of images."""
    return {"strides": (1, 1), "padding": "SAME", "data_format": "NHWC", **changes}


def _volume(**changes: Any) -> dict[str, Any]:
    return {"strides": (1, 1, 1), "padding": "SAME", "data_format": "NDHWC", **changes}


_Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

_CONVOLUTIONS: dict[str, _Case] = {
    "same": ((2, 5, 4, 3), (3, 3, 3, 2), attrs_of()),
    "valid": ((1, 5, 4, 2), (3, 2, 2, 3), attrs_of(padding="VALID")),
    "explicit": ((1, 4, 5, 2), (3, 2, 2, 2), attrs_of(padding=((2, 0), (1, 3)), strides=(2, 1))),
    "even_filter": ((1, 4, 5, 1), (2, 4, 1, 2), attrs_of()),
    "strided": ((2, 6, 5, 2), (3, 3, 2, 2), attrs_of(strides=(2, 3))),
    "strided_valid": ((1, 7, 6, 1), (2, 3, 1, 1), attrs_of(strides=(3, 2), padding="VALID")),
    "dilated": ((1, 7, 6, 2), (3, 2, 2, 1), attrs_of(dilations=(2, 3))),
    "dilated_valid": ((1, 7, 6, 1), (3, 2, 1, 2), attrs_of(dilations=(2, 2), padding="VALID")),
    "pointwise": ((2, 3, 3, 4), (1, 1, 4, 2), attrs_of()),
    "stride_over_filter": ((1, 7, 7, 1), (1, 1, 1, 2), attrs_of(strides=(3, 2))),
    "channels_first": ((2, 2, 5, 4), (3, 3, 2, 3), attrs_of(data_format="NCHW")),
    "channels_first_strided": (
        (1, 3, 6, 5),
        (2, 3, 3, 2),
        attrs_of(data_format="NCHW", strides=(2, 2), padding="VALID"),
    ),
    "no_images": ((0, 4, 4, 2), (3, 3, 2, 2), attrs_of()),
    "groups": ((2, 4, 3, 4), (2, 2, 2, 6), attrs_of(strides=(2, 1))),
    "groups_channels_first": ((1, 4, 3, 4), (2, 3, 2, 4), attrs_of(data_format="NCHW")),
    "depthwise": ((2, 4, 5, 3), (3, 2, 1, 6), attrs_of(dilations=(1, 2))),
}

_VOLUMES: dict[str, _Case] = {
    "same": ((1, 3, 4, 3, 2), (2, 3, 2, 2, 2), _volume()),
    "strided": ((2, 4, 3, 5, 1), (2, 2, 3, 1, 2), _volume(strides=(2, 1, 2), padding="VALID")),
    "dilated_channels_first": (
        (1, 2, 4, 3, 5),
        (2, 1, 2, 2, 1),
        _volume(data_format="NCDHW", dilations=(2, 1, 2)),
    ),
    "explicit_groups": (
        (1, 2, 3, 2, 4),
        (2, 2, 1, 2, 2),
        _volume(padding=((1, 0), (0, 1), (0, 0))),
    ),
}


def _conv_samples(op: str, label: str, case: _Case) -> list[Sample]:
    shape, taps, given = case
    attrs = {"dilations": (1,) * (len(shape) - 2), **given}
    x, w = uniform(shape), uniform(taps)
    out = _conv(np.zeros(shape), np.zeros(taps), **attrs).shape
    gy = uniform(out)
    # The sums are long for float16: kernels may round each product or only the total.
    common: dict[str, Any] = {"attrs": attrs, "label": label}
    sizes, tap_sizes = array(np.array(shape), "int32"), array(np.array(taps), "int32")
    return [
        Sample(op, [x, w], oracle=_conv, **common),
        Sample(f"{op}BackpropInput", [sizes, w, gy], oracle=_conv_input, **common),
        Sample(f"{op}BackpropFilter", [x, tap_sizes, gy], oracle=_conv_filter, **common),
    ]


_IMAGE = integers((1, 3, 3, 2), 0, 9, "float32")
_PLAIN = {"dilations": (1, 1), **attrs_of()}
_FILTER = integers((2, 2, 2, 1), 0, 9, "float32")


def _reject(label: str, match: str, *, error: Any = ShapeError, **given: Any) -> Reject:
    inputs = [given.pop("input", _IMAGE), given.pop("filter", _FILTER)]
    return Reject("Conv2D", inputs, {**_PLAIN, **given}, error, match, label=label)


REJECTS: list[Row] = [
    _reject(
        "channels", "has 2 channels .* takes 3", filter=integers((2, 2, 3, 1), 0, 9, "float32")
    ),
    _reject(
        "groups",
        "gives 3 channels, which must be a multiple of the 2 groups",
        filter=integers((2, 2, 1, 3), 0, 9, "float32"),
    ),
    _reject("rank", "input must have 4 dim", input=integers((3, 3, 2), 0, 9, "float32")),
    _reject("filter_rank", "filter must have 4 dim", filter=integers((3, 3), 0, 9, "float32")),
    _reject(
        "large_filter",
        "does not fit into 3",
        filter=integers((4, 1, 2, 1), 0, 9, "float32"),
        padding="VALID",
    ),
    _reject(
        "strides", "strides must be 2 integers >= 1", error=AttributeValueError, strides=(0, 1)
    ),
    _reject("layout", "data_format must be", error=AttributeValueError, data_format="NDHWC"),
    _reject("padding", "padding must be", error=AttributeValueError, padding="FULL"),
    Reject(
        "Conv2D",
        [_IMAGE, _FILTER],
        {**_PLAIN, "dilations": (1 << 40, 1 << 40)},
        ExecutionError,
        "many times their size",
        when="run",
        label="dilations",
    ),
    Reject(
        "Conv2DBackpropInput",
        [array([1, 3, 3], "int32"), _FILTER, _IMAGE],
        _PLAIN,
        ShapeError,
        "input_sizes must have 4 elements",
        label="sizes",
    ),
    Reject(
        "Conv2DBackpropInput",
        [array([1, 3, -1, 2], "int32"), _FILTER, _IMAGE],
        _PLAIN,
        ShapeError,
        "sizes >= 0",
        label="negative",
    ),
    Reject(
        "Conv2DBackpropInput",
        [array([1, 5, 5, 2], "int32"), _FILTER, _IMAGE],
        _PLAIN,
        ShapeError,
        "out_backprop must have the shape",
        label="gradient",
    ),
    Reject(
        "Conv2DBackpropInput",
        [array([1, 1 << 40, 1, 1], "int64"), *[integers((1, 1, 1, 1), 0, 9, "float32")] * 2],
        {**_PLAIN, "strides": (1 << 40, 1)},
        ExecutionError,
        "too large",
        when="run",
        label="stretch",
    ),
    Reject(
        "Conv2DBackpropFilter",
        [_IMAGE, array([2, 2, 2, 1], "int32"), integers((1, 2, 3, 1), 0, 9, "float32")],
        _PLAIN,
        ShapeError,
        "out_backprop must have the shape",
        label="gradient",
    ),
]

SAMPLES: list[Row] = [
    *(row for label, case in _CONVOLUTIONS.items() for row in _conv_samples("Conv2D", label, case)),
    *(row for label, case in _VOLUMES.items() for row in _conv_samples("Conv3D", label, case)),
    *REJECTS,
]
