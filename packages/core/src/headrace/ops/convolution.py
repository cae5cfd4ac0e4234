"""The functions of convolution, built on the ops of ``conv``."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError, ShapeError, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, squeeze
from headrace.ops.conv import (
    conv2d_op,
    conv2d_to_filter,
    conv2d_to_input,
    conv3d_op,
    conv3d_to_filter,
)
from headrace.ops.windows import (
    CHANNELS_LAST,
    Padding,
    checked_padding,
    per_axis,
    spatial_axes,
)


def given(function: str, label: str, *values: Any) -> Any:
    """Return the one argument that was passed under any of its names.

    Raises:
        AttributeValueError: if none or several were passed.
    """
    passed = [value for value in values if value is not None]
    if len(passed) != 1:
        problem = "is missing" if not passed else "is passed under two names"
        raise AttributeValueError(f"{function}: {label} {problem}")
    return passed[0]


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Convolve images with filters (cross-correlation, as is usual in this field).

    Args:
        input: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        filter: [fh, fw, in, out], the dtype of ``input``. Where c is a multiple of in, the channels
            of the input and of the output fall into groups, each a convolution of its own.
        strides: One number, two (height, width), or four in the order of ``data_format``; 1 if
            None.
        padding: "SAME", "VALID", or four pairs of numbers in the order of ``data_format``; "SAME"
            if None.
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
    filter_ = given("nn.conv2d", "filter", filter, filters)
    steps, mode, layout, spread = geometry(strides, padding, data_format, dilations, 2)
    return conv2d_op(input, filter_, steps, mode, layout, spread, name=name)


def geometry(
    strides: Any, padding: Any, data_format: str | None, dilations: Any, count: int
) -> tuple[tuple[int, ...], Padding, str, tuple[int, ...]]:
    """Return the attributes of a convolution as ops have them."""
    layout = CHANNELS_LAST[count] if data_format is None else data_format
    spatial_axes(layout, count)
    return (
        per_axis(1 if strides is None else strides, layout, "strides"),
        checked_padding("SAME" if padding is None else padding, layout),
        layout,
        per_axis(1 if dilations is None else dilations, layout, "dilations"),
    )


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Convolve volumes with filters (cross-correlation).

    Args:
        input: [n, d, h, w, c], floating ([n, c, d, h, w] for "NCDHW").
        filter: [fd, fh, fw, in, out], the dtype of ``input``; groups as for ``conv2d``.
        strides: One number, three (depth, height, width), or five in the order of ``data_format``.
        padding: "SAME", "VALID", or five pairs of numbers; "SAME" if None.
        data_format: "NDHWC" or "NCDHW".
        dilations: As ``strides``; distances between filter elements.
        name: The name of the operation.
        filters: The same as ``filter``.

    Returns:
        [n, od, oh, ow, out], the dtype of ``input`` ([n, out, od, oh, ow] for "NCDHW").

    Raises:
        ShapeError: if ranks or channels do not fit, or the filter is larger than a VALID volume.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    filter_ = given("nn.conv3d", "filter", filter, filters)
    steps, mode, layout, spread = geometry(strides, padding, data_format, dilations, 3)
    return conv3d_op(input, filter_, steps, mode, layout, spread, name=name)


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve sequences with filters (cross-correlation).

    Args:
        value: [n, w, c], floating ([n, c, w] for "NCW").
        filters: [fw, in, out], the dtype of ``value``; groups as for ``conv2d``.
        stride: The step: one number, or three in the order of ``data_format``.
        padding: "SAME", "VALID", or three pairs of numbers; "SAME" if None.
        use_cudnn_on_gpu: Ignored; kernels are chosen by priority.
        data_format: "NWC" (also "NHWC") or "NCW" (also "NCHW").
        name: The name of the operations.
        input: The same as ``value``.
        dilations: As ``stride``; distances between filter elements.

    Returns:
        [n, ow, out], the dtype of ``value`` ([n, out, ow] for "NCW").

    Raises:
        ShapeError: if ranks or channels do not fit, or the filter is larger than a VALID input.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    del use_cudnn_on_gpu
    source = given("nn.conv1d", "value", value, input)
    layout = line_layout(data_format)
    (step,), mode, _, (spread,) = geometry(stride, padding, layout, dilations, 1)
    with name_scope(name, "conv1d"):
        images = convert_to_tensor(source)
        filter_ = convert_to_tensor(filters, preferred_dtype=images.dtype)
        check_rank(images, 3, "conv1d: the input")
        check_rank(filter_, 3, "conv1d: filters")
        axis = spatial_axes(layout, 1)[0]
        flat = conv2d_op(
            expand_dims(images, axis),
            expand_dims(filter_, 0),
            (1, step),
            mode if isinstance(mode, str) else ((0, 0), tuple(mode[0])),
            "NHWC" if layout == "NWC" else "NCHW",
            (1, spread),
        )
        return squeeze(flat, [axis])


def line_layout(data_format: str | None) -> str:
    """Return "NWC" or "NCW", for which the layouts of images are taken, too."""
    if data_format is None:
        return "NWC"
    return {"NHWC": "NWC", "NCHW": "NCW"}.get(data_format, data_format)


def check_rank(tensor: Tensor, rank: int, what: str) -> None:
    """Refuse a tensor of another rank.

    Raises:
        ShapeError: if it has another one.
    """
    if tensor.shape.rank not in (None, rank):
        raise ShapeError(f"{what} must have {told(rank)} dimensions, got shape {tensor.spec.shape}")


def convolution(
    input: Any,
    filter: Any = None,
    padding: Any = None,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Convolve over one, two or three spatial axes, as the rank of the input says.

    Args:
        input: [n, ..., c], floating ([n, c, ...] for layouts that start with "NC").
        filter: [..., in, out], the dtype of ``input``; groups as for ``conv2d``.
        padding: "SAME", "VALID", or pairs of numbers.
        strides: One number, or one for each spatial axis; 1 if None.
        dilation_rate: As ``strides``; distances between filter elements.
        name: The name of the operations.
        data_format: The layout; channels last if None.
        filters: The same as ``filter``.
        dilations: The same as ``dilation_rate``.

    Returns:
        The shape of ``input`` with other spatial sizes and channels, its dtype.

    Raises:
        ShapeError: if the rank is unknown or not 3 to 5, or shapes do not fit.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    filter_ = given("nn.convolution", "filter", filter, filters)
    spread = dilation_rate if dilation_rate is not None else dilations
    with name_scope(name, "convolution"):
        images = convert_to_tensor(input)
        kernels = convert_to_tensor(filter_, preferred_dtype=images.dtype)
        count = spatial_count(images, kernels, data_format)
        if count == 1:
            return conv1d(images, kernels, strides, padding, None, data_format, None, None, spread)
        function = conv2d if count == 2 else conv3d
        return function(
            images,
            kernels,
            strides,
            padding,
            data_format=CHANNELS_LAST[count] if data_format is None else data_format,
            dilations=spread,
        )


def spatial_count(images: Tensor, filter_: Tensor | None, data_format: str | None) -> int:
    """Return how many spatial axes images have.

    Raises:
        ShapeError: if that is not known, or not 1 to 3.
    """
    rank = images.shape.rank
    if rank is None and filter_ is not None:
        rank = filter_.shape.rank
    if rank is None and data_format is not None:
        rank = len(data_format)
    if rank is None:
        raise ShapeError("the rank of the input must be known; use hr.reshape or set a shape")
    if not 3 <= rank <= 5:
        raise ShapeError(f"the input must have 3, 4 or 5 dimensions, got shape {images.spec.shape}")
    return rank - 2


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """Convolve images with filters whose elements are ``rate`` pixels apart.

    Args:
        value: [n, h, w, c], floating.
        filters: [fh, fw, in, out], the dtype of ``value``.
        rate: The distance between filter elements, in height and width.
        padding: "SAME" or "VALID".
        name: The name of the operation.

    Returns:
        [n, oh, ow, out], the dtype of ``value``.

    Raises:
        ShapeError: if ranks or channels do not fit.
        AttributeValueError: if ``rate`` is below 1, or for padding that does not exist.
    """
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Return the gradient of ``conv2d`` with respect to its input.

    Args:
        input_sizes: [4], the shape of the input.
        filter: [fh, fw, in, out], floating.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        use_cudnn_on_gpu: Ignored; kernels are chosen by priority.
        data_format: As the convolution's.
        dilations: As the convolution's.
        name: The name of the operation.
        filters: The same as ``filter``.

    Returns:
        ``input_sizes``, the dtype of ``filter``.

    Raises:
        ShapeError: if shapes do not fit.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    del use_cudnn_on_gpu
    filter_ = given("nn.conv2d_backprop_input", "filter", filter, filters)
    steps, mode, layout, spread = geometry(strides, padding, data_format, dilations, 2)
    return conv2d_to_input(
        input_sizes, filter_, out_backprop, steps, mode, layout, spread, name=name
    )


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Return the gradient of ``conv2d`` with respect to its filter.

    Args:
        input: The images, floating.
        filter_sizes: [4], the shape of the filter.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        use_cudnn_on_gpu: Ignored; kernels are chosen by priority.
        data_format: As the convolution's.
        dilations: As the convolution's.
        name: The name of the operation.

    Returns:
        ``filter_sizes``, the dtype of ``input``.

    Raises:
        ShapeError: if shapes do not fit.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    del use_cudnn_on_gpu
    steps, mode, layout, spread = geometry(strides, padding, data_format, dilations, 2)
    return conv2d_to_filter(
        input, filter_sizes, out_backprop, steps, mode, layout, spread, name=name
    )


def conv3d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Return the gradient of ``conv3d`` with respect to its filter.

    Args:
        input: The volumes, floating.
        filter_sizes: [5], the shape of the filter.
        out_backprop: The gradient with respect to the output.
        strides: As the convolution's.
        padding: As the convolution's.
        data_format: As the convolution's.
        dilations: As the convolution's.
        name: The name of the operation.

    Returns:
        ``filter_sizes``, the dtype of ``input``.

    Raises:
        ShapeError: if shapes do not fit.
        AttributeValueError: for strides, padding or layouts that do not exist.
    """
    steps, mode, layout, spread = geometry(strides, padding, data_format, dilations, 3)
    return conv3d_to_filter(
        input, filter_sizes, out_backprop, steps, mode, layout, spread, name=name
    )
