"""Convolutions and pooling over images."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.spec import TensorSpec, as_shape, like
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Floating, Index
from headrace.shapes import Dim, Shape

LAYOUTS = {"NHWC": (1, 2), "NCHW": (2, 3)}


def spatial_axes(data_format: str) -> tuple[int, int]:
    """Return the axes of height and width in an image layout.

    Raises:
        AttributeValueError: if the layout is neither "NHWC" nor "NCHW".
    """
    if data_format not in LAYOUTS:
        raise AttributeValueError(f"data_format must be 'NHWC' or 'NCHW', got {data_format!r}")
    return LAYOUTS[data_format]


def channel_axis(data_format: str) -> int:
    """Return the axis of the channels in an image layout."""
    return 1 if data_format == "NCHW" else 3


def window_padding(
    size: int, window: int, stride: int, dilation: int, padding: str
) -> tuple[int, int, int]:
    """Return the output size and the padding before and after, along one axis.

    "VALID" takes only windows that lie inside; "SAME" pads as evenly as it can, the odd element
    after, so that the output has ``ceil(size / stride)`` elements.
    """
    reach = (window - 1) * dilation + 1
    if padding == "VALID":
        return max(0, (size - reach) // stride + 1), 0, 0
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + reach - size)
    return out, total // 2, total - total // 2


def _pair(values: Sequence[int], data_format: str, label: str) -> tuple[int, int]:
    """Return the height and width entries of a list of 1, 2 or 4 numbers."""
    try:
        given = tuple(operator.index(v) for v in values)
    except TypeError:
        raise AttributeValueError(f"{label} must be integers, got {values!r}") from None
    if len(given) == 1:
        given = given * 2
    if len(given) == 4:
        axes = spatial_axes(data_format)
        if any(v != 1 for i, v in enumerate(given) if i not in axes):
            raise AttributeValueError(
                f"{label} must be 1 along batch and channels, got {list(given)} for {data_format}"
            )
        given = (given[axes[0]], given[axes[1]])
    if len(given) != 2 or min(given) < 1:
        raise AttributeValueError(f"{label} must be 1, 2 or 4 integers >= 1, got {list(values)}")
    return given[0], given[1]


def _check_padding(padding: Any) -> str:
    if not isinstance(padding, str) or padding.upper() not in ("SAME", "VALID"):
        raise AttributeValueError(f"padding must be 'SAME' or 'VALID', got {padding!r}")
    return padding.upper()


def _out_dim(size: Dim, window: Dim, stride: int, dilation: int, padding: str) -> Dim:
    if size is None or (window is None and padding == "VALID"):
        return None
    reach = ((window or 1) - 1) * dilation + 1
    if padding == "VALID" and size < reach:
        raise ShapeError(f"a window that reaches over {reach} does not fit into {size} elements")
    return window_padding(size, window or 1, stride, dilation, padding)[0]


def _image(x: TensorSpec, label: str) -> None:
    if x.rank not in (None, 4):
        raise ShapeError(f"{label} must have 4 dimensions, got shape {x.shape}")


def _layout(batch: Dim, height: Dim, width: Dim, channels: Dim, data_format: str) -> Shape:
    if data_format == "NCHW":
        return Shape([batch, channels, height, width])
    return Shape([batch, height, width, channels])


@op("Conv2D", public="")
def _conv2d(
    input: Floating,
    filter: Floating,
    strides: tuple[int, int],
    padding: str,
    data_format: str,
    dilations: tuple[int, int],
) -> Spec:
    """Convolution (cross-correlation) of images with filters.

    Args:
        input: [n, h, w, c] or [n, c, h, w], floating.
        filter: [fh, fw, c, out], the dtype of ``input``.
        strides: Steps in height and width.
        padding: "SAME" or "VALID".
        data_format: "NHWC" or "NCHW".
        dilations: Distances of filter elements in height and width.

    Returns:
        [n, oh, ow, out] or [n, out, oh, ow], the dtype of ``input``.
    """
    _image(input, "input")
    _image(filter, "filter")
    axes = spatial_axes(data_format)
    dims: Sequence[Dim] = input.shape.dims or (None,) * 4
    taps: Sequence[Dim] = filter.shape.dims or (None,) * 4
    channels = dims[channel_axis(data_format)]
    if channels is not None and taps[2] is not None and channels != taps[2]:
        raise ShapeError(
            f"input {input.shape} has {channels} channels ({data_format}), filter {filter.shape} "
            f"takes {taps[2]}; a filter is [height, width, in, out]"
        )
    sizes = [
        _out_dim(dims[axis], taps[i], strides[i], dilations[i], padding)
        for i, axis in enumerate(axes)
    ]
    return TensorSpec(input.dtype, _layout(dims[0], sizes[0], sizes[1], taps[3], data_format))


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = (1, 1, 1, 1),
    padding: str = "SAME",
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Convolve images with filters (cross-correlation, as is usual in this field).

    Args:
        input: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        filter: [fh, fw, c, out], the dtype of ``input``.
        strides: One number, two (height, width), or four in the order of ``data_format``.
        padding: "SAME" or "VALID".
        use_cudnn_on_gpu: Ignored; kernels are chosen by priority.
        data_format: "NHWC" or "NCHW".
        dilations: As ``strides``; distances between filter elements.
        name: The name of the operation.
        filters: The same as ``filter``.

    Returns:
        [n, oh, ow, out], the dtype of ``input`` ([n, out, oh, ow] for "NCHW").

    Raises:
        ShapeError: if ranks or channels do not fit, or the filter is larger than a VALID image.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    del use_cudnn_on_gpu
    taps = filter if filter is not None else filters
    if taps is None:
        raise AttributeValueError("nn.conv2d: filter is missing")
    spatial_axes(data_format)
    steps = _pair(_listed(strides), data_format, "strides")
    spread = _pair(_listed(dilations), data_format, "dilations")
    mode = _check_padding(padding)
    return _conv2d(input, taps, steps, mode, data_format, spread, name=name)


def _listed(value: Any) -> Sequence[int]:
    return (value,) if isinstance(value, int) else value


@op("Conv2DBackpropInput", public="")
def conv2d_backprop_input(
    input_sizes: Index,
    filter: Floating,
    out_backprop: Floating,
    strides: tuple[int, int],
    padding: str,
    data_format: str,
    dilations: tuple[int, int],
) -> Spec:
    """Gradient of ``Conv2D`` with respect to its input.

    Args:
        input_sizes: [4], the shape of the input.
        filter: [fh, fw, c, out], floating.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.

    Returns:
        ``input_sizes``, the dtype of ``filter``.
    """
    shape = as_shape(input_sizes)
    return TensorSpec(filter.dtype, shape if shape.dims is not None else Shape([None] * 4))


@op("Conv2DBackpropFilter", public="")
def conv2d_backprop_filter(
    input: Floating,
    filter_sizes: Index,
    out_backprop: Floating,
    strides: tuple[int, int],
    padding: str,
    data_format: str,
    dilations: tuple[int, int],
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
    shape = as_shape(filter_sizes)
    return TensorSpec(input.dtype, shape if shape.dims is not None else Shape([None] * 4))


def _pooled(
    value: TensorSpec,
    ksize: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    data_format: str,
) -> TensorSpec:
    _image(value, "input")
    dims: Sequence[Dim] = value.shape.dims or (None,) * 4
    sizes = [
        _out_dim(dims[axis], ksize[i], strides[i], 1, padding)
        for i, axis in enumerate(spatial_axes(data_format))
    ]
    channels = dims[channel_axis(data_format)]
    return TensorSpec(value.dtype, _layout(dims[0], sizes[0], sizes[1], channels, data_format))


@op("MaxPool", public="")
def _max_pool(
    value: Floating,
    ksize: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    data_format: str,
) -> Spec:
    """Maxima of windows of images.

    Args:
        value: [n, h, w, c] or [n, c, h, w], floating.
        ksize: Height and width of a window.
        strides: Steps in height and width.
        padding: "SAME" (windows are cut off at the border) or "VALID".
        data_format: "NHWC" or "NCHW".

    Returns:
        [n, oh, ow, c] or [n, c, oh, ow], the dtype of ``value``.
    """
    return _pooled(value, ksize, strides, padding, data_format)


@op("MaxPoolGrad", public="")
def max_pool_grad(
    value: Floating,
    grad: Floating,
    ksize: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    data_format: str,
) -> Spec:
    """Gradient of ``MaxPool``: ``grad`` at the first maximum of each window.

    Args:
        value: The images, floating.
        grad: The gradient with respect to the output.
        ksize: As the pooling's.
        strides: As the pooling's.
        padding: As the pooling's.
        data_format: As the pooling's.

    Returns:
        The shape and dtype of ``value``.
    """
    return like(value)


@op("MaxPoolGradGrad", public="")
def max_pool_grad_grad(
    value: Floating,
    grad: Floating,
    ksize: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    data_format: str,
) -> Spec:
    """``grad`` read at the first maximum of each window of ``value``.

    It is the transpose of ``MaxPoolGrad``, and so its gradient.

    Args:
        value: The images, floating.
        grad: A tensor of the shape of ``value``.
        ksize: As the pooling's.
        strides: As the pooling's.
        padding: As the pooling's.
        data_format: As the pooling's.

    Returns:
        The shape of the pooling's output, the dtype of ``value``.
    """
    return _pooled(value, ksize, strides, padding, data_format)


def max_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Take the maximum of each window of images.

    Args:
        value: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        ksize: The window: one number, two (height, width), or four in the order of the layout.
        strides: The steps, as ``ksize``.
        padding: "SAME" or "VALID".
        data_format: "NHWC" or "NCHW".
        name: The name of the operation.
        input: The same as ``value``.

    Returns:
        [n, oh, ow, c], the dtype of ``value`` ([n, c, oh, ow] for "NCHW").

    Raises:
        ShapeError: if the rank is not 4, or the window is larger than a VALID image.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    spatial_axes(data_format)
    window = _pair(_listed(ksize), data_format, "ksize")
    steps = _pair(_listed(strides), data_format, "strides")
    images = value if value is not None else input
    return _max_pool(images, window, steps, _check_padding(padding), data_format, name=name)
