"""The transposes of convolutions: their gradients, as functions of their own."""

from __future__ import annotations

from typing import Any

from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, squeeze
from headrace.ops.conv import conv2d_to_input, conv3d_to_input
from headrace.ops.convolution import check_rank, geometry, given, line_layout, spatial_count
from headrace.ops.joining import concat
from headrace.ops.windows import CHANNELS_LAST, spatial_axes


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Apply the transpose of a convolution, its gradient: from small images to large ones.

    Args:
        value: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        filter: [fh, fw, out, c], the dtype of ``value``.
        output_shape: [4], the shape of the result, in the order of ``data_format``.
        strides: As for ``conv2d``; the result is about so many times larger.
        padding: As for ``conv2d``.
        data_format: "NHWC" or "NCHW".
        name: The name of the operation.
        input: The same as ``value``.
        filters: The same as ``filter``.
        dilations: As for ``conv2d``.

    Returns:
        ``output_shape``, the dtype of ``value``.

    Raises:
        ShapeError: if a convolution of ``output_shape`` would not give the shape of ``value``.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    source = given("nn.conv2d_transpose", "value", value, input)
    filter_ = given("nn.conv2d_transpose", "filter", filter, filters)
    steps, mode, layout, spread = geometry(strides, padding, data_format, dilations, 2)
    target = given("nn.conv2d_transpose", "output_shape", output_shape)
    return conv2d_to_input(
        target, filter_, source, steps, mode, layout, spread, name=name or "conv2d_transpose"
    )


def conv3d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Apply the transpose of a convolution of volumes, its gradient.

    Args:
        value: [n, d, h, w, c], floating ([n, c, d, h, w] for "NCDHW").
        filter: [fd, fh, fw, out, c], the dtype of ``value``.
        output_shape: [5], the shape of the result, in the order of ``data_format``.
        strides: As for ``conv3d``; the result is about so many times larger.
        padding: As for ``conv3d``.
        data_format: "NDHWC" or "NCDHW".
        name: The name of the operation.
        input: The same as ``value``.
        filters: The same as ``filter``.
        dilations: As for ``conv3d``.

    Returns:
        ``output_shape``, the dtype of ``value``.

    Raises:
        ShapeError: if a convolution of ``output_shape`` would not give the shape of ``value``.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    source = given("nn.conv3d_transpose", "value", value, input)
    filter_ = given("nn.conv3d_transpose", "filter", filter, filters)
    steps, mode, layout, spread = geometry(strides, padding, data_format, dilations, 3)
    target = given("nn.conv3d_transpose", "output_shape", output_shape)
    return conv3d_to_input(
        target, filter_, source, steps, mode, layout, spread, name=name or "conv3d_transpose"
    )


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Apply the transpose of a convolution of sequences, its gradient.

    Args:
        input: [n, w, c], floating ([n, c, w] for "NCW").
        filters: [fw, out, c], the dtype of ``input``.
        output_shape: [3], the shape of the result, in the order of ``data_format``.
        strides: As for ``conv1d``; the result is about so many times longer.
        padding: As for ``conv1d``.
        data_format: "NWC" or "NCW".
        dilations: As for ``conv1d``.
        name: The name of the operations.

    Returns:
        ``output_shape``, the dtype of ``input``.

    Raises:
        ShapeError: if a convolution of ``output_shape`` would not give the shape of ``input``.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    layout = line_layout(data_format)
    (step,), mode, _, (spread,) = geometry(strides, padding, layout, dilations, 1)
    axis = spatial_axes(layout, 1)[0]
    with name_scope(name, "conv1d_transpose"):
        images = convert_to_tensor(input)
        filter_ = convert_to_tensor(filters, preferred_dtype=images.dtype)
        check_rank(images, 3, "conv1d_transpose: the input")
        check_rank(filter_, 3, "conv1d_transpose: filters")
        target = convert_to_tensor(output_shape)
        dims = as_shape(target.spec)
        sizes: Any
        if dims.is_fully_defined():
            known = list(dims.known)
            sizes = [*known[:axis], 1, *known[axis:]]
        else:
            sizes = concat([target[:axis], [1], target[axis:]], 0)
        flat = conv2d_to_input(
            sizes,
            expand_dims(filter_, 0),
            expand_dims(images, axis),
            (1, step),
            mode if isinstance(mode, str) else ((0, 0), tuple(mode[0])),
            "NHWC" if layout == "NWC" else "NCHW",
            (1, spread),
        )
        return squeeze(flat, [axis])


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Apply the transpose of a convolution over one, two or three spatial axes.

    Args:
        input: [n, ..., c], floating ([n, c, ...] for layouts that start with "NC").
        filters: [..., out, c], the dtype of ``input``.
        output_shape: [rank], the shape of the result.
        strides: One number, or one for each spatial axis.
        padding: "SAME", "VALID", or pairs of numbers.
        data_format: The layout; channels last if None.
        dilations: As ``strides``; distances between filter elements.
        name: The name of the operations.

    Returns:
        ``output_shape``, the dtype of ``input``.

    Raises:
        ShapeError: if the rank is unknown or not 3 to 5, or shapes do not fit.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    with name_scope(name, "conv_transpose"):
        images = convert_to_tensor(input)
        filter_ = convert_to_tensor(filters, preferred_dtype=images.dtype)
        count = spatial_count(images, filter_, data_format)
        layout = CHANNELS_LAST[count] if data_format is None else data_format
        if count == 1:
            return conv1d_transpose(
                images, filter_, output_shape, strides, padding, layout, dilations
            )
        function = conv2d_transpose if count == 2 else conv3d_transpose
        return function(
            images, filter_, output_shape, strides, padding, layout, dilations=dilations
        )


def atrous_conv2d_transpose(
    value: Any,
    filters: Any,
    output_shape: Any,
    rate: int,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """Apply the transpose of ``atrous_conv2d``.

    Args:
        value: [n, h, w, c], floating.
        filters: [fh, fw, out, c], the dtype of ``value``.
        output_shape: [4], the shape of the result.
        rate: The distance between filter elements, in height and width.
        padding: "SAME" or "VALID".
        name: The name of the operation.

    Returns:
        ``output_shape``, the dtype of ``value``.

    Raises:
        ShapeError: if a convolution of ``output_shape`` would not give the shape of ``value``.
        AttributeValueError: if ``rate`` is below 1, or for padding that does not exist.
    """
    return conv2d_transpose(value, filters, output_shape, 1, padding, name=name, dilations=rate)
