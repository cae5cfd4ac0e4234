"""The functions of pooling, built on the ops of ``pool``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import dtypes
from headrace.dtypes import as_dtype
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, reshape, shape
from headrace.ops.convolution import given, spatial_count
from headrace.ops.pool import avg_pool_op, extract_patches_op, max_pool_op, max_pool_with_argmax_op
from headrace.ops.reduce import reduce_max
from headrace.ops.windows import CHANNELS_LAST, checked_padding, per_axis, spatial_axes

_LINES = {"NHWC": "NWC", "NCHW": "NCW"}


def _pool(
    op: Callable[..., Tensor],
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    count: int,
    name: str | None,
    dilations: Any = None,
) -> Tensor:
    layout = CHANNELS_LAST[count] if data_format is None else data_format
    spatial_axes(layout, count)
    # Without dilations the attribute is left out: most pools have none.
    extra = {} if dilations is None else {"dilations": per_axis(dilations, layout, "dilations")}
    return op(
        value,
        per_axis(ksize, layout, "ksize"),
        per_axis(1 if strides is None else strides, layout, "strides"),
        checked_padding(padding, layout),
        layout,
        name=name,
        **extra,
    )


def max_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Take the maximum of each window of images; NaN where it holds one.

    Args:
        value: [n, h, w, c], a real number ([n, c, h, w] for "NCHW").
        ksize: The window: one number, two (height, width), or four in the order of the layout. Of
            the four, the one of the channels may be other than 1 where both others are 1 and it is
            the stride, too: then channels are pooled.
        strides: The steps, as ``ksize``.
        padding: "SAME", "VALID", or four pairs of numbers in the order of ``data_format``.
        data_format: "NHWC" or "NCHW".
        name: The name of the operation.
        input: The same as ``value``.

    Returns:
        [n, oh, ow, c], the dtype of ``value`` ([n, c, oh, ow] for "NCHW").

    Raises:
        ShapeError: if the rank is not 4, or the window is larger than a VALID image.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    images = given("nn.max_pool", "value", value, input)
    spatial_axes(data_format)
    if data_format == "NHWC" and _pools_channels(ksize, strides):
        return _max_of_channels(images, int(ksize[3]), name)
    return _pool(max_pool_op, images, ksize, strides, padding, data_format, 2, name)


def _pools_channels(ksize: Any, strides: Any) -> bool:
    try:
        return (
            len(ksize) == len(strides) == 4
            and list(ksize[:3]) == list(strides[:3]) == [1, 1, 1]
            and ksize[3] == strides[3] > 1
        )
    except TypeError:
        return False


def _max_of_channels(value: Any, depth: int, name: str | None) -> Tensor:
    with name_scope(name, "max_pool"):
        images = convert_to_tensor(value)
        if images.shape.rank not in (None, 4):
            raise ShapeError(
                f"max_pool: value must have 4 dimensions, got shape {images.spec.shape}"
            )
        channels = images.spec.shape[3]
        if channels is not None and channels % depth:
            raise ShapeError(
                f"max_pool: windows of {depth} channels do not divide the {channels} of "
                f"{images.spec.shape}"
            )
        places = shape(images)[:3]
        sizes: Any = concat([places, [-1, depth]], 0)
        if images.shape.is_fully_defined():
            sizes = [*images.shape.known[:3], (channels or 0) // depth, depth]
        return reduce_max(reshape(images, sizes), -1)


def max_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Take the maximum of each window of sequences.

    Args:
        input: [n, w, c], a real number ([n, c, w] for "NCW").
        ksize: The size of a window: one number, or three in the order of the layout.
        strides: The step, as ``ksize``.
        padding: "SAME", "VALID", or three pairs of numbers.
        data_format: "NWC" or "NCW".
        name: The name of the operation.

    Returns:
        [n, ow, c], the dtype of ``input`` ([n, c, ow] for "NCW").

    Raises:
        ShapeError: if the rank is not 3, or the window is larger than a VALID input.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    layout = _LINES.get(data_format or "NWC", data_format)
    return _pool(max_pool_op, input, ksize, strides, padding, layout, 1, name)


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """Take the maximum of each window of images, as ``max_pool`` does.

    Args:
        input: [n, h, w, c], a real number ([n, c, h, w] for "NCHW").
        ksize: As for ``max_pool``.
        strides: As for ``max_pool``.
        padding: As for ``max_pool``.
        data_format: "NHWC" or "NCHW".
        name: The name of the operation.

    Returns:
        [n, oh, ow, c], the dtype of ``input``.

    Raises:
        ShapeError: if the rank is not 4, or the window is larger than a VALID image.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    return max_pool(input, ksize, strides, padding, data_format or "NHWC", name)


