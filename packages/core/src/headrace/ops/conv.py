"""Convolutions over images, and the ops of their gradients.

A convolution is linear in its input and in its filter. Its two gradients are the transposes of
these two linear maps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.errors import ShapeError
from headrace.graph.spec import TensorSpec, as_shape
from headrace.ops.declare import Spec, op
from headrace.ops.flops import of_convolution, of_convolution_filter, of_convolution_input
from headrace.ops.kinds import Floating, Index
from headrace.ops.windows import (
    Padding,
    channel_axis,
    check_geometry,
    check_images,
    laid_out_shape,
    out_dim,
    padding_of,
)
from headrace.shapes import Dim, Shape


def _output(
    images: Shape | Sequence[Dim],
    filter_dims: Shape | Sequence[Dim],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Shape:
    """Return the shape of a convolution's output.

    Raises:
        ShapeError: if the input and the filter do not fit.
        AttributeValueError: if the attributes do not.
    """
    count = len(data_format) - 2
    axes = check_geometry(data_format, padding, count, strides=strides, dilations=dilations)
    dims, window = list(images), list(filter_dims)
    channels, takes, gives = dims[channel_axis(data_format)], window[-2], window[-1]
    if channels is not None and takes is not None:
        if channels != takes and (not takes or not channels or channels % takes):
            raise ShapeError(
                f"input {Shape(dims)} has {channels} channels ({data_format}), filter "
                f"{Shape(window)} takes {takes}; a filter is [{_SIZES[count]}, in, out], and the "
                "channels of the input are a multiple of its in"
            )
        groups = channels // takes if takes else 1
        if gives is not None and groups > 1 and gives % groups:
            raise ShapeError(
                f"filter {Shape(window)} gives {gives} channels, which must be a multiple of the "
                f"{groups} groups of channels of input {Shape(dims)}"
            )
    sizes = [
        out_dim(dims[axis], window[i], strides[i], dilations[i], padding_of(padding, i))
        for i, axis in enumerate(axes)
    ]
    return laid_out_shape(dims[0], sizes, gives, data_format)


_SIZES = {1: "width", 2: "height, width", 3: "depth, height, width"}


def _filter_dims(filter: TensorSpec, count: int) -> Sequence[Dim]:
    if filter.rank not in (None, count + 2):
        raise ShapeError(f"filter must have {count + 2} dimensions, got shape {filter.shape}")
    return filter.shape.dims if filter.shape.dims is not None else (None,) * (count + 2)


def _conv(
    input: TensorSpec,
    filter: TensorSpec,
    count: int,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> TensorSpec:
    check_geometry(data_format, padding, count)
    dims = check_images(input, data_format, "input")
    filter_dims = _filter_dims(filter, count)
    return TensorSpec(
        input.dtype, _output(dims, filter_dims, strides, padding, data_format, dilations)
    )


def _sizes(spec: TensorSpec, count: int, label: str) -> Shape:
    """Return the shape that a vector of sizes denotes."""
    if spec.rank not in (None, 1):
        raise ShapeError(f"{label} must be a vector of {count + 2} sizes, got shape {spec.shape}")
    shape = as_shape(spec)
    if shape.rank not in (None, count + 2):
        raise ShapeError(f"{label} must have {count + 2} elements, got {shape.rank}")
    if spec.value is not None and (spec.value < 0).any():
        raise ShapeError(f"{label} must be sizes >= 0, got {spec.value.tolist()}")
    if math.prod(d for d in shape.dims or () if d) >= 2**62:
        raise ShapeError(f"{label} {shape} is larger than any tensor")
    return shape if shape.dims is not None else Shape([None] * (count + 2))


def _check_grad(grad: TensorSpec, expected: Shape) -> None:
    if not grad.shape.is_compatible_with(expected):
        raise ShapeError(
            f"out_backprop must have the shape {expected} of the convolution's output, got "
            f"{grad.shape}"
        )


def _to_input(
    input_sizes: TensorSpec,
    filter: TensorSpec,
    out_backprop: TensorSpec,
    count: int,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> TensorSpec:
    check_geometry(data_format, padding, count)
    shape, filter_dims = _sizes(input_sizes, count, "input_sizes"), _filter_dims(filter, count)
    dims = shape.as_list()
    _check_grad(out_backprop, _output(dims, filter_dims, strides, padding, data_format, dilations))
    return TensorSpec(filter.dtype, shape)


def _to_filter(
    input: TensorSpec,
    filter_sizes: TensorSpec,
    out_backprop: TensorSpec,
    count: int,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> TensorSpec:
    check_geometry(data_format, padding, count)
    dims = check_images(input, data_format, "input")
    shape = _sizes(filter_sizes, count, "filter_sizes")
    filter_dims = shape.as_list()
    _check_grad(out_backprop, _output(dims, filter_dims, strides, padding, data_format, dilations))
    return TensorSpec(input.dtype, shape)


@op("Conv2D", public="", flops=of_convolution)
def conv2d_op(
    input: Floating,
    filter: Floating,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Spec:
    """Convolution (cross-correlation) of images with filters.

    Args:
        input: [n, h, w, c] or [n, c, h, w], floating.
        filter: [fh, fw, in, out], the dtype of ``input``. Where c is a multiple of in, the channels
            of the input and of the output fall into c / in groups, each a convolution of its own.
        strides: Steps in height and width.
        padding: "SAME", "VALID", or a pair of numbers for height and one for width.
        data_format: "NHWC" or "NCHW".
        dilations: Distances of filter elements in height and width.

    Returns:
        [n, oh, ow, out] or [n, out, oh, ow], the dtype of ``input``.
    """
    return _conv(input, filter, 2, strides, padding, data_format, dilations)


@op("Conv3D", public="", flops=of_convolution)
def conv3d_op(
    input: Floating,
    filter: Floating,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Spec:
    """Convolution (cross-correlation) of volumes with filters.

    Args:
        input: [n, d, h, w, c] or [n, c, d, h, w], floating.
        filter: [fd, fh, fw, in, out], the dtype of ``input``; in as for ``Conv2D``.
        strides: Steps in depth, height and width.
        padding: "SAME", "VALID", or a pair of numbers for each of depth, height and width.
        data_format: "NDHWC" or "NCDHW".
        dilations: Distances of filter elements in depth, height and width.

    Returns:
        [n, od, oh, ow, out] or [n, out, od, oh, ow], the dtype of ``input``.
    """
    return _conv(input, filter, 3, strides, padding, data_format, dilations)


@op("Conv2DBackpropInput", host_inputs=["input_sizes"], public="", flops=of_convolution_input)
def conv2d_to_input(
    input_sizes: Index,
    filter: Floating,
    out_backprop: Floating,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Spec:
    """Gradient of ``Conv2D`` with respect to its input.

    Args:
        input_sizes: [4], the shape of the input.
        filter: [fh, fw, in, out], floating.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.

    Returns:
        ``input_sizes``, the dtype of ``filter``.
    """
    return _to_input(input_sizes, filter, out_backprop, 2, strides, padding, data_format, dilations)


@op("Conv3DBackpropInput", host_inputs=["input_sizes"], public="", flops=of_convolution_input)
def conv3d_to_input(
    input_sizes: Index,
    filter: Floating,
    out_backprop: Floating,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Spec:
    """Gradient of ``Conv3D`` with respect to its input.

    Args:
        input_sizes: [5], the shape of the input.
        filter: [fd, fh, fw, in, out], floating.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.

    Returns:
        ``input_sizes``, the dtype of ``filter``.
    """
    return _to_input(input_sizes, filter, out_backprop, 3, strides, padding, data_format, dilations)


@op("Conv2DBackpropFilter", host_inputs=["filter_sizes"], public="", flops=of_convolution_filter)
def conv2d_to_filter(
    input: Floating,
    filter_sizes: Index,
    out_backprop: Floating,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Spec:
    """Gradient of ``Conv2D`` with respect to its filter.

    Args:
        input: The images, floating.
        filter_sizes: [4], the shape of the filter.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.

    Returns:
        ``filter_sizes``, the dtype of ``input``.
    """
    return _to_filter(
        input, filter_sizes, out_backprop, 2, strides, padding, data_format, dilations
    )


@op("Conv3DBackpropFilter", host_inputs=["filter_sizes"], public="", flops=of_convolution_filter)
def conv3d_to_filter(
    input: Floating,
    filter_sizes: Index,
    out_backprop: Floating,
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int],
) -> Spec:
    """Gradient of ``Conv3D`` with respect to its filter.

    Args:
        input: The volumes, floating.
        filter_sizes: [5], the shape of the filter.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.

    Returns:
        ``filter_sizes``, the dtype of ``input``.
    """
    return _to_filter(
        input, filter_sizes, out_backprop, 3, strides, padding, data_format, dilations
    )
