"""Depthwise and separable convolutions, and the morphological dilation of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, reshape, shape
from headrace.ops.constant import ones_like, shape_of, zeros_like
from headrace.ops.conv import conv2d_op, conv2d_to_filter, conv2d_to_input
from headrace.ops.convolution import conv2d, given
from headrace.ops.elementwise import equal, greater, negative, select
from headrace.ops.extremes import argmax
from headrace.ops.pool import extract_patches_op
from headrace.ops.reduce import reduce_sum
from headrace.ops.windows import Padding, channel_axis, checked_padding, per_axis, spatial_axes

_Geometry = tuple[tuple[int, ...], Padding, str, tuple[int, ...]]


def _geometry(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> _Geometry:
    layout = "NHWC" if data_format is None else data_format
    spatial_axes(layout)
    return (
        per_axis(strides, layout, "strides"),
        checked_padding(padding, layout),
        layout,
        per_axis(1 if dilations is None else dilations, layout, "dilations"),
    )


def _flat_filter(filter: Tensor, channels: Any) -> Tensor:
    """Return a depthwise filter [fh, fw, c, m] as one of groups of one channel, [fh, fw, 1, c m].

    Args:
        filter: The filter.
        channels: Of the images: a number, or a tensor where that is not known.
    """
    if filter.shape.rank not in (None, 4):
        raise ShapeError(
            f"a depthwise filter must have 4 dimensions, got shape {filter.spec.shape}"
        )
    takes = filter.spec.shape[2]
    if isinstance(channels, int) and takes is not None and takes != channels:
        raise ShapeError(
            f"the input has {told(channels)} channels, the filter {filter.spec.shape} "
            f"takes {takes}; a "
            "depthwise filter is [height, width, in, multiplier]"
        )
    if filter.shape.is_fully_defined() and isinstance(channels, int):
        height, width, _, multiplier = filter.shape.known
        return reshape(filter, [height, width, 1, channels * multiplier])
    sizes = shape(filter)
    return reshape(filter, [sizes[0], sizes[1], 1, channels * sizes[3]])


def _channels(images: Tensor, layout: str) -> Any:
    if images.shape.rank not in (None, 4):
        raise ShapeError(f"the input must have 4 dimensions, got shape {images.spec.shape}")
    axis = channel_axis(layout)
    known = images.spec.shape[axis]
    return shape(images)[axis] if known is None else known


@names_result
def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Convolve each channel of images with filters of its own.

    Args:
        input: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        filter: [fh, fw, c, multiplier], the dtype of ``input``.
        strides: One number, two, or four in the order of ``data_format``.
        padding: "SAME", "VALID", or four pairs of numbers.
        data_format: "NHWC" or "NCHW".
        dilations: As ``strides``; distances between filter elements.
        name: The name of the operations.

    Returns:
        [n, oh, ow, c * multiplier], the results of one channel beside one another.

    Raises:
        ShapeError: if ranks or channels do not fit, or the filter is larger than a VALID image.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    steps, mode, layout, spread = _geometry(strides, padding, data_format, dilations)
    with name_scope(name, "depthwise"):
        images = convert_to_tensor(input)
        filter_ = convert_to_tensor(filter, preferred_dtype=images.dtype)
        flat = _flat_filter(filter_, _channels(images, layout))
        return conv2d_op(images, flat, steps, mode, layout, spread)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve each channel of images with filters of its own.

    Args:
        input: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        filter: [fh, fw, c, multiplier], the dtype of ``input``.
        strides: One number, two, or four in the order of ``data_format``.
        padding: "SAME", "VALID", or four pairs of numbers.
        rate: Distances between filter elements: one number, or two.
        name: The name of the operations.
        data_format: "NHWC" or "NCHW"; "NHWC" if None.
        dilations: The same as ``rate``.

    Returns:
        [n, oh, ow, c * multiplier], the results of one channel beside one another.

    Raises:
        ShapeError: if ranks or channels do not fit, or the filter is larger than a VALID image.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    spread = rate if rate is not None else dilations
    return depthwise_conv2d_native(
        input, filter, strides, padding, data_format, spread, name or "depthwise"
    )


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Return the gradient of ``depthwise_conv2d_native`` with respect to its input.

    Args:
        input_sizes: [4], the shape of the input.
        filter: [fh, fw, c, multiplier], floating.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.
        name: The name of the operations.

    Returns:
        ``input_sizes``, the dtype of ``filter``.

    Raises:
        ShapeError: if shapes do not fit.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    steps, mode, layout, spread = _geometry(strides, padding, data_format, dilations)
    with name_scope(name, "depthwise_backprop_input"):
        filter_ = convert_to_tensor(filter)
        sizes = convert_to_tensor(input_sizes)
        value = sizes.spec.value
        axis = channel_axis(layout)
        channels = int(value[axis]) if value is not None and value.shape == (4,) else sizes[axis]
        flat = _flat_filter(filter_, channels)
        return conv2d_to_input(sizes, flat, out_backprop, steps, mode, layout, spread)


def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Return the gradient of ``depthwise_conv2d_native`` with respect to its filter.

    Args:
        input: The images, floating.
        filter_sizes: [4], the shape of the filter.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.
        name: The name of the operations.

    Returns:
        ``filter_sizes``, the dtype of ``input``.

    Raises:
        ShapeError: if shapes do not fit.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    steps, mode, layout, spread = _geometry(strides, padding, data_format, dilations)
    with name_scope(name, "depthwise_backprop_filter"):
        images = convert_to_tensor(input)
        sizes = convert_to_tensor(filter_sizes)
        value = sizes.spec.value
        flat: Any = [sizes[0], sizes[1], 1, sizes[2] * sizes[3]]
        if value is not None and value.shape == (4,):
            height, width, channels, multiplier = value.tolist()
            flat = [height, width, 1, channels * multiplier]
            given_channels = _channels(images, layout)
            if isinstance(given_channels, int) and given_channels != channels:
                raise ShapeError(
                    f"the input has {given_channels} channels, filter_sizes are {value.tolist()}"
                )
        found = conv2d_to_filter(images, flat, out_backprop, steps, mode, layout, spread)
        return reshape(found, sizes)


@names_result
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve each channel on its own, then mix the channels of each pixel.

    Args:
        input: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        depthwise_filter: [fh, fw, c, multiplier], the dtype of ``input``.
        pointwise_filter: [1, 1, c * multiplier, out], the dtype of ``input``.
        strides: Of the first step: one number, two, or four in the order of ``data_format``.
        padding: Of the first step: "SAME", "VALID", or four pairs of numbers.
        rate: Distances between the elements of the first filter: one number, or two.
        name: The name of the operations.
        data_format: "NHWC" or "NCHW"; "NHWC" if None.
        dilations: The same as ``rate``.

    Returns:
        [n, oh, ow, out], the dtype of ``input``.

    Raises:
        ShapeError: if ranks or channels do not fit, or the filter is larger than a VALID image.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    with name_scope(name, "separable_conv2d"):
        images = convert_to_tensor(input)
        mixing = convert_to_tensor(pointwise_filter, preferred_dtype=images.dtype)
        dims = mixing.spec.shape.dims
        if dims is not None and (len(dims) != 4 or any(d not in (None, 1) for d in dims[:2])):
            raise ShapeError(f"pointwise_filter must be [1, 1, in, out], got {mixing.spec.shape}")
        filtered = depthwise_conv2d(
            images, depthwise_filter, strides, padding, rate, None, data_format, dilations
        )
        layout = "NHWC" if data_format is None else data_format
        known, takes = filtered.spec.shape[channel_axis(layout)], mixing.spec.shape[2]
        if known is not None and takes is not None and known != takes:
            raise ShapeError(
                f"pointwise_filter {mixing.spec.shape} takes {takes} channels, the depthwise "
                f"convolution gives {known}"
            )
        return conv2d(filtered, mixing, 1, "VALID", data_format=layout)


@names_result
def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Take the maximum over each window of images of pixel plus filter element.

    This is the dilation of mathematical morphology, for each channel on its own.

    Args:
        input: [n, h, w, c], a real number.
        filter: [fh, fw, c], the dtype of ``input``.
        strides: [1, down, across, 1], one number, or two.
        rates: As ``strides``; distances between filter elements.
        padding: "SAME" (windows are cut off at the border) or "VALID".
        name: The name of the operations.
        filters: The same as ``filter``.
        dilations: The same as ``rates``.

    Returns:
        [n, oh, ow, c], the dtype of ``input``.

    Raises:
        ShapeError: if ranks or channels do not fit, or the filter's size is not known.
        AttributeValueError: for strides, rates or padding that do not exist.
    """
    element = given("nn.dilation2d", "filter", filter, filters)
    spread = given("nn.dilation2d", "rates", rates, dilations)
    steps, mode, layout, filter_ = _geometry(strides, padding, "NHWC", spread)
    with name_scope(name, "dilation2d"):
        images = convert_to_tensor(input)
        offsets = convert_to_tensor(element, preferred_dtype=images.dtype)
        dims = offsets.spec.shape.dims
        if dims is None or len(dims) != 3 or None in dims[:2]:
            raise ShapeError(
                f"dilation2d: filter must be [height, width, channels] of a known size, got "
                f"{offsets.spec.shape}"
            )
        if (
            not images.spec.shape[3:].is_compatible_with(dims[2:])
            and images.spec.shape.dims is not None
        ):
            raise ShapeError(
                f"dilation2d: input {images.spec.shape} and filter {offsets.spec.shape} must have "
                "as many "
                "channels"
            )
        if not images.dtype.is_numeric or images.dtype.is_complex:
            raise AttributeValueError(f"dilation2d: input must be real, got {images.dtype}")
        ksize = tuple(int(d) for d in dims[:2] if d is not None)

        def windows(x: Tensor) -> Tensor:
            patches = extract_patches_op(x, ksize, steps, mode, layout, filter_)
            sizes = shape_of(patches)
            split = shape_of(offsets)
            return reshape(patches, [sizes[0], sizes[1], sizes[2], ksize[0] * ksize[1], split[2]])

        flat = reshape(offsets, [ksize[0] * ksize[1], shape_of(offsets)[2]])
        sums = windows(images) + flat
        if mode != "VALID":
            inside = greater(windows(ones_like(images)), 0)
            sums = select(inside, sums, _lowest(images))
        return _first_maximum(sums, ksize[0] * ksize[1])