def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Take the maximum of each window of volumes.

    Args:
        input: [n, d, h, w, c], a real number ([n, c, d, h, w] for "NCDHW").
        ksize: The window: one number, three, or five in the order of the layout.
        strides: The steps, as ``ksize``.
        padding: "SAME", "VALID", or five pairs of numbers.
        data_format: "NDHWC" or "NCDHW".
        name: The name of the operation.

    Returns:
        [n, od, oh, ow, c], the dtype of ``input``.

    Raises:
        ShapeError: if the rank is not 5, or the window is larger than a VALID volume.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    return _pool(max_pool_op, input, ksize, strides, padding, data_format, 3, name)


def avg_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Take the mean of each window of images; padding does not count.

    Args:
        value: [n, h, w, c], floating ([n, c, h, w] for "NCHW").
        ksize: The window: one number, two (height, width), or four in the order of the layout.
        strides: The steps, as ``ksize``.
        padding: "SAME", "VALID", or four pairs of numbers in the order of ``data_format``.
        data_format: "NHWC" or "NCHW".
        name: The name of the operation.
        input: The same as ``value``.

    Returns:
        [n, oh, ow, c], the dtype of ``value`` ([n, c, oh, ow] for "NCHW").

    Raises:
        ShapeError: if the rank is not 4, or the window is larger than a VALID image.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    images = given("nn.avg_pool", "value", value, input)
    return _pool(avg_pool_op, images, ksize, strides, padding, data_format, 2, name)


def avg_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:
    """Take the mean of each window of sequences; padding does not count.

    Args:
        input: [n, w, c], floating ([n, c, w] for "NCW").
        ksize: The size of a window: one number, or three in the order of the layout.
        strides: The step, as ``ksize``.
        padding: "SAME", "VALID", or three pairs of numbers.
        data_format: "NWC" or "NCW".
        name: The name of the operation.

    Returns:
        [n, ow, c], the dtype of ``input`` ([n, c, ow] for "NCW").

    Raises:
        ShapeError: if the rank is not 3, or the window is larger than a VALID input.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    layout = _LINES.get(data_format or "NWC", data_format)
    return _pool(avg_pool_op, input, ksize, strides, padding, layout, 1, name)


def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Take the mean of each window of volumes; padding does not count.

    Args:
        input: [n, d, h, w, c], floating ([n, c, d, h, w] for "NCDHW").
        ksize: The window: one number, three, or five in the order of the layout.
        strides: The steps, as ``ksize``.
        padding: "SAME", "VALID", or five pairs of numbers.
        data_format: "NDHWC" or "NCDHW".
        name: The name of the operation.

    Returns:
        [n, od, oh, ow, c], the dtype of ``input``.

    Raises:
        ShapeError: if the rank is not 5, or the window is larger than a VALID volume.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    return _pool(avg_pool_op, input, ksize, strides, padding, data_format, 3, name)


def max_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Take the maximum of each window over one, two or three spatial axes.

    Args:
        input: [n, ..., c], a real number; its rank says how many axes.
        ksize: One number, one for each spatial axis, or one for each axis of the layout.
        strides: As ``ksize``.
        padding: "SAME", "VALID", or pairs of numbers.
        data_format: The layout; channels last if None.
        name: The name of the operation.

    Returns:
        The same with one element for each window.

    Raises:
        ShapeError: if the rank is unknown or not 3 to 5, or the window does not fit.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    images = convert_to_tensor(input)
    count = spatial_count(images, None, data_format)
    return _pool(max_pool_op, images, ksize, strides, padding, data_format, count, name)


def avg_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Take the mean of each window over one, two or three spatial axes.

    Args:
        input: [n, ..., c], floating; its rank says how many axes.
        ksize: One number, one for each spatial axis, or one for each axis of the layout.
        strides: As ``ksize``.
        padding: "SAME", "VALID", or pairs of numbers.
        data_format: The layout; channels last if None.
        name: The name of the operation.

    Returns:
        The same with one element for each window.

    Raises:
        ShapeError: if the rank is unknown or not 3 to 5, or the window does not fit.
        AttributeValueError: for windows, strides, padding or layouts that do not exist.
    """
    images = convert_to_tensor(input)
    count = spatial_count(images, None, data_format)
    return _pool(avg_pool_op, images, ksize, strides, padding, data_format, count, name)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pool over one, two or three spatial axes.

    Args:
        input: [n, ..., c], real ([n, c, ...] for layouts that start with "NC"); its rank says how
            many axes.
        window_shape: One number, or one for each spatial axis.
        pooling_type: "MAX" or "AVG".
        padding: "SAME", "VALID", or pairs of numbers. It never counts.
        dilation_rate: Distances of the elements of a window, as ``window_shape``.
        strides: As ``window_shape``; 1 if None.
        name: The name of the operation.
        data_format: The layout; channels last if None.
        dilations: The same as ``dilation_rate``.

    Returns:
        The same with one element for each window.

    Raises:
        ShapeError: if the rank is unknown or not 3 to 5, or the window does not fit.
        AttributeValueError: for pooling types, windows, strides, padding or layouts that do not
            exist.
    """
    if pooling_type not in ("MAX", "AVG"):
        raise AttributeValueError(f"pooling_type must be 'MAX' or 'AVG', got {shown(pooling_type)}")
    op: Callable[..., Tensor] = max_pool_op if pooling_type == "MAX" else avg_pool_op
    images = convert_to_tensor(input)
    count = spatial_count(images, None, data_format)
    spread = dilation_rate if dilation_rate is not None else dilations
    return _pool(op, images, window_shape, strides, padding, data_format, count, name, spread)


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    Targmax: Any = None,  # noqa: N803 (the name that TensorFlow has)
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """Take the maximum of each window of images, and its place.

    Args:
        input: [n, h, w, c], a real number.
        ksize: As for ``max_pool``.
        strides: As for ``max_pool``.
        padding: As for ``max_pool``.
        data_format: "NHWC".
        Targmax: int32 or int64, the dtype of places; int64 if None.
        name: The name of the operation.
        output_dtype: The same as ``Targmax``.
        include_batch_in_index: Whether the image's number counts in a place:
            ``((n * height + y) * width + x) * channels + c``, without it ``n`` is 0.

    Returns:
        The maxima and their places; of equal ones the first.

    Raises:
        ShapeError: if the rank is not 4, or the window is larger than a VALID image.
        AttributeValueError: for windows, strides or padding that do not exist.
        DTypeError: if ``Targmax`` is neither int32 nor int64.
    """
    if data_format != "NHWC":
        raise AttributeValueError(
            f"max_pool_with_argmax takes data_format 'NHWC', got {shown(data_format)}"
        )
    kind = Targmax if Targmax is not None else output_dtype
    return max_pool_with_argmax_op(
        input,
        per_axis(ksize, data_format, "ksize"),
        per_axis(strides, data_format, "strides"),
        checked_padding(padding, data_format),
        data_format,
        dtypes.int64 if kind is None else as_dtype(kind),
        bool(include_batch_in_index),
        name=name,
    )


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Take the windows of images, each with all its elements in the channels.

    Args:
        images: [n, h, w, c], numeric.
        ksizes: The window: [1, height, width, 1].
        strides: The steps: [1, down, across, 1].
        rates: The distances between the elements of a window: [1, down, across, 1].
        padding: "SAME" (with zeros) or "VALID".
        name: The name of the operation.
        sizes: The same as ``ksizes``.

    Returns:
        [n, oh, ow, height * width * c], the dtype of ``images``.

    Raises:
        ShapeError: if the rank is not 4, or the window is larger than a VALID image.
        AttributeValueError: for windows, strides, rates or padding that do not exist.
    """
    window = given("extract_image_patches", "ksizes", ksizes, sizes)
    return _pool(extract_patches_op, images, window, strides, padding, "NHWC", 2, name, rates)


