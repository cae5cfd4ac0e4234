"""Samples of pooling; the oracles loop over windows, and know no tricks."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import NDArray, array, distinct, integers, uniform, whole
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.conv import attrs_of, every, images_of, laid_out, output, windows

_NUMBERS = ("uint8", "int32", "int64", "bfloat16", "float32", "float64")


def _maxima(x: NDArray, attrs: dict[str, Any]) -> tuple[NDArray, dict[Any, Any]]:
    """Return the maxima of windows, and where each was found: the first of equals."""
    images = images_of(x, attrs["data_format"])
    best = output(images, attrs["ksize"], images.shape[-1], attrs)
    best[...] = -np.inf
    found: dict[Any, Any] = {}
    for out, _, at in windows(images.shape[1:-1], attrs["ksize"], attrs):
        for n in range(images.shape[0]):
            for c in range(images.shape[-1]):
                value, place = images[(n, *at, c)], (n, *out, c)
                if value > best[place] or np.isnan(value):
                    best[place] = value
                    found[place] = (n, *at, c)
    return best, found


def _pool(value: NDArray, **attrs: Any) -> NDArray:
    return laid_out(_maxima(value, attrs)[0], attrs).astype(value.dtype)


def _pool_grad(value: NDArray, grad: NDArray, **attrs: Any) -> NDArray:
    gx = np.zeros_like(value)
    images, grads = images_of(gx, attrs["data_format"]), images_of(grad, attrs["data_format"])
    for out, at in _maxima(value, attrs)[1].items():
        images[at] += grads[out]
    return gx


def _pool_grad_grad(value: NDArray, grad: NDArray, **attrs: Any) -> NDArray:
    best, found = _maxima(value, attrs)
    grads = images_of(grad, attrs["data_format"])
    result = np.zeros_like(best)
    for out, at in found.items():
        result[out] = grads[at]
    return laid_out(result, attrs)


def _with_argmax(value: NDArray, **attrs: Any) -> tuple[NDArray, NDArray]:
    best, found = _maxima(value, attrs)
    places = np.zeros(best.shape, np.int64)
    images = images_of(value, attrs["data_format"])
    for out, at in found.items():
        kept = at if attrs["include_batch_in_index"] else (0, *at[1:])
        places[out] = np.ravel_multi_index(kept, images.shape)
    return laid_out(best, attrs).astype(value.dtype), laid_out(places, attrs)


def _means(value: NDArray, **attrs: Any) -> NDArray:
    images = images_of(value, attrs["data_format"])
    total = output(images, attrs["ksize"], images.shape[-1], attrs)
    counts = np.zeros(total.shape)
    for out, _, at in windows(images.shape[1:-1], attrs["ksize"], attrs):
        total[every(out)] += images[every(at)]
        counts[every(out)] += 1
    return laid_out(total / np.maximum(counts, 1), attrs)


def _means_grad(sizes: NDArray, grad: NDArray, **attrs: Any) -> NDArray:
    gx = np.zeros([int(s) for s in sizes])
    images, grads = images_of(gx, attrs["data_format"]), images_of(grad, attrs["data_format"])
    counts = np.zeros(grads.shape)
    found = list(windows(images.shape[1:-1], attrs["ksize"], attrs))
    for out, _, _ in found:
        counts[every(out)] += 1
    for out, _, at in found:
        images[every(at)] += grads[every(out)] / counts[every(out)]
    return gx


def _patches(images: NDArray, **attrs: Any) -> NDArray:
    ksize = attrs["ksize"]
    size = output(images, ksize, images.shape[-1], attrs)
    result = np.zeros((*size.shape[:-1], *ksize, images.shape[-1]), images.dtype)
    for out, tap, at in windows(images.shape[1:-1], ksize, attrs):
        result[every((*out, *tap))] = images[every(at)]
    return result.reshape((*size.shape[:-1], int(np.prod(ksize)) * images.shape[-1]))


def _patches_grad(sizes: NDArray, grad: NDArray, **attrs: Any) -> NDArray:
    gx = np.zeros([int(s) for s in sizes], grad.dtype)
    ksize = attrs["ksize"]
    parts = grad.reshape((*grad.shape[:-1], *ksize, gx.shape[-1]))
    for out, tap, at in windows(gx.shape[1:-1], ksize, attrs):
        gx[every(at)] += parts[every((*out, *tap))]
    return gx


_Case = tuple[tuple[int, ...], dict[str, Any]]

_POOLS: dict[str, _Case] = {
    "halves": ((2, 4, 6, 2), attrs_of(ksize=(2, 2), strides=(2, 2))),
    "overlapping": ((1, 5, 4, 2), attrs_of(ksize=(3, 3), strides=(1, 2))),
    "valid": ((1, 5, 5, 1), attrs_of(ksize=(2, 3), strides=(2, 2), padding="VALID")),
    "gaps": ((1, 5, 6, 1), attrs_of(ksize=(1, 2), strides=(2, 3), padding="VALID")),
    "channels_first": ((1, 2, 4, 5), attrs_of(ksize=(2, 2), strides=(2, 2), data_format="NCHW")),
    "no_images": ((0, 4, 4, 1), attrs_of(ksize=(2, 2), strides=(2, 2))),
    "larger_than_images": ((1, 3, 2, 1), attrs_of(ksize=(9, 5))),
    "explicit": ((1, 4, 5, 1), attrs_of(ksize=(3, 2), padding=((2, 1), (0, 1)), strides=(2, 2))),
    "dilated": ((1, 6, 5, 1), attrs_of(ksize=(2, 3), dilations=(3, 1), padding="VALID")),
    "line": ((2, 7, 2), attrs_of(ksize=(3,), strides=(2,), data_format="NWC")),
    "volume": (
        (1, 2, 3, 4, 5),
        attrs_of(ksize=(2, 3, 2), strides=(1, 2, 2), data_format="NCDHW"),
    ),
}


def _pool_samples(label: str, shape: tuple[int, ...], attrs: dict[str, Any]) -> list[Sample]:
    value, sizes = distinct(shape), array(np.array(shape), "int32")
    grad = uniform(_pool(np.zeros(shape), **attrs).shape)
    means: dict[str, Any] = {"attrs": attrs, "label": label}
    return [
        Sample("MaxPool", [value], attrs, _pool, label=label, dtypes=_NUMBERS),
        Sample("MaxPoolGrad", [value, grad], attrs, _pool_grad, label=label),
        Sample("MaxPoolGradGrad", [value, uniform(shape)], attrs, _pool_grad_grad, label=label),
        Sample("AvgPool", [uniform(shape)], oracle=_means, **means),
        Sample("AvgPoolGrad", [sizes, grad], oracle=_means_grad, **means),
    ]


_TIES = array(np.zeros((1, 2, 4, 1)))
_HALVES = attrs_of(ksize=(2, 2), strides=(2, 2))
_ZEROS = array(np.zeros((1, 2, 2, 1)), "float32")
TIES: list[Row] = [
    Sample("MaxPool", [_TIES], _HALVES, _pool, grad=False, label="ties", dtypes=_NUMBERS),
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
        dtypes=("float16", "float32", "float64"),
    ),
    Sample(
        "MaxPool",
        [array(np.array([1.0, np.nan, np.inf, -np.inf]).reshape((1, 2, 2, 1)))],
        attrs_of(ksize=(1, 2)),
        lambda value, **attrs: np.array([np.nan, np.nan, np.inf, -np.inf]).reshape((1, 2, 2, 1)),
        grad=False,
        label="nan",
        dtypes=("float16", "float32", "float64"),
    ),
    Sample(
        "MaxPool",
        [array(np.full((1, 3, 3, 1), np.iinfo(np.int32).min), "int32")],
        attrs_of(ksize=(2, 2)),
        _pool,
        grad=False,
        label="least",
    ),
]


def _argmax_attrs(**changes: Any) -> dict[str, Any]:
    return {**attrs_of(), "output_type": "int64", "include_batch_in_index": False, **changes}


ARGMAX: list[Row] = [
    Sample(
        "MaxPoolWithArgmax",
        [distinct((2, 5, 4, 2))],
        _argmax_attrs(ksize=(2, 3), strides=(2, 2)),
        lambda value, **attrs: _with_argmax(value, **attrs),
        dtypes=_NUMBERS,
        grad_outputs=(0,),
    ),
    Sample(
        "MaxPoolWithArgmax",
        [whole((2, 4, 4, 1), 0, 2)],
        _argmax_attrs(
            ksize=(3, 2),
            strides=(1, 2),
            padding="VALID",
            include_batch_in_index=True,
            output_type="int32",
        ),
        lambda value, **attrs: _with_argmax(value, **attrs),
        dtypes=("int32", "float32"),
        grad=False,
        label="batch",
    ),
    Reject(
        "MaxPoolWithArgmax",
        [_ZEROS],
        _argmax_attrs(ksize=(1, 1), output_type="float32"),
        DTypeError,
        "output_type must be int32 or int64",
    ),
]


def _patch_samples(label: str, shape: tuple[int, ...], attrs: dict[str, Any]) -> list[Sample]:
    patches = _patches(np.zeros(shape), **attrs).shape
    sizes = array(np.array(shape), "int64")
    given: dict[str, Any] = {"attrs": attrs, "label": label, "dtypes": (*_NUMBERS, "complex64")}
    return [
        Sample("ExtractPatches", [uniform(shape, -3, 3)], oracle=_patches, **given),
        Sample(
            "ExtractPatchesGrad", [sizes, uniform(patches, -3, 3)], oracle=_patches_grad, **given
        ),
    ]


_PATCHES: dict[str, _Case] = {
    "same": ((2, 4, 3, 2), attrs_of(ksize=(3, 2), strides=(2, 1))),
    "dilated": ((1, 5, 6, 1), attrs_of(ksize=(2, 2), dilations=(2, 3), padding="VALID")),
    "volume": (
        (1, 3, 4, 2, 1),
        attrs_of(ksize=(2, 1, 2), strides=(1, 3, 1), data_format="NDHWC"),
    ),
    "no_images": ((0, 4, 4, 1), attrs_of(ksize=(2, 2), padding="VALID")),
}

_IMAGE = integers((1, 3, 3, 2), 0, 9, "float32")
REJECTS: list[Row] = [
    Reject(
        "MaxPool",
        [_IMAGE],
        attrs_of(ksize=(1, 5), padding="VALID"),
        ShapeError,
        "does not fit into 3",
        label="large_window",
    ),
    Reject(
        "MaxPool",
        [_IMAGE],
        attrs_of(ksize=(2, 2), padding=((2, 0), (0, 0))),
        AttributeValueError,
        "must be smaller than a window",
        label="padding",
    ),
    Reject(
        "MaxPool",
        [_IMAGE],
        attrs_of(ksize=(2, 0)),
        AttributeValueError,
        "ksize must be 2 integers >= 1",
        label="ksize",
    ),
    Reject(
        "MaxPool",
        [_IMAGE],
        attrs_of(ksize=(1 << 40, 1 << 40)),
        ExecutionError,
        "many times their size",
        when="run",
        label="hostile",
    ),
    Reject(
        "MaxPoolGrad",
        [_IMAGE, _IMAGE],
        attrs_of(ksize=(2, 2), strides=(2, 2)),
        ShapeError,
        "grad must have the shape",
    ),
    Reject(
        "MaxPoolGradGrad",
        [_IMAGE, _ZEROS],
        attrs_of(ksize=(2, 2)),
        ShapeError,
        "grad must have the shape",
    ),
    Reject(
        "AvgPool",
        [_IMAGE],
        attrs_of(ksize=(2, 2), data_format="HWC"),
        AttributeValueError,
        "one of",
    ),
    Reject(
        "AvgPool",
        [integers((2, 2, 2, 2), 0, 9)],
        attrs_of(ksize=(2, 2)),
        DTypeError,
        "must be floating",
        label="dtype",
    ),
    Reject(
        "AvgPoolGrad",
        [array([1, 3, 3], "int32"), _IMAGE],
        attrs_of(ksize=(1, 1)),
        ShapeError,
        "input must have 4 dimensions",
    ),
    Reject(
        "ExtractPatches",
        [_IMAGE],
        attrs_of(ksize=(2, 2), data_format="NCHW"),
        AttributeValueError,
        "channels-last",
    ),
    Reject(
        "ExtractPatchesGrad",
        [array([1, 3, 3, 2], "int32"), _IMAGE],
        attrs_of(ksize=(2, 2)),
        ShapeError,
        "of the patches",
    ),
]

SAMPLES: list[Row] = [
    *(row for label, case in _POOLS.items() for row in _pool_samples(label, *case)),
    *(row for label, case in _PATCHES.items() for row in _patch_samples(label, *case)),
    *TIES,
    *ARGMAX,
    *REJECTS,
]