def _first_maximum(sums: Tensor, count: int) -> Tensor:
    """Return the maxima along the fourth of five axes; of equal ones the first has the gradient."""
    place = expand_dims(argmax(sums, 3, output_type=dtypes.int32), 3)
    chosen = equal(place, np.arange(count, dtype=np.int32)[:, None])
    return reduce_sum(select(chosen, sums, zeros_like(sums)), 3)


def _lowest(images: Tensor) -> Any:
    kind = images.dtype
    value = kind.min if kind.is_integer else -np.inf
    return convert_to_tensor(np.array(value).astype(kind.numpy))


@names_result
def erosion2d(
    value: Any, kernel: Any, strides: Any, rates: Any, padding: Any, name: str | None = None
) -> Tensor:
    """Take the minimum over each window of images of pixel less the mirrored kernel's element.

    This is the erosion of mathematical morphology: the negative of the dilation of the negative.

    Args:
        value: [n, h, w, c], a real number.
        kernel: [kh, kw, c], the dtype of ``value``.
        strides: [1, down, across, 1], one number, or two.
        rates: As ``strides``; distances between kernel elements.
        padding: "SAME" or "VALID".
        name: The name of the operations.

    Returns:
        [n, oh, ow, c], the dtype of ``value``.

    Raises:
        ShapeError: if ranks or channels do not fit, or the kernel's size is not known.
        AttributeValueError: for strides, rates or padding that do not exist.
    """
    with name_scope(name, "erosion2d"):
        images = convert_to_tensor(value)
        element = convert_to_tensor(kernel, preferred_dtype=images.dtype)
        if element.shape.rank not in (None, 3):
            raise ShapeError(f"erosion2d: kernel must have 3 dimensions, got {element.spec.shape}")
        mirrored = element[::-1, ::-1]
        return negative(dilation2d(negative(images), mirrored, strides, rates, padding))