def extract_patches(
    images: Any,
    sizes: Any,
    strides: Any,
    rates: Any,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """Take the windows of images, each with all its elements in the channels.

    Args:
        images: [n, h, w, c], numeric.
        sizes: The window: [1, height, width, 1].
        strides: The steps: [1, down, across, 1].
        rates: The distances between the elements of a window: [1, down, across, 1].
        padding: "SAME" (with zeros) or "VALID".
        name: The name of the operation.

    Returns:
        [n, oh, ow, height * width * c], the dtype of ``images``.

    Raises:
        ShapeError: if the rank is not 4, or the window is larger than a VALID image.
        AttributeValueError: for windows, strides, rates or padding that do not exist.
    """
    return extract_image_patches(images, sizes, strides, rates, padding, name)


def extract_volume_patches(
    input: Any, ksizes: Any, strides: Any, padding: Any, name: str | None = None
) -> Tensor:
    """Take the windows of volumes, each with all its elements in the channels.

    Args:
        input: [n, d, h, w, c], numeric.
        ksizes: The window: [1, depth, height, width, 1].
        strides: The steps: [1, in, down, across, 1].
        padding: "SAME" (with zeros) or "VALID".
        name: The name of the operation.

    Returns:
        [n, od, oh, ow, depth * height * width * c], the dtype of ``input``.

    Raises:
        ShapeError: if the rank is not 5, or the window is larger than a VALID volume.
        AttributeValueError: for windows, strides or padding that do not exist.
    """
    return _pool(extract_patches_op, input, ksizes, strides, padding, "NDHWC", 3, name)
